"""Normalisations of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, dtype_name, lowers, refuse

aten = torch.ops.aten
Given = Value | None


def _per_channel(c: Lowering, made: Tensor, rank: int, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Times and plus one value for each channel, the second of `rank` dimensions."""
    to_channels = c.constant([-1] + [1] * (rank - 2))
    for op, operand in (("Mul", weight), ("Add", bias)):
        if operand is not None:
            made = c.op(op, made, c.op("Reshape", operand, to_channels))
    return made


@lowers(aten.native_layer_norm.default)
def _layer_norm(
    c: Lowering, meta: Any, x: Value, shape: Sequence[Any], weight: Given, bias: Given, eps: float
) -> tuple[Tensor | None, ...]:
    scale = weight.tensor if weight is not None else c.op("Expand", c.constant(1, x.dtype), c.sizes(shape))
    shift = bias.tensor if bias is not None else None
    made = c.op("LayerNormalization", x.tensor, scale, shift, axis=x.rank - len(shape), epsilon=float(eps))
    return made, None, None


@lowers(aten.native_group_norm.default)
def _group_norm(
    c: Lowering,
    meta: Any,
    x: Value,
    weight: Given,
    bias: Given,
    n: Any,
    channels: Any,
    size: Any,
    groups: int,
    eps: float,
) -> tuple[Tensor | None, ...]:
    rows = c.op("Reshape", x.tensor, c.constant([0, groups, -1]))
    one, zero = (c.constant([value] * groups, x.dtype) for value in (1, 0))
    normal = c.op("InstanceNormalization", rows, one, zero, epsilon=float(eps))
    made = c.op("Reshape", normal, c.shape_of(x))
    operands = (None if given is None else given.tensor for given in (weight, bias))
    return _per_channel(c, made, x.rank, *operands), None, None


@lowers(aten._native_batch_norm_legit_no_training.default)
def _batch_norm(
    c: Lowering, meta: Any, x: Value, weight: Given, bias: Given, mean: Value, var: Value, momentum: float, eps: float
) -> tuple[Tensor | None, ...]:
    scale, shift = (
        given.tensor if given is not None else c.op("Expand", c.constant(value, x.dtype), c.shape_of(mean))
        for given, value in ((weight, 1), (bias, 0))
    )
    operands = (x.tensor, scale, shift, mean.tensor, var.tensor)
    return c.op("BatchNormalization", *operands, epsilon=float(eps)), None, None


class _Batch:
    """A batch normalised by channel, in float32 where it is in half precision."""

    def __init__(self, c: Lowering, x: Value, eps: float) -> None:
        if x.rank < 2:
            raise refuse("batch norm of rank 1")
        self.dtype = x.dtype if x.dtype == "float64" else "float32"
        self.rank = x.rank
        wide = c.cast(x, self.dtype)
        axes = c.constant([0, *range(2, x.rank)])
        self.mean = c.op("ReduceMean", wide, axes, keepdims=1)
        apart = c.op("Sub", wide, self.mean)
        self.variance = c.op("ReduceMean", c.op("Mul", apart, apart), axes, keepdims=1)
        root = c.op("Sqrt", c.op("Add", self.variance, c.constant(eps, self.dtype)))
        self.factor = c.op("Reciprocal", root)
        self.normal = c.op("Mul", apart, self.factor)

    def scaled(self, c: Lowering, dtype: str, weight: Given, bias: Given) -> Tensor:
        """Times and plus one value for each channel, as `dtype`."""
        operands = (None if given is None else c.cast(given, self.dtype) for given in (weight, bias))
        return self._as_type(c, _per_channel(c, self.normal, self.rank, *operands), dtype)

    def listed(self, c: Lowering, made: Tensor, dtype: str) -> Tensor:
        """A value for each channel as a list of `dtype`."""
        return self._as_type(c, c.op("Reshape", made, c.constant([-1])), dtype)

    def moved(self, c: Lowering, old: Value, new: Tensor, momentum: float, dtype: str) -> Tensor:
        """A running statistic with a part of a new one."""
        kept = c.op("Mul", c.cast(old, self.dtype), c.constant(1 - momentum, self.dtype))
        added = c.op("Mul", self.listed(c, new, self.dtype), c.constant(momentum, self.dtype))
        return self._as_type(c, c.op("Add", kept, added), dtype)

    def _as_type(self, c: Lowering, made: Tensor, dtype: str) -> Tensor:
        return made if dtype == self.dtype else c.cast_tensor(made, dtype)


@lowers(aten._native_batch_norm_legit.no_stats)
def _batch_norm_no_stats(
    c: Lowering, meta: Any, x: Value, weight: Given, bias: Given, training: bool, momentum: float, eps: float
) -> tuple[Tensor | None, ...]:
    batch = _Batch(c, x, eps)
    types = [dtype_name(m.dtype) for m in meta]
    made = batch.scaled(c, types[0], weight, bias)
    return made, batch.listed(c, batch.mean, types[1]), batch.listed(c, batch.factor, types[2])


@lowers(aten._native_batch_norm_legit_functional.default)
def _batch_norm_of_batch(
    c: Lowering, meta: Any, x: Value, weight: Given, bias: Given, mean: Value, var: Value, *settings: Any
) -> tuple[Tensor | None, ...]:
    is_training, momentum, eps = settings
    if not is_training:
        raise refuse("batch norm that changes nothing, in its functional form")
    batch = _Batch(c, x, eps)
    types = [dtype_name(m.dtype) for m in meta]
    count = c.constant([1])
    for axis in [0, *range(2, x.rank)]:
        count = c.op("Mul", count, c.dim(x.tensor, axis))
    number = c.cast_tensor(count, batch.dtype)
    less = c.op("Sub", number, c.constant(1, batch.dtype))
    unbiased = c.op("Mul", batch.variance, c.op("Div", number, less))
    return (
        batch.scaled(c, types[0], weight, bias),
        batch.listed(c, batch.mean, types[1]),
        batch.listed(c, batch.factor, types[2]),
        batch.moved(c, mean, batch.mean, momentum, types[3]),
        batch.moved(c, var, unbiased, momentum, types[4]),
    )
