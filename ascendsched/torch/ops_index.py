"""Indexing of ATen: reading and replacing what indices, masks and slices name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, is_same_size, lowers, refuse
from ascendsched.torch.ops_division import floor_divide

aten = torch.ops.aten
_END = np.iinfo(np.int64).max
_MUCH = 8  # rows that are more than one in so many are not worth an index per element


@lowers(aten.gather.default)
def _gather(c: Lowering, meta: Any, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Tensor:
    if x.rank == 0 or index.rank != x.rank:
        raise refuse("gather of rank 0")
    return c.op("GatherElements", x.tensor, index.tensor, axis=x.axis(dim))


@lowers(aten.index_select.default)
def _index_select(c: Lowering, meta: Any, x: Value, dim: int, index: Value) -> Tensor:
    if x.rank == 0 or index.rank != 1:
        raise refuse("index_select of rank 0")
    return c.op("Gather", x.tensor, index.tensor, axis=x.axis(dim))


@lowers(aten.embedding.default)
def _embedding(c: Lowering, meta: Any, weight: Value, indices: Value, *_: Any) -> Tensor:
    return c.op("Gather", weight.tensor, indices.tensor, axis=0)


def _axes_of(indices: Sequence[Value | None]) -> tuple[list[int], list[Value]]:
    """Axes that are indexed, and their indices."""
    axes = [i for i, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    if not given or any(index.dtype not in {"int64", "int32"} for index in given):
        raise refuse("indexing by masks, whose result has a shape that depends on data")
    return axes, given


def _is_each_its_own(given: Sequence[Value]) -> bool:
    """Whether index k varies along dimension k of the result alone: a grid, read axis by axis."""
    count = len(given)
    for k, index in enumerate(given):
        own = k - (count - index.rank)  # dimension of the index, which are aligned at the last one
        if index.rank > count or own < 0 or any(not is_same_size(s, 1) for d, s in enumerate(index.shape) if d != own):
            return False
    return True


def _together(c: Lowering, given: Sequence[Value]) -> Tensor:
    """Indices of several axes as the last axis of one tensor."""
    rank = max(index.rank for index in given)
    shape = given[0].tensor
    for index in given[1:]:  # broadcast by adding zeros
        shape = c.op("Add", shape, c.op("Mul", index.tensor, c.constant(0, index.dtype)))
    whole = c.op("Shape", shape)
    parts = [c.op("Unsqueeze", c.op("Expand", c.cast(i, "int64"), whole), c.constant([rank])) for i in given]
    return c.op("Concat", *parts, axis=rank)


def to_front(c: Lowering, x: Value, axes: Sequence[int]) -> tuple[Tensor, list[int]]:
    """`x` with some axes first, and the order of the others."""
    others = [axis for axis in range(x.rank) if axis not in axes]
    perm = [*axes, *others]
    return (x.tensor if perm == list(range(x.rank)) else c.op("Transpose", x.tensor, perm=perm)), others


def _is_block(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


def _result_order(axes: Sequence[int], others: Sequence[int], rank: int) -> list[int]:
    """Where torch has the dimensions [indices, others]: those of the indices stand where adjacent axes stood."""
    before = sum(axis < axes[0] for axis in others) if _is_block(axes) else 0
    moved = list(range(rank, rank + len(others)))
    return [*moved[:before], *range(rank), *moved[before:]]


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def _index(c: Lowering, meta: Any, x: Value, indices: Sequence[Value | None]) -> Tensor:
    axes, given = _axes_of(indices)
    if len(axes) == 1:
        return c.op("Gather", x.tensor, given[0].tensor, axis=axes[0])
    if _is_block(axes) and _is_each_its_own(given):
        made = x.tensor
        for axis, index in reversed(list(zip(axes, given, strict=True))):
            flat = index.tensor if index.rank == 1 else c.op("Reshape", index.tensor, c.constant([-1]))
            made = c.op("Gather", made, flat, axis=axis)
        return made
    data, others = to_front(c, x, axes)
    made = c.op("GatherND", data, _together(c, given))
    order = _result_order(axes, others, max(index.rank for index in given))
    return made if order == sorted(order) else c.op("Transpose", made, perm=order)


def _put_mask(c: Lowering, x: Value, mask: Value, values: Value, accumulate: bool) -> Tensor:
    behind = list(range(mask.rank, x.rank))  # dimensions of what each bit stands for
    before = values.shape[: max(values.rank - len(behind), 0)]
    if accumulate or not all(is_same_size(size, 1) for size in before):
        raise refuse("index_put of several values where a mask is set")
    bits = c.op("Unsqueeze", mask.tensor, c.constant(behind)) if behind else mask.tensor
    value = c.cast(values, x.dtype)
    if values.rank > x.rank:
        value = c.op("Squeeze", value, c.constant(list(range(values.rank - x.rank))))
    return c.op("Where", bits, value, x.tensor)


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def _index_put(
    c: Lowering, meta: Any, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> Tensor:
    first = indices[0] if indices else None
    if first is not None and first.dtype == "bool" and len(indices) == 1:
        return _put_mask(c, x, first, values, accumulate)
    axes, given = _axes_of(indices)
    reduction = "add" if accumulate else "none"
    if len(axes) > 1:
        return _put_together(c, x, axes, given, values, reduction)
    axis, index = axes[0], given[0]
    if index.rank != 1:
        raise refuse("index_put of one axis by indices of rank other than 1")
    shape = [*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]]
    places = c.cast(index, "int64")
    if values.rank == len(shape) and all(map(is_same_size, values.shape, shape)):
        return _put(c, x, axis, places, c.cast(values, x.dtype), reduction)
    before = c.op("Shape", x.tensor, start=0, end=axis) if axis else None
    after = c.op("Shape", x.tensor, start=axis + 1) if axis + 1 < x.rank else None
    parts = [part for part in (before, c.op("Shape", index.tensor), after) if part is not None]
    target = parts[0] if len(parts) == 1 else c.op("Concat", *parts, axis=0)
    return _put(c, x, axis, places, c.op("Expand", c.cast(values, x.dtype), target), reduction)


def _put_together(c: Lowering, x: Value, axes: list[int], given: list[Value], values: Value, reduction: str) -> Tensor:
    rank = max(index.rank for index in given)
    together = _together(c, given)
    data, others = to_front(c, x, axes)
    order = _result_order(axes, others, rank)
    rows = c.cast(values, x.dtype)
    target = c.op("Concat", c.op("Shape", together, end=rank), c.op("Shape", data, start=len(axes)), axis=0)
    if order == sorted(order):
        made = c.op("ScatterND", data, together, c.op("Expand", rows, target), reduction=reduction)
    else:
        in_order = c.op("Gather", target, c.constant(order), axis=0)
        back = [order.index(d) for d in range(len(order))]
        rows = c.op("Transpose", c.op("Expand", rows, in_order), perm=back)
        made = c.op("ScatterND", data, together, rows, reduction=reduction)
    perm = [*axes, *others]
    if perm == list(range(x.rank)):
        return made
    return c.op("Transpose", made, perm=[perm.index(axis) for axis in range(x.rank)])


def _put(c: Lowering, x: Value, axis: int, places: Tensor, rows: Tensor, reduction: str = "none") -> Tensor:
    """`x` with what lies at `places` (a list) along an axis replaced, over the memory of `x` where that may be."""
    if axis == 0:
        return c.op("ScatterND", x.tensor, c.op("Unsqueeze", places, c.constant([1])), rows, reduction=reduction)
    # One index per element: that is less than moving the axis of all of x to the front and back.
    if behind := list(range(1, x.rank - axis)):
        places = c.op("Unsqueeze", places, c.constant(behind))
    spread = c.op("Expand", places, c.op("Shape", rows))
    return c.op("ScatterElements", x.tensor, spread, rows, axis=axis, reduction=reduction)


def _source(c: Lowering, x: Value, index: Value, source: Value) -> Tensor:
    """The part of a source that has indices."""
    if x.rank == 0 or index.rank != x.rank or source.rank != x.rank:
        raise refuse("scatter of rank 0")
    rows = c.cast(source, x.dtype)
    if all(map(is_same_size, source.shape, index.shape)):
        return rows
    zeros = c.constant([0] * x.rank)
    return c.op("Slice", rows, zeros, c.op("Shape", index.tensor), c.constant(list(range(x.rank))))


@lowers(aten.scatter.src)
def _scatter(c: Lowering, meta: Any, x: Value, dim: int, index: Value, src: Value) -> Tensor:
    return c.op("ScatterElements", x.tensor, index.tensor, _source(c, x, index, src), axis=x.axis(dim))


@lowers(aten.scatter_add.default)
def _scatter_add(c: Lowering, meta: Any, x: Value, dim: int, index: Value, src: Value) -> Tensor:
    rows = _source(c, x, index, src)
    return c.op("ScatterElements", x.tensor, index.tensor, rows, axis=x.axis(dim), reduction="add")


_REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


@lowers(aten.scatter_reduce.two)
def _scatter_reduce(
    c: Lowering, meta: Any, x: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> Tensor:
    rows = _source(c, x, index, src)
    axis = x.axis(dim)
    whole = c.op("Shape", index.tensor)

    def put(data: Tensor, values: Tensor, reduction: str) -> Tensor:
        return c.op("ScatterElements", data, index.tensor, values, axis=axis, reduction=reduction)

    def put_all(data: Tensor, value: Any, reduction: str = "none") -> Tensor:
        return put(data, c.op("Expand", c.constant(value, x.dtype), whole), reduction)

    data = x.tensor
    if not include_self:
        data = put_all(data, _neutral(reduce, meta.dtype))
    made = put(data, rows, _REDUCTIONS[reduce])
    if reduce != "mean":
        return made
    start = c.op("Expand", c.constant(int(include_self), x.dtype), c.shape_of(x))
    count = c.op("Max", put_all(start, 1, "add"), c.constant(1, x.dtype))
    return c.op("Div", made, count) if meta.dtype.is_floating_point else floor_divide(c, made, count)


def _neutral(reduce: str, dtype: Any) -> Any:
    """What changes no reduction."""
    if reduce in {"amax", "amin"}:
        sign = -1 if reduce == "amax" else 1
        if dtype.is_floating_point:
            return sign * math.inf
        return torch.iinfo(dtype).min if sign < 0 else torch.iinfo(dtype).max
    return int(reduce == "prod")


@lowers(aten.scatter.value)
def _scatter_value(c: Lowering, meta: Any, x: Value, dim: int, index: Value, value: Any) -> Tensor:
    if x.rank == 0 or index.rank != x.rank:
        raise refuse("scatter of rank 0")
    updates = c.op("Expand", c.constant(value, x.dtype), c.shape_of(index))
    return c.op("ScatterElements", x.tensor, index.tensor, updates, axis=x.axis(dim))


def _place(c: Lowering, place: Any, total: Any) -> Any:
    """A bound of a slice counted from the front and within the axis, as a number or a tensor of rank 0."""
    if isinstance(place, int) and isinstance(total, int):
        return min(max(place + total if place < 0 else place, 0), total)
    at, size = c.zero_rank(place), c.zero_rank(total)
    if not isinstance(place, int) or place < 0:
        zero = c.constant(0)
        at = c.op("Where", c.op("Less", at, zero), c.op("Add", at, size), at)
        at = c.op("Max", at, zero)
    return c.op("Min", at, size)


def _size_along(c: Lowering, x: Value, axis: int) -> Any:
    """A size of `x`: a number, or a value of rank 0."""
    size = x.shape[axis]
    if isinstance(size, int):
        return size
    return Value(c.op("Squeeze", c.dim(x.tensor, axis), c.constant([0])), size)


def _between(c: Lowering, x: Value, axis: int, first: int, last: int, rows: Tensor) -> Tensor:
    """`rows` with what `x` has before and behind them along an axis."""
    parts = [rows]
    if first > 0:
        parts.insert(0, c.op("Slice", x.tensor, c.constant([0]), c.constant([first]), c.constant([axis])))
    if last < x.shape[axis]:
        parts.append(c.op("Slice", x.tensor, c.constant([last]), c.constant([_END]), c.constant([axis])))
    return c.op("Concat", *parts, axis=axis)


@lowers(aten.slice_scatter.default)
def _slice_scatter(
    c: Lowering, meta: Any, x: Value, source: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Tensor:
    axis = x.axis(dim)
    rows = c.cast(source, x.dtype)
    if step == 1 and is_same_size(x.shape[axis], source.shape[axis]):
        return rows
    first = _place(c, 0 if start is None else start, _size_along(c, x, axis))
    count = source.shape[axis]
    if isinstance(first, int) and isinstance(count, int) and isinstance(step, int):
        if step == 1 and axis > 0 and count * _MUCH > x.shape[axis]:
            return _between(c, x, axis, first, first + count, rows)
        places = c.constant(np.arange(first, first + count * step, step))
    else:
        first = first if isinstance(first, Tensor) else c.constant(first)
        by = c.zero_rank(step)
        size = _size_along(c, source, axis)
        last = c.op("Add", first, c.op("Mul", c.zero_rank(size), by))
        places = c.op("Range", first, last, by)
    return _put(c, x, axis, places, rows)


@lowers(aten.select_scatter.default)
def _select_scatter(c: Lowering, meta: Any, x: Value, source: Value, dim: int, index: Any) -> Tensor:
    axis = x.axis(dim)
    row = c.op("Unsqueeze", c.cast(source, x.dtype), c.constant([axis]))
    return _put(c, x, axis, c.sizes([index]), row)
