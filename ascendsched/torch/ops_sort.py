"""Operators of ATen that order elements."""

from __future__ import annotations

from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, lowers, refuse

aten = torch.ops.aten


@lowers(aten.sort.default, aten.sort.stable)
def _sort(
    c: Lowering, meta: Any, x: Value, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Tensor, ...]:
    if x.rank == 0 or x.dtype == "bool":
        raise refuse("sort of rank 0 or of bool")
    axis = x.axis(dim)
    pair = c.op("TopK", x.tensor, c.dim(x.tensor, axis), outputs=2, axis=axis, largest=int(descending), sorted=1)
    return tuple(pair)


@lowers(aten.topk.default)
def _topk(
    c: Lowering, meta: Any, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, ...]:
    if x.rank == 0:
        raise refuse("topk of rank 0")
    pair = c.op("TopK", x.tensor, c.sizes([k]), outputs=2, axis=x.axis(dim), largest=int(largest), sorted=int(sorted))
    return tuple(pair)


@lowers(aten.kthvalue.default)
def _kthvalue(c: Lowering, meta: Any, x: Value, k: Any, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, ...]:
    if not isinstance(k, int) or x.dtype == "bool":
        raise refuse("kthvalue of a place that varies, or of bool")
    sorted_ = _topk(c, meta, x, k, dim, largest=False)
    place = c.constant([k - 1] if keepdim else k - 1)
    return tuple(c.op("Gather", t, place, axis=x.axis(dim)) for t in sorted_)
