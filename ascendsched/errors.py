"""The exception classes of ascendsched; the C++ core raises the same ones.

Every message reads ``[where] what: values; next step``.
"""

__all__ = [
    "AscendSchedError",
    "DeviceError",
    "DeviceUnavailableError",
    "GraphError",
    "OutOfMemoryError",
    "PlanError",
    "RunCancelledError",
    "UnsupportedError",
    "WaitTimeoutError",
    "WriteError",
]


class AscendSchedError(Exception):
    """Base class of everything that ascendsched raises on purpose."""


class GraphError(AscendSchedError, ValueError):
    """The model or the caller's input is malformed."""


class PlanError(AscendSchedError):
    """A valid graph could not be compiled to a plan."""


class UnsupportedError(AscendSchedError, NotImplementedError):
    """A valid graph uses something that this version does not implement."""


class DeviceError(AscendSchedError, RuntimeError):
    """A device call or a kernel failed."""


class DeviceUnavailableError(DeviceError):
    """The device that was asked for is not present, or not usable, on this machine."""


class OutOfMemoryError(DeviceError, MemoryError):
    """Device or host memory, or its configured limit, is exhausted."""


class RunCancelledError(AscendSchedError):
    """A run was cancelled before it completed."""


class WaitTimeoutError(AscendSchedError, TimeoutError):
    """A wait reached its deadline before the run completed."""


class WriteError(AscendSchedError, OSError):
    """A file could not be written."""
