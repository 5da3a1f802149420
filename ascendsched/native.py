"""Loads the compiled core, with the thread pools of its libraries kept in check while they start.

- OpenBLAS starts a thread for every CPU when it is loaded. The core calls it from its own threads only, one at a time,
  so those would sleep for ever, outside the bound that `threads` sets: they are told not to start.
- GNU OpenMP's threads spin for milliseconds at the end of parallel work. Where the CPUs are shared, each such wait
  takes the time slice that another thread needs: they spin for microseconds, unless the user's environment says
  how to wait, or another package has loaded the library before.
"""

import os
from contextlib import suppress
from importlib import import_module
from typing import Any


def _is_main_interpreter() -> bool:
    """Whether this is no sub-interpreter: there the core would wait for a lock that its own thread holds."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # the latter before Python 3.13
        with suppress(ImportError):
            interpreters = import_module(name)
            return bool(interpreters.get_current() == interpreters.get_main())
    return True


if not _is_main_interpreter():
    raise ImportError("[import] ascendsched works in the main interpreter only; use threads or processes instead")

_SETTINGS = {"OPENBLAS_NUM_THREADS": "1"}
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ):
    _SETTINGS["GOMP_SPINCOUNT"] = "1000"

_before = {name: os.environ.get(name) for name in _SETTINGS}
os.environ.update(_SETTINGS)
try:
    from ascendsched import _core as core
finally:
    for _name, _value in _before.items():
        if _value is None:
            del os.environ[_name]
        else:
            os.environ[_name] = _value


def _call_out(name: str, payload: str, count: int, inputs: list[Any]) -> list[Any]:
    """Operators that Python computes; the modules they need are loaded when the first one runs."""
    from ascendsched import host_calls

    if name == "onnx.reference":
        import ascendsched.frontends.onnx_reference
    elif name == "ascendsched.values":
        import ascendsched.value_ops  # noqa: F401 - both register themselves
    return list(host_calls.call(name, payload, count, inputs))


core.set_host_call(_call_out)

__all__ = ["core"]
