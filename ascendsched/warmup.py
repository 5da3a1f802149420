"""Warm-up: runs on zeros for shapes that are given, or that ran before an executable was saved."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched.arrays import numpy_dtype
from ascendsched.bounded import shortened
from ascendsched.errors import AscendSchedError, GraphError, OutOfMemoryError
from ascendsched.native import core as _core
from ascendsched.packed import DTYPE, is_kind

if TYPE_CHECKING:
    from ascendsched.tensor_info import TensorInfo

_LOG = logging.getLogger("ascendsched")
_MOST_SHAPES = 256  # of a file: each is a run; we keep 16
_FORM = "[warmup] expected a list of shapes by input name such as [{'x': (1, 8)}], and values by input name"


def warm_up(
    core: _core.Executable,
    inputs: Sequence[TensorInfo],
    shapes: Iterable[Mapping[str, Sequence[int]]],
    values: Mapping[str, Any],
) -> None:
    """Do what `Executable.warmup` does."""
    known = {info.name for info in inputs}
    if isinstance(shapes, (str, Mapping)) or not isinstance(shapes, Iterable) or not isinstance(values, Mapping):
        raise GraphError(_FORM)
    for signature in shapes:
        if not isinstance(signature, Mapping):
            raise GraphError(_FORM)
        if unknown := sorted((set(signature) | set(values)) - known):
            raise GraphError(f"[warmup] unknown inputs {unknown}; the model takes {sorted(known)}")
        core.warm_up({info.name: _value(info, signature, values) for info in inputs})


def _value(info: TensorInfo, signature: Mapping[str, Sequence[int]], values: Mapping[str, Any]) -> Any:
    if info.name in values:
        return values[info.name]
    if is_kind(info.dtype):
        raise GraphError(
            f"[warmup] input '{info.name}' is a {info.dtype}, of which shapes say too little; give a value"
        )
    shape = signature.get(info.name, info.shape)
    dims = [int(dim) for dim in shape or () if isinstance(dim, (int, np.integer))]
    if shape is None or len(dims) != len(shape):
        raise GraphError(f"[warmup] input '{info.name}': shape {shape} is no list of numbers; give every dimension")
    try:
        return np.zeros(dims, numpy_dtype(info.dtype))
    except ValueError as error:
        raise GraphError(f"[warmup] input '{info.name}': shape {tuple(shape)}: {error}") from None
    except MemoryError:
        raise OutOfMemoryError(f"[warmup] input '{info.name}': no memory for shape {tuple(shape)}") from None


def recent_shapes(core: _core.Executable) -> list[dict[str, Any]]:
    """What ran last, most recent first, as JSON keeps it: shapes by name, contents where shapes depend on them."""
    names = [name for name, _, _ in core.inputs]
    return [
        {
            name: {"shape": list(shape), "value": None if value is None else value.hex()}
            for name, (shape, value) in zip(names, signature, strict=True)
        }
        for signature in _core.hot_shapes(core)
    ]


def check_shapes(shapes: list[Any]) -> None:
    """Check the form of what `recent_shapes` gave and a file kept.

    Raises
    ------
    AttributeError, KeyError, TypeError, ValueError
        Where it is something else.
    """
    if len(shapes) > _MOST_SHAPES:
        raise ValueError
    for signature in shapes:
        for entry in signature.values():
            if not all(type(dim) is int and 0 <= dim < 1 << 63 for dim in entry["shape"]):
                raise ValueError
            if entry["value"] is not None:
                bytes.fromhex(entry["value"])


def warm_again(core: _core.Executable, inputs: Sequence[TensorInfo], shapes: list[dict[str, Any]]) -> None:
    """Warm up for the shapes of `recent_shapes`, the most recent one last; one that no longer fits is skipped."""
    types = {info.name: numpy_dtype(DTYPE if is_kind(info.dtype) else info.dtype) for info in inputs}
    for signature in reversed(shapes):
        try:
            values = {
                name: np.frombuffer(bytes.fromhex(entry["value"]), types[name]).reshape(entry["shape"])
                for name, entry in signature.items()
                if entry["value"] is not None
            }
            warm_up(core, inputs, [{name: entry["shape"] for name, entry in signature.items()}], values)
        except (AscendSchedError, KeyError, ValueError) as error:
            _LOG.warning("[load] not warmed up for %s: %s", shortened(signature), shortened(error))
