"""Reductions of ATen over groups of rows, and counts by value."""

from __future__ import annotations

import math
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, is_same_size, lowers, refuse

aten = torch.ops.aten


@lowers(aten.histc.default)
def _histc(c: Lowering, meta: Any, x: Value, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    if isinstance(min, Value) or isinstance(max, Value) or not min < max:
        raise refuse("histc of bounds that the values give")
    values = c.op("Reshape", x.tensor, c.constant([-1]))
    low, high = c.constant(min, x.dtype), c.constant(max, x.dtype)
    is_inside = c.op("And", c.op("GreaterOrEqual", values, low), c.op("LessOrEqual", values, high))
    values = c.op("Where", is_inside, values, low)  # what lies outside counts nothing, below
    share = c.op("Mul", c.op("Sub", values, low), c.constant(bins, x.dtype))
    place = c.cast_tensor(c.op("Div", share, c.op("Sub", high, low)), "int64")
    place = c.op("Min", place, c.constant(bins - 1))
    empty = c.constant([0] * bins, x.dtype)
    return c.op("ScatterElements", empty, place, c.cast_tensor(is_inside, x.dtype), axis=0, reduction="add")


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def _embedding_bag(
    c: Lowering,
    meta: Any,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor | None, ...]:
    rows = c.op("Gather", weight.tensor, indices.tensor, axis=0)
    if per_sample_weights is not None:
        rows = c.op("Mul", rows, c.op("Unsqueeze", per_sample_weights.tensor, c.constant([1])))
    is_counted = None
    if padding_idx >= 0:
        is_counted = c.op("Not", c.op("Equal", indices.tensor, c.constant(padding_idx, indices.dtype)))
    nothing = c.constant(-math.inf if mode == 2 else 0, weight.dtype)
    if is_counted is not None:
        rows = c.op("Where", c.op("Unsqueeze", is_counted, c.constant([1])), rows, nothing)
    count = c.op("Sub", c.dim(offsets.tensor, 0), c.constant([int(include_last_offset)]))
    bags = c.op("Unsqueeze", _bags(c, indices, offsets, count), c.constant([1]))
    start = c.op("Expand", nothing, c.op("Concat", count, c.dim(weight.tensor, 1), axis=0))
    made = c.op("ScatterND", start, bags, rows, reduction="max" if mode == 2 else "add")
    if mode == 0:
        return made, None, None, None
    total = c.op("Expand", c.constant(0, weight.dtype), c.op("Concat", count, c.constant([1]), axis=0))
    ones = c.op("Expand", c.constant(1, weight.dtype), c.op("Shape", bags))
    if is_counted is not None:
        ones = c.op("Unsqueeze", c.cast_tensor(is_counted, weight.dtype), c.constant([1]))
    total = c.op("ScatterND", total, bags, ones, reduction="add")
    if mode == 1:
        made = c.op("Div", made, c.op("Max", total, c.constant(1, weight.dtype)))
    else:
        zero = c.constant(0, weight.dtype)
        made = c.op("Where", c.op("Greater", total, zero), made, zero)
    return made, None, None, None


def _bags(c: Lowering, indices: Value, offsets: Value, count: Tensor) -> Tensor:
    """The bag of each index. Those before the first offset or behind the last have one that there is not: an error."""
    size = c.dim(indices.tensor, 0)
    starts = c.op("Expand", c.constant(0), c.op("Add", size, c.constant([1])))
    ones = c.op("Expand", c.constant(1), c.op("Shape", offsets.tensor))
    starts = c.op("ScatterElements", starts, c.cast(offsets, "int64"), ones, axis=0, reduction="add")
    begun = c.op("Slice", c.op("CumSum", starts, c.constant(0)), c.constant([0]), size, c.constant([0]))
    is_before = c.op("Equal", begun, c.constant(0))
    return c.op("Where", is_before, count, c.op("Sub", begun, c.constant(1)))


@lowers(aten._cdist_forward.default)
def _cdist(c: Lowering, meta: Any, a: Value, b: Value, p: float, mode: Any = None) -> Tensor:
    if a.rank != b.rank or not all(map(is_same_size, a.shape[:-2], b.shape[:-2])):
        raise refuse("distances of batches of different sizes")
    first = c.op("Unsqueeze", a.tensor, c.constant([a.rank - 1]))
    second = c.op("Unsqueeze", b.tensor, c.constant([a.rank - 2]))
    apart, last = c.op("Sub", first, second), c.constant([-1])
    if p in {1, 2}:
        return c.op(f"ReduceL{int(p)}", apart, last, keepdims=0)
    apart = c.op("Abs", apart)
    if p == 0:
        is_other = c.op("Not", c.op("Equal", apart, c.constant(0, a.dtype)))
        return c.op("ReduceSum", c.cast_tensor(is_other, a.dtype), last, keepdims=0)
    if math.isinf(p):
        return c.op("ReduceMax", apart, last, keepdims=0)
    total = c.op("ReduceSum", c.op("Pow", apart, c.constant(p, a.dtype)), last, keepdims=0)
    return c.op("Pow", total, c.constant(1 / p, a.dtype))


@lowers("transformers.grouped_mm_fallback.default")
def _grouped_product(c: Lowering, meta: Any, a: Value, weights: Value, ends: Value) -> Tensor:
    """Mixtures of experts: rows that follow one another are multiplied by the matrix of their expert."""
    if a.dtype != weights.dtype or a.dtype not in {"float32", "float64"}:
        raise refuse(f"products of groups of {a.dtype}")
    kept = c.transposed.get(weights.tensor)
    b = weights.tensor if kept is None else kept
    return c.op("GroupedMatMul", a.tensor, b, ends.tensor, transB=int(kept is not None))
