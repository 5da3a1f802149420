"""Loads the compiled core.

OpenBLAS starts a thread for every CPU when it is loaded. The core calls it from its own threads only, one at a time, so
those would sleep for ever, outside the bound that `threads` sets: they are told not to start.
"""

import os

_VARIABLE = "OPENBLAS_NUM_THREADS"

_before = os.environ.get(_VARIABLE)
os.environ[_VARIABLE] = "1"
try:
    from ascendsched import _core as core
finally:
    if _before is None:
        del os.environ[_VARIABLE]
    else:
        os.environ[_VARIABLE] = _before

__all__ = ["core"]
