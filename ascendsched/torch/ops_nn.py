"""Neural-network operators of ATen: convolution, pooling, attention, grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, is_same_size, lowers, refuse

aten = torch.ops.aten


@lowers(aten._softmax.default)
def _softmax(c: Lowering, meta: Any, x: Value, dim: int, half_to_float: bool) -> Tensor:
    if x.rank == 0 or half_to_float:
        raise refuse("softmax of rank 0 or of half to float")
    return c.op("Softmax", x.tensor, axis=x.axis(dim))


@lowers(aten._log_softmax.default)
def _log_softmax(c: Lowering, meta: Any, x: Value, dim: int, half_to_float: bool) -> Tensor:
    if x.rank == 0 or half_to_float:
        raise refuse("log_softmax of rank 0 or of half to float")
    return c.op("LogSoftmax", x.tensor, axis=x.axis(dim))


@lowers(aten.convolution.default)
def _convolution(
    c: Lowering,
    meta: Any,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    spatial = weight.rank - 2
    if x.rank != weight.rank:
        raise refuse("convolution without a batch")

    def whole(values: Sequence[int]) -> list[int]:
        return list(values) * (spatial if len(values) == 1 else 1)

    attributes: dict[str, Any] = {
        "strides": whole(stride),
        "pads": whole(padding) * 2,
        "dilations": whole(dilation),
        "group": groups,
    }
    if is_transposed:
        attributes["output_padding"] = whole(output_padding)
    operands = (x.tensor, weight.tensor, *(() if bias is None else (bias.tensor,)))
    return c.op("ConvTranspose" if is_transposed else "Conv", *operands, **attributes)


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def _attention(
    c: Lowering,
    meta: Any,
    q: Value,
    k: Value,
    v: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    if dropout_p:
        raise refuse("attention with dropout")
    heads, shared = q.shape[1], k.shape[1]
    width = q.shape[-1]
    if not is_same_size(heads, shared) and not all(isinstance(s, int) for s in (heads, shared, width, v.shape[-1])):
        raise refuse("attention with a number of heads or a width that varies, where heads share keys")
    dtype = q.dtype if q.dtype == "float64" else "float32"  # as torch, which rounds once in the end
    keys, values = c.cast(k, dtype), c.cast(v, dtype)
    queries = c.op("Mul", c.cast(q, dtype), _attention_factor(c, q, dtype, scale))
    if heads != shared:  # query heads that share keys become further rows
        queries = c.op("Reshape", queries, c.constant([0, shared, -1, width]))
    scores = c.op("MatMul", queries, c.op("Transpose", keys, perm=[0, 1, 3, 2]))
    if heads != shared:
        scores = c.op("Reshape", scores, c.constant([0, heads, -1, 0]))
    if is_causal:
        shape = c.op("Concat", c.dim(q.tensor, 2), c.dim(k.tensor, 2), axis=0)
        full = c.op("Expand", c.constant(-math.inf, dtype), shape)
        scores = c.op("Add", scores, c.op("Trilu", full, c.constant(1), upper=1))
    mask = None if attn_mask is None else c.cast(attn_mask, dtype)
    weights = c.op("Softmax", scores if mask is None else c.op("Add", scores, mask), axis=-1)
    if heads != shared:
        weights = c.op("Reshape", weights, c.constant([0, shared, -1, 0]))
    made = c.op("MatMul", weights, values)
    if heads != shared:
        made = c.op("Reshape", made, c.constant([0, heads, -1, v.shape[-1]]))
    if mask is not None:  # rows that see nothing are zero in torch
        highest = c.op("ReduceMax", mask, c.constant([-1]), keepdims=1)
        is_blind = c.op("Equal", highest, c.constant(-math.inf, dtype))
        made = c.op("Where", is_blind, c.constant(0, dtype), made)
    return (made if q.dtype == dtype else c.cast_tensor(made, q.dtype)), None


def _attention_factor(c: Lowering, q: Value, dtype: str, scale: float | None) -> Tensor:
    width = q.shape[-1]
    if scale is not None:
        return c.constant(scale, dtype)
    if isinstance(width, int):
        return c.constant(1 / math.sqrt(width), dtype)
    return c.op("Reciprocal", c.op("Sqrt", c.cast_tensor(c.dim(q.tensor, q.rank - 1), dtype)))


@lowers(aten.grid_sampler_2d.default)
def _grid_sampler(
    c: Lowering, meta: Any, x: Value, grid: Value, interpolation: int, padding: int, align_corners: bool
) -> Tensor:
    return c.op(
        "GridSample",
        x.tensor,
        grid.tensor,
        mode=("linear", "nearest", "cubic")[interpolation],
        padding_mode=("zeros", "border", "reflection")[padding],
        align_corners=int(align_corners),
    )
