"""Views of ATen that say where in memory their elements lie, or that overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, lowers, refuse
from ascendsched.torch.ops_index import to_front

aten = torch.ops.aten
_MOST = 1 << 20  # elements that are worth an index each, which the graph holds


def _places(size: Sequence[int], stride: Sequence[int], offset: int) -> np.ndarray[Any, Any]:
    """Where in memory the elements of a view lie."""
    made = np.full([1] * len(size), offset, np.int64)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        made = made + (np.arange(count) * step).reshape([-1 if d == axis else 1 for d in range(len(size))])
    return made


@lowers(aten.as_strided.default)
def _as_strided(
    c: Lowering, meta: Any, x: Value, size: Sequence[Any], stride: Sequence[Any], offset: Any = None
) -> Tensor:
    return _picked(c, x, _numbers(x, meta, size, stride, offset))


def _numbers(x: Value, view: Any, size: Sequence[Any], stride: Sequence[Any], offset: Any) -> np.ndarray[Any, Any]:
    """For each element of a view: which element of `x` it is, by number."""
    own = [*x.meta.shape, *x.meta.stride(), x.meta.storage_offset()]
    offset = own[-1] if offset is None else offset
    if not all(isinstance(v, int) for v in (*own, *size, *stride, offset)):
        raise refuse("as_strided of sizes that vary")
    if view.numel() > _MOST or x.meta.numel() > _MOST:
        raise refuse("as_strided of a large tensor")
    held = _places(own[: x.rank], own[x.rank : -1], own[-1]).ravel()
    wanted = _places(size, stride, offset)
    order = np.argsort(held, kind="stable")
    at = np.searchsorted(held[order], wanted)
    if at.size and (at.max() >= held.size or (held[order][at] != wanted).any()):
        raise refuse("as_strided beyond what a tensor holds")
    found: np.ndarray[Any, Any] = order[at]
    return found


@lowers(aten.as_strided_scatter.default)
def _as_strided_scatter(
    c: Lowering, meta: Any, x: Value, source: Value, size: Sequence[Any], stride: Sequence[Any], offset: Any = None
) -> Tensor:
    numbers = _numbers(x, source.meta, size, stride, offset)
    if not x.meta.is_contiguous() or np.unique(numbers).size != numbers.size:
        raise refuse("as_strided_scatter to a view that overlaps, or of a tensor in another order")
    flat = c.constant([-1])
    rows = c.op("Reshape", c.cast(source, x.dtype), flat)
    made = c.op("ScatterElements", c.op("Reshape", x.tensor, flat), c.constant(numbers.ravel()), rows, axis=0)
    return c.op("Reshape", made, c.sizes(x.shape), allowzero=1)


def _picked(c: Lowering, x: Value, index: np.ndarray[Any, Any]) -> Tensor:
    """The elements of `x` by number, in runs as long as they may be."""
    count = x.meta.numel()
    if index.size == count and (index.ravel() == np.arange(count)).all():
        return c.op("Reshape", x.tensor, c.sizes(index.shape), allowzero=1)
    run = index.shape[-1] if index.ndim else 1
    starts = index[..., 0] if run and index.ndim else index
    is_run = run > 1 and count % run == 0 and (index == starts[..., None] + np.arange(run)).all()
    if not is_run or (starts % run).any():
        return c.op("Gather", c.op("Reshape", x.tensor, c.constant([-1])), c.constant(index), axis=0)
    return c.op("Gather", c.op("Reshape", x.tensor, c.constant([-1, run])), c.constant(starts // run), axis=0)


@lowers(aten.unfold.default)
def _unfold(c: Lowering, meta: Any, x: Value, dim: int, size: int, step: int) -> Tensor:
    if x.rank == 0:
        raise refuse("unfold of rank 0")
    axis, count = x.axis(dim), meta.shape[x.axis(dim)]
    if isinstance(count, int):
        index = c.constant(np.arange(count)[:, None] * step + np.arange(size))
    else:
        total = c.op("Squeeze", c.dim(x.tensor, axis), c.constant([0]))
        last = c.op("Sub", total, c.constant(size - 1))
        starts = c.op("Range", c.constant(0), last, c.constant(step))
        index = c.op("Add", c.op("Unsqueeze", starts, c.constant([1])), c.constant(np.arange(size)))
    made = c.op("Gather", x.tensor, index, axis=axis)
    perm = [d for d in range(x.rank + 1) if d != axis + 1]
    return c.op("Transpose", made, perm=[*perm, axis + 1])


@lowers(aten.diagonal.default)
def _diagonal(c: Lowering, meta: Any, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    if not isinstance(offset, int):
        raise refuse("diagonal of an offset that varies")
    axes = [x.axis(dim1), x.axis(dim2)]
    starts = [max(-offset, 0), max(offset, 0)]
    if isinstance(meta.shape[-1], int):
        pairs = c.constant(np.arange(meta.shape[-1])[:, None] + np.array(starts))
    else:
        left = [c.op("Sub", c.dim(x.tensor, axis), c.constant([s])) for axis, s in zip(axes, starts, strict=True)]
        count = c.op("Squeeze", c.op("Max", c.op("Min", *left), c.constant([0])), c.constant([0]))
        places = c.op("Range", c.constant(0), count, c.constant(1))
        pairs = c.op("Add", c.op("Unsqueeze", places, c.constant([1])), c.constant(starts))
    data, others = to_front(c, x, axes)
    made = c.op("GatherND", data, pairs)
    return c.op("Transpose", made, perm=[*range(1, len(others) + 1), 0]) if others else made
