"""Views, data movement, indexing and tensor creation of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, dtype_name, is_same_size, lowers, refuse

aten = torch.ops.aten
_END = np.iinfo(np.int64).max
_MUCH = 8  # rows that are more than one in so many are not worth an index per element


@lowers(
    aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default,
    aten.contiguous.default, aten._to_copy.default, aten.dropout.default,
)  # fmt: skip
def _copy(c: Lowering, meta: Any, x: Value, *_: Any, **__: Any) -> Tensor:
    if meta.device.type != "cpu":
        raise refuse(f"device {meta.device}")
    return c.cast(x, dtype_name(meta.dtype))


@lowers(aten.copy.default)
def _copy_into(c: Lowering, meta: Any, x: Value, source: Value, non_blocking: bool = False) -> Tensor:
    return _expand_to(c, c.cast(source, dtype_name(meta.dtype)), source.shape, x)


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def _view(c: Lowering, meta: Any, x: Value, size: Sequence[Any]) -> Tensor:
    sizes = list(size)
    moving = [i for i, s in enumerate(sizes) if isinstance(s, Value)]
    has_zero = any(isinstance(s, int) and s == 0 for s in sizes)
    if len(moving) == 1 and not has_zero and -1 not in sizes:
        sizes[moving[0]] = -1  # what varies follows from the rest: the shape is a constant
    return c.op("Reshape", x.tensor, c.sizes(sizes), allowzero=int(has_zero))


@lowers(aten.view.dtype)
def _view_dtype(c: Lowering, meta: Any, x: Value, dtype: Any) -> Tensor:
    raise refuse("views as another element type")


@lowers(aten.permute.default)
def _permute(c: Lowering, meta: Any, x: Value, dims: Sequence[int]) -> Tensor:
    perm = [x.axis(d) for d in dims]
    made = c.op("Transpose", x.tensor, perm=perm)
    if perm == [1, 0]:
        c.transposed[made] = x.tensor
    return made


@lowers(aten.transpose.int)
def _transpose(c: Lowering, meta: Any, x: Value, a: int, b: int) -> Tensor:
    if x.rank == 0:
        return x.tensor
    perm = list(range(x.rank))
    a, b = x.axis(a), x.axis(b)
    perm[a], perm[b] = b, a
    return _permute(c, meta, x, perm)


@lowers(aten.t.default)
def _t(c: Lowering, meta: Any, x: Value) -> Tensor:
    return x.tensor if x.rank < 2 else _permute(c, meta, x, [1, 0])


@lowers(aten.unsqueeze.default)
def _unsqueeze(c: Lowering, meta: Any, x: Value, dim: int) -> Tensor:
    return c.op("Unsqueeze", x.tensor, c.constant([dim if dim >= 0 else dim + x.rank + 1]))


@lowers(aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default)
def _squeeze(c: Lowering, meta: Any, x: Value, dim: Any = None) -> Tensor:
    wanted = range(x.rank) if dim is None else [x.axis(d) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
    axes = [d for d in wanted if d < x.rank and is_same_size(x.shape[d], 1)]
    if len(axes) != x.rank - meta.dim():
        raise refuse("squeeze of a size that varies")
    return c.op("Squeeze", x.tensor, c.constant(axes)) if axes else x.tensor


def _expand_to(c: Lowering, tensor: Tensor, shape: list[Any], like: Value) -> Tensor:
    if len(shape) == like.rank and all(map(is_same_size, shape, like.shape)):
        return tensor
    return c.op("Expand", tensor, c.shape_of(like))


@lowers(aten.expand.default)
def _expand(c: Lowering, meta: Any, x: Value, size: Sequence[Any], *, implicit: bool = False) -> Tensor:
    before = [1] * (len(size) - x.rank) + x.shape
    sizes = [1 if is_same_size(old, new) else s for old, new, s in zip(before, meta.shape, size, strict=True)]
    if all(isinstance(s, int) and s == 1 for s in sizes) and len(sizes) == x.rank:
        return x.tensor
    return c.op("Expand", x.tensor, c.sizes(sizes))


@lowers(aten.repeat.default)
def _repeat(c: Lowering, meta: Any, x: Value, repeats: Sequence[Any]) -> Tensor:
    made = x.tensor
    if len(repeats) > x.rank:
        made = c.op("Unsqueeze", made, c.constant(list(range(len(repeats) - x.rank))))
    return c.op("Tile", made, c.sizes(repeats))


def _as_list(c: Lowering, size: Any) -> Tensor:
    return c.sizes([size])


@lowers(aten.slice.Tensor)
def _slice(c: Lowering, meta: Any, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Tensor:
    start = 0 if start is None else start
    end = _END if end is None else end
    axis = x.axis(dim)
    if step == 1 and is_same_size(x.shape[axis], meta.shape[axis]):
        return x.tensor
    parts = _as_list(c, start), _as_list(c, end), c.constant([axis]), _as_list(c, step)
    return c.op("Slice", x.tensor, *parts)


@lowers(aten.select.int)
def _select(c: Lowering, meta: Any, x: Value, dim: int, index: Any) -> Tensor:
    return c.op("Gather", x.tensor, c.zero_rank(index), axis=x.axis(dim))


@lowers(aten.cat.default)
def _cat(c: Lowering, meta: Any, tensors: Sequence[Value], dim: int = 0) -> Tensor:
    dtype = dtype_name(meta.dtype)
    rank = meta.dim()
    # torch skips the empty lists that caches start with, whatever the rank of the others.
    parts = [c.cast(t, dtype) for t in tensors if t.rank == rank and not (rank > 1 and is_same_size(t.shape[dim], 0))]
    if not parts:
        return c.cast(tensors[0], dtype)
    if len(parts) == 1:
        return parts[0]
    return c.op("Concat", *parts, axis=dim + rank if dim < 0 else dim)


@lowers(aten.stack.default)
def _stack(c: Lowering, meta: Any, tensors: Sequence[Value], dim: int = 0) -> Tensor:
    dtype = dtype_name(meta.dtype)
    axis = dim + meta.dim() if dim < 0 else dim
    parts = [c.op("Unsqueeze", c.cast(t, dtype), c.constant([axis])) for t in tensors]
    return parts[0] if len(parts) == 1 else c.op("Concat", *parts, axis=axis)


@lowers(aten.split_with_sizes.default)
def _split_with_sizes(c: Lowering, meta: Any, x: Value, sizes: Sequence[Any], dim: int = 0) -> tuple[Tensor, ...]:
    if len(sizes) == 1:
        return (x.tensor,)
    return tuple(c.op("Split", x.tensor, c.sizes(sizes), outputs=len(sizes), axis=x.axis(dim)))


@lowers(aten.split.Tensor)
def _split(c: Lowering, meta: Any, x: Value, size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    axis = x.axis(dim)
    sizes = [part.shape[axis] for part in meta]
    if not all(isinstance(s, int) for s in sizes):
        raise refuse("split of a size that varies")
    return _split_with_sizes(c, meta, x, sizes, axis)


@lowers(aten.unbind.int)
def _unbind(c: Lowering, meta: Any, x: Value, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(_select(c, part, x, dim, i) for i, part in enumerate(meta))


@lowers(aten.flip.default)
def _flip(c: Lowering, meta: Any, x: Value, dims: Sequence[int]) -> Tensor:
    axes = [x.axis(d) for d in dims]
    if not axes:
        return x.tensor
    n = len(axes)
    ends = c.constant([-_END] * n)
    return c.op("Slice", x.tensor, c.constant([-1] * n), ends, c.constant(axes), c.constant([-1] * n))


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


def _indices(c: Lowering, x: Value, indices: Sequence[Value | None]) -> tuple[list[int], Tensor | None, list[Value]]:
    """Axes that are indexed, their indices as the last axis of one tensor (None for a single one), and as given."""
    axes = [i for i, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    if any(index.dtype not in {"int64", "int32"} for index in given):
        raise refuse("indexing by masks, whose result has a shape that depends on data")
    if len(axes) == 1:
        return axes, None, given
    if axes != list(range(axes[0], axes[0] + len(axes))) or axes[0] != 0:
        raise refuse("indexing of axes that are not the leading ones")
    rank = max(index.rank for index in given)
    shape = given[0].tensor
    for index in given[1:]:  # broadcast by adding zeros
        shape = c.op("Add", shape, c.op("Mul", index.tensor, c.constant(0, index.dtype)))
    whole = c.op("Shape", shape)
    parts = [c.op("Unsqueeze", c.op("Expand", c.cast(i, "int64"), whole), c.constant([rank])) for i in given]
    return axes, c.op("Concat", *parts, axis=rank), given


@lowers(aten.index.Tensor)
def _index(c: Lowering, meta: Any, x: Value, indices: Sequence[Value | None]) -> Tensor:
    axes, together, given = _indices(c, x, indices)
    if together is None:
        return c.op("Gather", x.tensor, given[0].tensor, axis=axes[0])
    return c.op("GatherND", x.tensor, together)


@lowers(aten.index_put.default)
def _index_put(
    c: Lowering, meta: Any, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> Tensor:
    axes, together, given = _indices(c, x, indices)
    reduction = "add" if accumulate else "none"
    if together is not None:
        rank = max(index.rank for index in given)
        target = c.op("Concat", c.op("Shape", together, end=rank), c.op("Shape", x.tensor, start=len(axes)), axis=0)
        spread = c.op("Expand", c.cast(values, x.dtype), target)
        return c.op("ScatterND", x.tensor, together, spread, reduction=reduction)
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


def _put(c: Lowering, x: Value, axis: int, places: Tensor, rows: Tensor, reduction: str = "none") -> Tensor:
    """`x` with what lies at `places` (a list) along an axis replaced, over the memory of `x` where that may be."""
    if axis == 0:
        return c.op("ScatterND", x.tensor, c.op("Unsqueeze", places, c.constant([1])), rows, reduction=reduction)
    # One index per element: that is less than moving the axis of all of x to the front and back.
    if behind := list(range(1, x.rank - axis)):
        places = c.op("Unsqueeze", places, c.constant(behind))
    spread = c.op("Expand", places, c.op("Shape", rows))
    return c.op("ScatterElements", x.tensor, spread, rows, axis=axis, reduction=reduction)


@lowers(aten.scatter.src, aten.scatter_add.default)
def _scatter(c: Lowering, meta: Any, x: Value, dim: int, index: Value, src: Value) -> Tensor:
    raise refuse("scatter with a source that may be larger than its indices")


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


@lowers(aten.constant_pad_nd.default)
def _pad(c: Lowering, meta: Any, x: Value, pad: Sequence[Any], value: Any = 0) -> Tensor:
    count = len(pad) // 2
    axes = list(range(x.rank - 1, x.rank - 1 - count, -1))
    pads = c.sizes([*pad[0::2], *pad[1::2]])
    return c.op("Pad", x.tensor, pads, c.constant(value, x.dtype), c.constant(axes))


@lowers(aten.tril.default)
def _tril(c: Lowering, meta: Any, x: Value, diagonal: Any = 0) -> Tensor:
    return c.op("Trilu", x.tensor, c.zero_rank(diagonal), upper=0)


@lowers(aten.triu.default)
def _triu(c: Lowering, meta: Any, x: Value, diagonal: Any = 0) -> Tensor:
    return c.op("Trilu", x.tensor, c.zero_rank(diagonal), upper=1)


@lowers(aten.topk.default)
def _topk(
    c: Lowering, meta: Any, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, ...]:
    if x.rank == 0:
        raise refuse("topk of rank 0")
    pair = c.op("TopK", x.tensor, c.sizes([k]), outputs=2, axis=x.axis(dim), largest=int(largest), sorted=int(sorted))
    return tuple(pair)
