"""Schedules model graphs on a device: host mode for dynamic shapes, sink mode for known ones.

>>> import ascendsched as asc
>>> exe = asc.compile("model.onnx")
>>> y = exe(x)
"""

from ascendsched._version import __version__
from ascendsched.errors import (
    AscendSchedError,
    DeviceError,
    DeviceUnavailableError,
    GraphError,
    OutOfMemoryError,
    PlanError,
    UnsupportedError,
    WaitTimeoutError,
)
from ascendsched.executable import Binding, Executable, Run, TensorInfo, compile, devices
from ascendsched.graph import Graph, Tensor
from ascendsched.options import Options

__all__ = [
    "AscendSchedError",
    "Binding",
    "DeviceError",
    "DeviceUnavailableError",
    "Executable",
    "Graph",
    "GraphError",
    "Options",
    "OutOfMemoryError",
    "PlanError",
    "Run",
    "Tensor",
    "TensorInfo",
    "UnsupportedError",
    "WaitTimeoutError",
    "__version__",
    "compile",
    "devices",
]
