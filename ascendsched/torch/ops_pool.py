"""Pooling of ATen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, is_same_size, lowers, refuse

aten = torch.ops.aten


def _spread(values: Any, count: int) -> list[int]:
    """A setting for each of `count` dimensions."""
    values = [values] if isinstance(values, int) else list(values)
    return values * count if len(values) == 1 else values


def _attributes(x: Value, kernel: Sequence[int], stride: Any, padding: Any, is_ceil: bool) -> dict[str, Any]:
    if x.rank != len(kernel) + 2:
        raise refuse("pooling without a batch")
    count = len(kernel)
    strides = _spread(stride, count) or list(kernel)
    return {
        "kernel_shape": list(kernel),
        "strides": strides,
        "pads": _spread(padding, count) * 2,
        "ceil_mode": int(is_ceil),
    }


@lowers(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def _max_pool(
    c: Lowering,
    meta: Any,
    x: Value,
    kernel: Sequence[int],
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor | None, ...]:
    attributes = _attributes(x, kernel, stride, padding, ceil_mode)
    return c.op("MaxPool", x.tensor, **attributes, dilations=_spread(dilation, len(kernel))), None


@lowers(aten.avg_pool2d.default, aten.avg_pool3d.default)
def _avg_pool(
    c: Lowering,
    meta: Any,
    x: Value,
    kernel: Sequence[int],
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    attributes = _attributes(x, kernel, stride, padding, ceil_mode)
    if divisor_override is None:
        return c.op("AveragePool", x.tensor, **attributes, count_include_pad=int(count_include_pad))
    if ceil_mode:
        raise refuse("average pooling with a divisor, rounding up")
    made = c.op("AveragePool", x.tensor, **attributes, count_include_pad=1)
    return c.op("Mul", made, c.constant(math.prod(kernel) / divisor_override, x.dtype))


def _along(c: Lowering, op: str, tensor: Tensor, axis: int, size: Any, count: int) -> Tensor:
    """An axis of `size` reduced to `count` windows, which overlap where it is no multiple."""
    if is_same_size(size, count):
        return tensor
    axes, whole = c.constant([axis]), c.dim(tensor, axis)
    parts = []
    for i in range(count):
        if isinstance(size, int):
            first, last = c.constant([i * size // count]), c.constant([-(-(i + 1) * size // count)])
        else:
            by = c.constant([count])
            first = c.op("Div", c.op("Mul", whole, c.constant([i])), by)
            last = c.op("Add", c.op("Mul", whole, c.constant([i + 1])), c.constant([count - 1]))
            last = c.op("Div", last, by)
        parts.append(c.op(op, c.op("Slice", tensor, first, last, axes), axes, keepdims=1))
    return parts[0] if count == 1 else c.op("Concat", *parts, axis=axis)


def _adaptive(c: Lowering, kind: str, x: Value, size: Sequence[Any]) -> Tensor:
    old, count = x.shape[x.rank - len(size) :], len(size)
    if not all(isinstance(s, int) and s > 0 for s in size):
        raise refuse("adaptive pooling to a size that varies, or to none")
    is_known = all(isinstance(s, int) for s in old)
    if is_known and x.rank == count + 2 and all(a % b == 0 for a, b in zip(old, size, strict=True)):
        steps = [a // b for a, b in zip(old, size, strict=True)]
        return c.op(f"{kind}Pool", x.tensor, kernel_shape=steps, strides=steps)
    made, op = x.tensor, {"Average": "ReduceMean", "Max": "ReduceMax"}[kind]
    for axis, a, b in zip(range(x.rank - count, x.rank), old, size, strict=True):
        made = _along(c, op, made, axis, a, b)
    return made


@lowers(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def _adaptive_avg(c: Lowering, meta: Any, x: Value, size: Sequence[Any]) -> Tensor:
    if all(is_same_size(s, 1) for s in size) and x.rank == len(size) + 2:
        return c.op("GlobalAveragePool", x.tensor)
    return _adaptive(c, "Average", x, size)


@lowers(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def _adaptive_max(c: Lowering, meta: Any, x: Value, size: Sequence[Any]) -> tuple[Tensor | None, ...]:
    return _adaptive(c, "Max", x, size), None
