"""Normalisations of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, lowers, refuse

aten = torch.ops.aten


@lowers(aten.native_layer_norm.default)
def _layer_norm(
    c: Lowering, meta: Any, x: Value, shape: Sequence[Any], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Tensor | None, ...]:
    if not all(isinstance(s, int) for s in shape):
        raise refuse("layer norm over a size that varies")
    scale = weight.tensor if weight is not None else c.op("Expand", c.constant(1, x.dtype), c.sizes(shape))
    shift = bias.tensor if bias is not None else None
    made = c.op("LayerNormalization", x.tensor, scale, shift, axis=x.rank - len(shape), epsilon=float(eps))
    return made, None, None


@lowers(aten.native_group_norm.default)
def _group_norm(
    c: Lowering,
    meta: Any,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    n: Any,
    channels: int,
    size: Any,
    groups: int,
    eps: float,
) -> tuple[Tensor | None, ...]:
    rows = c.op("Reshape", x.tensor, c.constant([0, groups, -1]))
    apart = c.op("Sub", rows, c.op("ReduceMean", rows, c.constant([-1]), keepdims=1))
    variance = c.op("ReduceMean", c.op("Mul", apart, apart), c.constant([-1]), keepdims=1)
    normal = c.op("Div", apart, c.op("Sqrt", c.op("Add", variance, c.constant(eps, x.dtype))))
    made = c.op("Reshape", normal, c.shape_of(x))
    to_channels = c.constant([channels] + [1] * (x.rank - 2))
    for op, operand in (("Mul", weight), ("Add", bias)):
        if operand is not None:
            made = c.op(op, made, c.op("Reshape", operand.tensor, to_channels))
    return made, None, None


def _scaled(c: Lowering, x: Value, normal: Tensor, weight: Value | None, bias: Value | None) -> Tensor:
    """Times and plus one value for each channel."""
    to_channels = c.constant([-1] + [1] * (x.rank - 2))
    for op, operand in (("Mul", weight), ("Add", bias)):
        if operand is not None:
            normal = c.op(op, normal, c.op("Reshape", operand.tensor, to_channels))
    return normal


@lowers(aten._native_batch_norm_legit_no_training.default)
def _batch_norm(
    c: Lowering,
    meta: Any,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    var: Value,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    scale, shift = (
        given.tensor if given is not None else c.op("Expand", c.constant(value, x.dtype), c.shape_of(mean))
        for given, value in ((weight, 1), (bias, 0))
    )
    operands = (x.tensor, scale, shift, mean.tensor, var.tensor)
    return c.op("BatchNormalization", *operands, epsilon=float(eps)), None, None


def _normal_of_batch(c: Lowering, x: Value, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`x` normalised by channel; mean, variance and the factor, each with the rank of `x`."""
    if x.rank < 2 or x.dtype not in {"float32", "float64"}:
        raise refuse("batch norm of a batch in half precision")
    axes = c.constant([0, *range(2, x.rank)])
    mean = c.op("ReduceMean", x.tensor, axes, keepdims=1)
    apart = c.op("Sub", x.tensor, mean)
    variance = c.op("ReduceMean", c.op("Mul", apart, apart), axes, keepdims=1)
    factor = c.op("Reciprocal", c.op("Sqrt", c.op("Add", variance, c.constant(eps, x.dtype))))
    return c.op("Mul", apart, factor), mean, variance, factor


@lowers(aten._native_batch_norm_legit.no_stats)
def _batch_norm_no_stats(
    c: Lowering,
    meta: Any,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    normal, mean, _, factor = _normal_of_batch(c, x, eps)
    flat = c.constant([-1])
    made = _scaled(c, x, normal, weight, bias)
    return made, c.op("Reshape", mean, flat), c.op("Reshape", factor, flat)


@lowers(aten._native_batch_norm_legit_functional.default)
def _batch_norm_of_batch(
    c: Lowering,
    meta: Any,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    if not training:
        raise refuse("batch norm that changes nothing, in its functional form")
    normal, batch_mean, variance, factor = _normal_of_batch(c, x, eps)
    flat = c.constant([-1])
    batch_mean, variance = c.op("Reshape", batch_mean, flat), c.op("Reshape", variance, flat)
    counts = [c.dim(x.tensor, axis) for axis in range(x.rank) if axis != 1]
    count = counts[0]
    for size in counts[1:]:
        count = c.op("Mul", count, size)
    number = c.cast_tensor(count, x.dtype)
    unbiased = c.op("Mul", variance, c.op("Div", number, c.op("Sub", number, c.constant(1, x.dtype))))

    def moved(old: Value, new: Tensor) -> Tensor:
        kept = c.op("Mul", old.tensor, c.constant(1 - momentum, x.dtype))
        return c.op("Add", kept, c.op("Mul", new, c.constant(momentum, x.dtype)))

    made = _scaled(c, x, normal, weight, bias)
    saved = c.op("Reshape", factor, flat)
    return made, batch_mean, saved, moved(mean, batch_mean), moved(var, unbiased)
