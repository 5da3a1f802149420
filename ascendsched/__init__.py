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
)
from ascendsched.options import Options

if TYPE_CHECKING:
    from ascendsched.executable import Binding, DeviceInfo, Executable, Run, TensorInfo, compile, devices
    from ascendsched.extensions import get_include
    from ascendsched.graph import Graph, Tensor
    from ascendsched.operators import op
    from ascendsched.store import load

# What needs the compiled core is loaded when first used: the readers of profiles work without it.
_MODULES = dict.fromkeys(
    ["Binding", "DeviceInfo", "Executable", "Run", "TensorInfo", "compile", "devices"], "ascendsched.executable"
) | {
    "op": "ascendsched.operators",
    "get_include": "ascendsched.extensions",
    "Graph": "ascendsched.graph",
    "Tensor": "ascendsched.graph",
    "load": "ascendsched.store",
}

__all__ = [
    "AscendSchedError",
    "Binding",
    "DeviceError",
    "DeviceInfo",
    "DeviceUnavailableError",
    "Executable",
    "Graph",
    "GraphError",
    "Options",
    "OutOfMemoryError",
    "PlanError",
    "Run",
    "RunCancelledError",
    "Tensor",
    "TensorInfo",
    "UnsupportedError",
    "WaitTimeoutError",
    "__version__",
    "compile",
    "devices",
    "get_include",
    "load",
    "op",
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
