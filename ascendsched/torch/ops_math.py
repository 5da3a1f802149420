"""Element-wise operators of ATen, and arithmetic of sizes."""

from __future__ import annotations

import math
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import FLOATS, Lowering, Value, dtype_name, lowers, refuse
from ascendsched.torch.ops_division import floor_divide

aten = torch.ops.aten

_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "isinf": "IsInf", "isnan": "IsNaN", "log": "Log", "logical_not": "Not", "neg": "Neg", "reciprocal": "Reciprocal",
    "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "silu": "Swish", "mish": "Mish", "hardswish": "HardSwish",
}  # fmt: skip
_WHOLE = frozenset({"Ceil", "Floor", "Round"})
_COMPARE = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}


def _unary(op: str) -> Any:
    def lower(c: Lowering, meta: Any, x: Value) -> Tensor:
        if op in {"IsInf", "IsNaN"}:
            if x.dtype not in FLOATS:
                raise refuse(f"{op} of {x.dtype}")
            return c.op(op, x.tensor)
        if op in _WHOLE and x.dtype not in FLOATS:
            return x.tensor
        dtype = "bool" if op == "Not" else dtype_name(meta.dtype)
        return c.op(op, c.cast(x, dtype))

    return lower


for _name, _op in _UNARY.items():
    lowers(getattr(aten, _name).default)(_unary(_op))


def _truth(c: Lowering, value: Any) -> Tensor:
    """A value as torch's logical operators see it."""
    return c.cast(value, "bool")


@lowers(aten.sign.default, aten.sgn.default)
def _sign(c: Lowering, meta: Any, x: Value) -> Tensor:
    made = c.op("Sign", x.tensor)
    if x.dtype not in FLOATS:
        return made
    return c.op("Where", c.op("IsNaN", x.tensor), c.constant(0, x.dtype), made)  # of no number it is 0 in torch


