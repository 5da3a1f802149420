"""Operators that Python computes on the host, called by the core with their inputs.

A callable is known by a name. It depends on its inputs alone: the core keeps its results while they stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ascendsched.arrays import numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]
HostCall = Callable[[str, Sequence["Array | None"]], Sequence["Array | None"]]

_callables: dict[str, HostCall] = {}


def register(name: str, callable_: HostCall) -> None:
    """Make a callable known; it gets the payload of the node and its inputs, None where one is absent."""
    _callables[name] = callable_


def call(
    name: str, payload: str, count: int, inputs: Sequence[tuple[Array, str] | None]
) -> list[tuple[Array, str] | None]:
    """Compute a node for the core; arrays of bfloat16 cross the border as ``uint16``."""
    if name not in _callables:
        raise LookupError(f"nothing is registered as '{name}'; import the module that registers it")
    arrays = [None if pair is None else _typed(*pair) for pair in inputs]
    results = _callables[name](payload, arrays)
    if len(results) < count:
        raise ValueError(f"{len(results)} results, expected {count}")
    return [None if result is None else _plain(result) for result in results[:count]]


def _typed(array: Array, dtype: str) -> Array:
    return array.view(numpy_dtype(dtype)) if dtype == "bfloat16" else array


def _plain(result: Any) -> tuple[Array, str]:
    array = np.asarray(result)
    name = array.dtype.name
    return (array.view(np.uint16) if name == "bfloat16" else array), name
