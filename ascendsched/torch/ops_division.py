"""Divisions of ATen that round, and their rests."""

from __future__ import annotations

from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import FLOATS, Lowering, Value, dtype_name, lowers

aten = torch.ops.aten


def floor_divide(c: Lowering, a: Tensor, b: Tensor) -> Tensor:
    """Integer division that rounds down."""
    return c.op("Div", c.op("Sub", a, c.op("Mod", a, b)), b)


@lowers(
    aten.div.Tensor, aten.div.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode,
    aten.true_divide.Tensor, aten.true_divide.Scalar,
)  # fmt: skip
def _div(c: Lowering, meta: Any, a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    dtype = dtype_name(meta.dtype)
    left, right = c.cast(a, dtype), c.cast(b, dtype)
    if dtype in FLOATS:
        quotient = c.op("Div", left, right)
        if rounding_mode is None:
            return quotient
        return (
            _truncate(c, quotient, dtype)
            if rounding_mode == "trunc"
            else _floor_quotient(c, left, right, quotient, dtype)
        )
    if rounding_mode == "floor":
        return floor_divide(c, left, right)
    return c.op("Div", left, right)


def _floor_quotient(c: Lowering, a: Tensor, b: Tensor, quotient: Tensor, dtype: str) -> Tensor:
    """What is left without the rest, as torch has it: 1 // 0.1 is 9, though 1 / 0.1 is 10."""
    zero = c.constant(0, dtype)
    rest = c.op("Mod", a, b, fmod=1)
    whole = c.op("Div", c.op("Sub", a, rest), b)
    less = c.op("Sub", whole, c.constant(1, dtype))
    made = c.op("Round", c.op("Where", _goes_against(c, rest, b, zero), less, whole))
    return c.op("Where", c.op("Equal", b, zero), quotient, made)


def _goes_against(c: Lowering, rest: Tensor, b: Tensor, zero: Tensor) -> Tensor:
    """Where a rest that has the sign of what was divided has another one than the divisor."""
    differs = c.op("Xor", c.op("Less", rest, zero), c.op("Less", b, zero))
    return c.op("And", differs, c.op("Not", c.op("Equal", rest, zero)))


def _truncate(c: Lowering, x: Tensor, dtype: str) -> Tensor:
    return c.op("Where", c.op("Less", x, c.constant(0, dtype)), c.op("Ceil", x), c.op("Floor", x))


@lowers(aten.floor_divide.default, aten.floor_divide.Scalar)
def _floor_divide(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
    return _div(c, meta, a, b, rounding_mode="floor")


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def _fmod(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Mod", c.cast(a, dtype), c.cast(b, dtype), fmod=1)


@lowers(aten.remainder.Tensor, aten.remainder.Scalar)
def _remainder(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    left, right = c.cast(a, dtype), c.cast(b, dtype)
    if dtype not in FLOATS:
        return c.op("Mod", left, right)
    rest = c.op("Mod", left, right, fmod=1)
    is_moved = _goes_against(c, rest, right, c.constant(0, dtype))
    return c.op("Where", is_moved, c.op("Add", rest, right), rest)


@lowers(aten.trunc.default)
def _trunc(c: Lowering, meta: Any, x: Value) -> Tensor:
    return x.tensor if x.dtype not in FLOATS else _truncate(c, x.tensor, x.dtype)