@lowers(aten.rsqrt.default)
def _rsqrt(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("Reciprocal", c.op("Sqrt", c.cast(x, dtype_name(meta.dtype))))


@lowers(aten.square.default)
def _square(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("Mul", x.tensor, x.tensor)


@lowers(aten.log2.default)
def _log2(c: Lowering, meta: Any, x: Value) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Mul", c.op("Log", c.cast(x, dtype)), c.constant(1 / math.log(2), dtype))


@lowers(aten.log10.default)
def _log10(c: Lowering, meta: Any, x: Value) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Mul", c.op("Log", c.cast(x, dtype)), c.constant(1 / math.log(10), dtype))


@lowers(aten.exp2.default)
def _exp2(c: Lowering, meta: Any, x: Value) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Pow", c.constant(2, dtype), c.cast(x, dtype))


@lowers(aten.log1p.default)
def _log1p(c: Lowering, meta: Any, x: Value) -> Tensor:
    """Exact near zero: the error of ``u = 1 + x`` is divided out (Kahan)."""
    dtype = dtype_name(meta.dtype)
    value, one = c.cast(x, dtype), c.constant(1, dtype)
    u = c.op("Add", value, one)
    made = c.op("Mul", value, c.op("Div", c.op("Log", u), c.op("Sub", u, one)))
    is_same = c.op("Or", c.op("Equal", u, one), c.op("Equal", u, c.constant(math.inf, dtype)))
    return c.op("Where", is_same, value, made)


@lowers(aten.expm1.default)
def _expm1(c: Lowering, meta: Any, x: Value) -> Tensor:
    """``tanh(x / 2) * (exp(x) + 1)``, exact near zero."""
    dtype = dtype_name(meta.dtype)
    value = c.cast(x, dtype)
    half = c.op("Tanh", c.op("Mul", value, c.constant(0.5, dtype)))
    return c.op("Mul", half, c.op("Add", c.op("Exp", value), c.constant(1, dtype)))


@lowers(aten.gelu.default)
def _gelu(c: Lowering, meta: Any, x: Value, *, approximate: str = "none") -> Tensor:
    return c.op("Gelu", x.tensor, approximate=approximate)


@lowers(aten.round.decimals)
def _round_decimals(c: Lowering, meta: Any, x: Value, *, decimals: int) -> Tensor:
    if x.dtype not in FLOATS:
        raise refuse(f"decimals of {x.dtype}")
    ops = ("Mul", "Div") if decimals >= 0 else ("Div", "Mul")
    factor = c.constant(10.0 ** abs(decimals), x.dtype)
    return c.op(ops[1], c.op("Round", c.op(ops[0], x.tensor, factor)), factor)


@lowers(aten.hypot.default)
def _hypot(c: Lowering, meta: Any, a: Value, b: Value) -> Tensor:
    """Over the greater of both, whose square may be infinite."""
    dtype = dtype_name(meta.dtype)
    left, right = c.op("Abs", c.cast(a, dtype)), c.op("Abs", c.cast(b, dtype))
    great, small = c.op("Max", left, right), c.op("Min", left, right)
    is_plain = c.op("Or", c.op("Equal", great, c.constant(0, dtype)), c.op("IsInf", great))
    part = c.op("Div", small, c.op("Where", is_plain, c.constant(1, dtype), great))
    made = c.op("Mul", great, c.op("Sqrt", c.op("Add", c.op("Mul", part, part), c.constant(1, dtype))))
    return c.op("Where", is_plain, great, made)


@lowers(aten.leaky_relu.default)
def _leaky_relu(c: Lowering, meta: Any, x: Value, slope: float = 0.01) -> Tensor:
    return c.op("LeakyRelu", x.tensor, alpha=float(slope))


@lowers(aten.elu.default)
def _elu(c: Lowering, meta: Any, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    below = x.tensor if input_scale == 1 else c.op("Mul", x.tensor, c.constant(input_scale, x.dtype))
    made = c.op("Elu", below, alpha=float(alpha))
    if input_scale != 1:
        made = c.op("Where", c.op("Greater", x.tensor, c.constant(0, x.dtype)), x.tensor, made)
    return made if scale == 1 else c.op("Mul", made, c.constant(scale, x.dtype))


@lowers(aten.hardsigmoid.default)
def _hardsigmoid(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("HardSigmoid", x.tensor, alpha=1 / 6, beta=0.5)


def _common(a: Any, b: Any) -> str:
    """The type in which torch compares two values."""

    def known(v: Any) -> Any:
        if not isinstance(v, Value):
            return v
        return v.meta if isinstance(v.meta, torch.Tensor) else 0

    a, b = known(a), known(b)
    return dtype_name(torch.result_type(a, b))


def _arithmetic(op: str) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any, *, alpha: Any = 1) -> Tensor:
        dtype = dtype_name(meta.dtype)
        if dtype == "bool":
            ops = {"Add": "Or", "Mul": "And"}
            if op not in ops or alpha != 1:
                raise refuse(f"{op} of bool")
            return c.op(ops[op], c.cast(a, dtype), c.cast(b, dtype))
        right = c.cast(b, dtype)
        if isinstance(alpha, Value) or alpha != 1:
            right = c.op("Mul", right, c.cast(alpha, dtype))
        return c.op(op, c.cast(a, dtype), right)

    return lower


for _name, _op in {"add": "Add", "sub": "Sub", "mul": "Mul"}.items():
    for _form in ("Tensor", "Scalar"):
        lowers(getattr(getattr(aten, _name), _form))(_arithmetic(_op))
for _name, _op in {"maximum": "Max", "minimum": "Min"}.items():
    lowers(getattr(aten, _name).default)(_arithmetic(_op))


def _of_numbers(op: str) -> Any:
    """The greater or lesser of two values, of which one may be no number."""

    def lower(c: Lowering, meta: Any, a: Value, b: Value) -> Tensor:
        made = _arithmetic(op)(c, meta, a, b)
        for one, other in ((a, b), (b, a)):
            if one.dtype in FLOATS:
                made = c.op("Where", c.op("IsNaN", one.tensor), c.cast(other, dtype_name(meta.dtype)), made)
        return made

    return lower


for _name, _op in {"fmax": "Max", "fmin": "Min"}.items():
    lowers(getattr(aten, _name).default)(_of_numbers(_op))


@lowers(aten.rsub.Scalar, aten.rsub.Tensor)
def _rsub(c: Lowering, meta: Any, a: Value, b: Any, alpha: Any = 1) -> Tensor:
    return _arithmetic("Sub")(c, meta, b, a, alpha=alpha)


@lowers(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def _pow(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    base = c.cast(a, dtype)
    if not isinstance(b, Value):
        if b == 1:
            return base
        if b == 2:
            return c.op("Mul", base, base)
        if b in {0.5, -0.5} and dtype in FLOATS:  # by roots, as torch, which shows at infinity and -0
            root = c.op("Sqrt", base)
            return root if b > 0 else c.op("Reciprocal", root)
    return c.op("Pow", base, c.cast(b, dtype))


def _compare(op: str, is_negated: bool = False) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
        common = _common(a, b)
        made = c.op(op, c.cast(a, common), c.cast(b, common))
        return c.op("Not", made) if is_negated else made

    return lower


for _name, _op in _COMPARE.items():
    for _form in ("Tensor", "Scalar"):
        lowers(getattr(getattr(aten, _name), _form))(_compare(_op))
for _form in ("Tensor", "Scalar"):
    lowers(getattr(aten.ne, _form))(_compare("Equal", is_negated=True))


def _logical(op: str) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
        return c.op(op, _truth(c, a), _truth(c, b))

    return lower


def _bitwise(op: str) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
        dtype = dtype_name(meta.dtype)
        return c.op(op if dtype == "bool" else f"Bitwise{op}", c.cast(a, dtype), c.cast(b, dtype))

    return lower


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    lowers(getattr(aten, f"logical_{_name}").default)(_logical(_op))
    for _form in ("Tensor", "Scalar"):
        lowers(getattr(getattr(aten, f"bitwise_{_name}"), _form))(_bitwise(_op))


@lowers(aten.bitwise_not.default)
def _bitwise_not(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("Not" if x.dtype == "bool" else "BitwiseNot", x.tensor)


def _shift(is_left: bool) -> Any:
    def lower(c: Lowering, meta: Any, x: Value, by: Any) -> Tensor:
        if not isinstance(by, int) or not 0 <= by < 31 or x.dtype not in {"int32", "int64"}:
            raise refuse(f"{x.dtype} shifted by a tensor, or far")
        factor = c.constant(1 << by, x.dtype)
        return c.op("Mul", x.tensor, factor) if is_left else floor_divide(c, x.tensor, factor)

    return lower


for _name, _is_left in {"__lshift__": True, "__rshift__": False}.items():
    lowers(getattr(aten, _name).Scalar)(_shift(_is_left))


@lowers(aten.where.self)
def _where(c: Lowering, meta: Any, condition: Value, a: Value, b: Value) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Where", c.cast(condition, "bool"), c.cast(a, dtype), c.cast(b, dtype))


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def _masked_fill(c: Lowering, meta: Any, x: Value, mask: Value, value: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Where", mask.tensor, c.cast(value, dtype), c.cast(x, dtype))


@lowers(aten.clamp.default, aten.hardtanh.default, aten.clamp.Tensor)
def _clamp(c: Lowering, meta: Any, x: Value, min: Any = None, max: Any = None) -> Tensor:
    dtype = dtype_name(meta.dtype)
    made = c.cast(x, dtype)
    for op, bound in (("Max", min), ("Min", max)):
        if bound is not None:
            made = c.op(op, made, c.cast(bound, dtype))
    return made


@lowers(aten.clamp_min.default, aten.clamp_min.Tensor)
def _clamp_min(c: Lowering, meta: Any, x: Value, min: Any) -> Tensor:
    return _clamp(c, meta, x, min)


@lowers(aten.clamp_max.default, aten.clamp_max.Tensor)
def _clamp_max(c: Lowering, meta: Any, x: Value, max: Any) -> Tensor:
    return _clamp(c, meta, x, None, max)


@lowers("prims.fma.default")  # torch registers it when it is first used
def _fma(c: Lowering, meta: Any, a: Value, b: Value, addend: Value) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Add", c.op("Mul", c.cast(a, dtype), c.cast(b, dtype)), c.cast(addend, dtype))
