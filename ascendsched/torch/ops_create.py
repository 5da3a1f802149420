"""Tensors that are made from numbers and sizes, and sizes that are read from tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, dtype_name, lowers

aten = torch.ops.aten


def _filled(c: Lowering, meta: Any, value: Any, shape: Tensor) -> Tensor:
    return c.op("Expand", c.cast(value, dtype_name(meta.dtype)), shape)


def _full_of(c: Lowering, meta: Any, value: Any, size: Sequence[Any]) -> Tensor:
    if not size:
        return c.cast(value, dtype_name(meta.dtype))
    return _filled(c, meta, value, c.sizes(size))


@lowers(aten.full.default)
def _full(c: Lowering, meta: Any, size: Sequence[Any], value: Any, **_: Any) -> Tensor:
    return _full_of(c, meta, value, size)


@lowers(aten.zeros.default, aten.empty.memory_format)
def _zeros(c: Lowering, meta: Any, size: Sequence[Any], **_: Any) -> Tensor:
    return _full_of(c, meta, 0, size)


@lowers(aten.empty_permuted.default)
def _empty_permuted(c: Lowering, meta: Any, size: Sequence[Any], order: Sequence[int], **_: Any) -> Tensor:
    return _full_of(c, meta, 0, size)


@lowers(aten.ones.default)
def _ones(c: Lowering, meta: Any, size: Sequence[Any], **_: Any) -> Tensor:
    return _full_of(c, meta, 1, size)


@lowers(aten.full_like.default)
def _full_like(c: Lowering, meta: Any, x: Value, value: Any, **_: Any) -> Tensor:
    return c.cast(value, dtype_name(meta.dtype)) if x.rank == 0 else _filled(c, meta, value, c.shape_of(x))


@lowers(aten.zeros_like.default, aten.empty_like.default)
def _zeros_like(c: Lowering, meta: Any, x: Value, **_: Any) -> Tensor:
    return _full_like(c, meta, x, 0)


@lowers(aten.ones_like.default)
def _ones_like(c: Lowering, meta: Any, x: Value, **_: Any) -> Tensor:
    return _full_like(c, meta, x, 1)


@lowers(aten.scalar_tensor.default)
def _scalar_tensor(c: Lowering, meta: Any, value: Any, **_: Any) -> Tensor:
    return c.cast(value, dtype_name(meta.dtype))


@lowers(aten.arange.start_step)
def _arange(c: Lowering, meta: Any, start: Any, end: Any, step: Any = 1, **_: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    if not any(isinstance(v, Value) for v in (start, end, step)):
        return c.constant(np.arange(start, end, step), dtype)
    whole = "int64" if all(isinstance(v, (int, Value)) for v in (start, end, step)) else dtype
    made = c.op("Range", *(c.cast(v, whole) for v in (start, end, step)))
    return made if whole == dtype else c.cast_tensor(made, dtype)


@lowers(aten.arange.start)
def _arange_start(c: Lowering, meta: Any, start: Any, end: Any, **_: Any) -> Tensor:
    return _arange(c, meta, start, end)


@lowers(aten.arange.default)
def _arange_end(c: Lowering, meta: Any, end: Any, **_: Any) -> Tensor:
    return _arange(c, meta, 0, end)


@lowers(aten.sym_size.int)
def _sym_size(c: Lowering, meta: Any, x: Value, dim: int) -> Tensor:
    return c.op("Squeeze", c.dim(x.tensor, x.axis(dim)), c.constant([0]))
