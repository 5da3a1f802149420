"""Operators that move the elements of tensors of strings, with the newest ONNX semantics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Attributes = dict[str, Any]
Function = Callable[[list[Any], Attributes], list[Any]]

_MAX_ELEMENTS = 1 << 20  # of one tensor that an operator makes larger: each is a Python object


def _ints(value: Any) -> list[int]:
    return [] if value is None else [int(each) for each in np.asarray(value).reshape(-1)]


def _optional(inputs: list[Any], index: int) -> Any:
    return inputs[index] if len(inputs) > index else None


def check_count(dims: Sequence[int]) -> None:
    """Refuse a shape of more elements than a tensor of strings may have."""
    if math.prod(dims) > _MAX_ELEMENTS or any(dim < 0 for dim in dims):
        raise ValueError(f"a tensor of strings of shape {list(dims)}; at most {_MAX_ELEMENTS} elements")


def _reshape(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, dims = inputs[0], _ints(inputs[1])
    if not attributes.get("allowzero", 0):
        dims = [data.shape[axis] if dim == 0 else dim for axis, dim in enumerate(dims)]
    return [data.reshape(dims)]


def _flatten(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, axis = inputs[0], attributes.get("axis", 1)
    if not -data.ndim <= axis <= data.ndim:
        raise ValueError(f"axis {axis} of rank {data.ndim}")
    axis += data.ndim if axis < 0 else 0
    return [data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))]


def _squeeze(inputs: list[Any], attributes: Attributes) -> list[Any]:
    axes = _optional(inputs, 1)
    return [np.squeeze(inputs[0], None if axes is None else tuple(_ints(axes)))]


def _unsqueeze(inputs: list[Any], attributes: Attributes) -> list[Any]:
    return [np.expand_dims(inputs[0], tuple(_ints(inputs[1])))]


def _transpose(inputs: list[Any], attributes: Attributes) -> list[Any]:
    return [np.transpose(inputs[0], attributes.get("perm"))]


def _concat(inputs: list[Any], attributes: Attributes) -> list[Any]:
    return [np.concatenate(inputs, attributes["axis"])]


def _gather(inputs: list[Any], attributes: Attributes) -> list[Any]:
    return [np.take(inputs[0], inputs[1], attributes.get("axis", 0))]


def _gather_elements(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, indices, axis = inputs[0], inputs[1], attributes.get("axis", 0)
    if data.ndim != indices.ndim or not -data.ndim <= axis < data.ndim:
        raise ValueError(f"axis {axis} of ranks {data.ndim} and {indices.ndim}")
    places = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return [data[tuple(places)]]


def _gather_nd(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, indices, batch = inputs[0], inputs[1], attributes.get("batch_dims", 0)
    if not 0 <= batch < min(data.ndim, indices.ndim):
        raise ValueError(f"batch_dims {batch} of ranks {data.ndim} and {indices.ndim}")
    dims = data.shape[:batch]
    if dims != indices.shape[:batch]:
        raise ValueError(f"batches {dims} and {indices.shape[:batch]}")
    picked = [
        part[tuple(np.moveaxis(where, -1, 0))]
        for part, where in zip(
            data.reshape(-1, *data.shape[batch:]), indices.reshape(-1, *indices.shape[batch:]), strict=True
        )
    ]
    tail = picked[0].shape if picked else indices.shape[batch:-1] + data.shape[batch + indices.shape[-1] :]
    return [np.array(picked, object).reshape(dims + tail)]


def _slice(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, starts, ends = inputs[0], _ints(inputs[1]), _ints(inputs[2])
    axes, steps = _optional(inputs, 3), _optional(inputs, 4)
    places = _ints(axes) if axes is not None else list(range(len(starts)))
    strides = _ints(steps) if steps is not None else [1] * len(starts)
    picks = [slice(None)] * data.ndim
    for axis, start, end, step in zip(places, starts, ends, strides, strict=True):
        dim = data.shape[axis]
        if step > 0:
            picks[axis] = slice(start, end, step)
        else:  # backwards, ONNX brings a start before the first element to the first, Python to none
            picks[axis] = slice(max(start, -dim), None if end < -dim else end, step)
    return [data[tuple(picks)]]


def _split(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, axis, sizes = inputs[0], attributes.get("axis", 0), _optional(inputs, 1)
    dim = data.shape[axis]
    if sizes is None:
        count = int(attributes["num_outputs"])
        if not 0 < count <= dim:
            raise ValueError(f"{count} pieces of {dim}")
        ends = [min(-(-dim // count) * (k + 1), dim) for k in range(count - 1)]
    else:
        pieces = _ints(sizes)
        if any(piece < 0 for piece in pieces) or sum(pieces) != dim:
            raise ValueError(f"{len(pieces)} pieces of an axis of {dim}, together {sum(pieces)}")
        ends = np.cumsum(pieces)[:-1].tolist()
    return list(np.split(data, ends, axis))


def _expand(inputs: list[Any], attributes: Attributes) -> list[Any]:
    dims = np.broadcast_shapes(inputs[0].shape, tuple(_ints(inputs[1])))
    check_count(dims)
    return [np.broadcast_to(inputs[0], dims)]


def _tile(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, repeats = inputs[0], _ints(inputs[1])
    if len(repeats) != data.ndim:
        raise ValueError(f"{len(repeats)} repeats for rank {data.ndim}")
    check_count([dim * times for dim, times in zip(data.shape, repeats, strict=True)])
    return [np.tile(data, repeats)]


def _where(inputs: list[Any], attributes: Attributes) -> list[Any]:
    check_count(np.broadcast_shapes(*(each.shape for each in inputs)))
    return [np.where(*inputs)]


def _compress(inputs: list[Any], attributes: Attributes) -> list[Any]:
    return [np.compress(inputs[1], inputs[0], attributes.get("axis"))]


def _shape(inputs: list[Any], attributes: Attributes) -> list[Any]:
    return [np.array(inputs[0].shape[attributes.get("start", 0) : attributes.get("end")], np.int64)]


def _size(inputs: list[Any], attributes: Attributes) -> list[Any]:
    return [np.array(inputs[0].size, np.int64)]


OPERATORS: dict[str, Function] = {
    "Compress": _compress,
    "Concat": _concat,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
