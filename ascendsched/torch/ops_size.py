"""Arithmetic of sizes: whole numbers, and the factors that are made of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, lowers, refuse
from ascendsched.torch.ops_division import floor_divide


def _type_of(meta: Any) -> str:
    if isinstance(meta, (int, torch.SymInt)):
        return "int64"
    if isinstance(meta, (float, torch.SymFloat)):
        return "float64"
    raise refuse("sizes that are no numbers")


def _size_op(op: str) -> Any:
    def lower(c: Lowering, meta: Any, *sizes: Any) -> Tensor:
        dtype = _type_of(meta)
        made = c.cast(sizes[0], dtype)
        for size in sizes[1:]:
            made = c.op(op, made, c.cast(size, dtype))
        return made

    return lower


for _target, _op in (
    (operator.add, "Add"), (operator.sub, "Sub"), (operator.mul, "Mul"), (torch.sym_max, "Max"),
    (torch.sym_min, "Min"), (operator.truediv, "Div"), (operator.pow, "Pow"), (pow, "Pow"),
    (operator.and_, "BitwiseAnd"), (operator.or_, "BitwiseOr"), (operator.xor, "BitwiseXor"),
):  # fmt: skip
    lowers(_target)(_size_op(_op))


def _unary_op(op: str) -> Any:
    def lower(c: Lowering, meta: Any, size: Any) -> Tensor:
        return c.op(op, c.cast(size, _type_of(meta)))

    return lower


lowers(operator.neg)(_unary_op("Neg"))
lowers(operator.abs, abs)(_unary_op("Abs"))
for _op in ("sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"):
    lowers(getattr(torch, f"_sym_{_op}"))(_unary_op(_op.capitalize()))
lowers(torch.sym_sqrt)(_unary_op("Sqrt"))


@lowers(torch._sym_log2)
def _logarithm(c: Lowering, meta: Any, size: Any) -> Tensor:
    """Exact for powers of two, of which models take the ceiling."""
    x = c.cast(size, "float64")
    exponent = c.op("Div", c.op("Log", x), c.constant(math.log(2), "float64"))
    whole = c.op("Round", exponent)
    is_power = c.op("Equal", c.op("Pow", c.constant(2, "float64"), whole), x)
    return c.op("Where", is_power, whole, exponent)


@lowers(torch.sym_sum)
def _sum(c: Lowering, meta: Any, sizes: Sequence[Any]) -> Tensor:
    return _size_op("Add")(c, meta, *sizes) if sizes else c.constant(0)


def _whole_op(op: str) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
        if _type_of(meta) != "int64":
            raise refuse("sizes that are no whole numbers")
        a, b = c.cast(a, "int64"), c.cast(b, "int64")
        return floor_divide(c, a, b) if op == "Div" else c.op(op, a, b)

    return lower


lowers(operator.mod)(_whole_op("Mod"))
lowers(operator.floordiv)(_whole_op("Div"))


@lowers(operator.lshift)
def _shifted_left(c: Lowering, meta: Any, size: Any, by: Any) -> Tensor:
    return c.op("Mul", c.cast(size, "int64"), c.op("Pow", c.constant(2), c.cast(by, "int64")))


@lowers(operator.rshift)
def _shifted_right(c: Lowering, meta: Any, size: Any, by: Any) -> Tensor:
    return floor_divide(c, c.cast(size, "int64"), c.op("Pow", c.constant(2), c.cast(by, "int64")))


@lowers(torch.sym_float)
def _float(c: Lowering, meta: Any, size: Any) -> Tensor:
    return c.cast(size, "float64")


def _rounded(op: str) -> Any:
    def lower(c: Lowering, meta: Any, size: Any) -> Tensor:
        return c.cast_tensor(c.op(op, c.cast(size, "float64")), "int64")

    return lower


for _target, _op in ((math.floor, "Floor"), (math.ceil, "Ceil")):
    lowers(_target)(_rounded(_op))


@lowers(round)
def _round(c: Lowering, meta: Any, size: Any, digits: int | None = None) -> Tensor:
    if digits is not None:
        raise refuse("sizes rounded to digits")
    return c.cast_tensor(c.op("Round", c.cast(size, "float64")), "int64")


@lowers(math.trunc, torch.sym_int)
def _int(c: Lowering, meta: Any, size: Any) -> Tensor:
    return c.cast(size, "int64")
