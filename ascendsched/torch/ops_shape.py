"""Views and data movement of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, dtype_name, is_same_size, lowers, refuse

aten = torch.ops.aten
_END = np.iinfo(np.int64).max


@lowers(
    aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default,
    aten.contiguous.default, aten._to_copy.default, aten.dropout.default,
)  # fmt: skip
def _copy(c: Lowering, meta: Any, x: Value, *_: Any, **__: Any) -> Tensor:
    if meta.device.type != "cpu":
        raise refuse(f"device {meta.device}")
    return c.cast(x, dtype_name(meta.dtype))


@lowers(torch.ops.prims.convert_element_type.default)
def _convert(c: Lowering, meta: Any, x: Value, dtype: Any) -> Tensor:
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
    is_literal = has_zero or (len(moving) > 1 and -1 not in sizes)  # what varies may be zero
    return c.op("Reshape", x.tensor, c.sizes(sizes), allowzero=int(is_literal))


@lowers(aten.view.dtype)
def _view_dtype(c: Lowering, meta: Any, x: Value, dtype: Any) -> Tensor:
    raise refuse("views as another element type")


@lowers(aten.permute.default)
def _permute(c: Lowering, meta: Any, x: Value, dims: Sequence[int]) -> Tensor:
    perm = [x.axis(d) for d in dims]
    made = c.op("Transpose", x.tensor, perm=perm)
    if x.rank > 1 and perm == [*range(x.rank - 2), x.rank - 1, x.rank - 2]:
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
