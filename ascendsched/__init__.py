"""Schedules model graphs on a device: host mode for dynamic shapes, sink mode for known ones.

>>> import ascendsched as asc
>>> exe = asc.compile("model.onnx")
>>> y = exe(x)
"""

from typing import TYPE_CHECKING, Any

from ascendsched._version import __version__
from ascendsched.errors import (
    AscendSchedError,
    DeviceError,
    DeviceUnavailableError,
    GraphError,
    OutOfMemoryError,
    PlanError,
    RunCancelledError,
    UnsupportedError,
    WaitTimeoutError,
    WriteError,
)
from ascendsched.options import Options
from ascendsched.tuning.buckets import Buckets

if TYPE_CHECKING:
    from ascendsched.caches import Cache, Ring, hash_key, tiling_counters
    from ascendsched.executable import Executable, compile
    from ascendsched.extensions import get_include
    from ascendsched.graph import Graph, Tensor
    from ascendsched.operators import op
    from ascendsched.plugins import DeviceInfo, devices
    from ascendsched.runs import Binding, Run
    from ascendsched.store import load
    from ascendsched.tensor_info import TensorInfo
    from ascendsched.tuning.governor import Governor
    from ascendsched.tuning.tuner import tune

# What needs the compiled core is loaded when first used: the readers of profiles work without it.
_MODULES = {
    name: f"ascendsched.{module}"
    for module, names in {
        "executable": ["Executable", "compile"],
        "runs": ["Binding", "Run"],
        "plugins": ["DeviceInfo", "devices"],
        "caches": ["Cache", "Ring", "hash_key", "tiling_counters"],
        "graph": ["Graph", "Tensor"],
        "operators": ["op"],
        "extensions": ["get_include"],
        "store": ["load"],
        "tensor_info": ["TensorInfo"],
        "tuning.tuner": ["tune"],
        "tuning.governor": ["Governor"],
    }.items()
    for name in names
}

__all__ = [
    "AscendSchedError",
    "Binding",
    "Buckets",
    "Cache",
    "DeviceError",
    "DeviceInfo",
    "DeviceUnavailableError",
    "Executable",
    "Governor",
    "Graph",
    "GraphError",
    "Options",
    "OutOfMemoryError",
    "PlanError",
    "Ring",
    "Run",
    "RunCancelledError",
    "Tensor",
    "TensorInfo",
    "UnsupportedError",
    "WaitTimeoutError",
    "WriteError",
    "__version__",
    "compile",
    "devices",
    "get_include",
    "hash_key",
    "load",
    "op",
    "tiling_counters",
    "tune",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'ascendsched' has no attribute '{name}'")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
