"""Element-wise operators, reductions and products of ATen."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, dtype_name, lowers, refuse

aten = torch.ops.aten

_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "isinf": "IsInf", "isnan": "IsNaN", "log": "Log", "logical_not": "Not", "neg": "Neg", "reciprocal": "Reciprocal",
    "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "silu": "Swish", "mish": "Mish", "hardswish": "HardSwish",
}  # fmt: skip
_WHOLE = frozenset({"Ceil", "Floor", "Round"})
_COMPARE = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
_FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})


def _unary(op: str) -> Any:
    def lower(c: Lowering, meta: Any, x: Value) -> Tensor:
        if op in {"IsInf", "IsNaN"}:
            if x.dtype not in _FLOATS:
                raise refuse(f"{op} of {x.dtype}")
            return c.op(op, x.tensor)  # type: ignore[no-any-return]
        if op in _WHOLE and x.dtype not in _FLOATS:
            return x.tensor
        dtype = "bool" if op == "Not" else dtype_name(meta.dtype)
        return c.op(op, c.cast(x, dtype))  # type: ignore[no-any-return]

    return lower


for _name, _op in _UNARY.items():
    lowers(getattr(aten, _name).default)(_unary(_op))


def _truth(c: Lowering, value: Any) -> Tensor:
    """A value as torch's logical operators see it."""
    return c.cast(value, "bool")


@lowers(aten.rsqrt.default)
def _rsqrt(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("Reciprocal", c.op("Sqrt", c.cast(x, dtype_name(meta.dtype))))  # type: ignore[no-any-return]


@lowers(aten.square.default)
def _square(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("Mul", x.tensor, x.tensor)  # type: ignore[no-any-return]


@lowers(aten.log2.default)
def _log2(c: Lowering, meta: Any, x: Value) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Mul", c.op("Log", c.cast(x, dtype)), c.constant(1 / math.log(2), dtype))  # type: ignore[no-any-return]


@lowers(aten.gelu.default)
def _gelu(c: Lowering, meta: Any, x: Value, *, approximate: str = "none") -> Tensor:
    return c.op("Gelu", x.tensor, approximate=approximate)  # type: ignore[no-any-return]


@lowers(aten.leaky_relu.default)
def _leaky_relu(c: Lowering, meta: Any, x: Value, slope: float = 0.01) -> Tensor:
    return c.op("LeakyRelu", x.tensor, alpha=float(slope))  # type: ignore[no-any-return]


@lowers(aten.elu.default)
def _elu(c: Lowering, meta: Any, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    if scale != 1 or input_scale != 1:
        raise refuse("elu with scales")
    return c.op("Elu", x.tensor, alpha=float(alpha))  # type: ignore[no-any-return]


@lowers(aten.hardsigmoid.default)
def _hardsigmoid(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("HardSigmoid", x.tensor, alpha=1 / 6, beta=0.5)  # type: ignore[no-any-return]


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
            return c.op(ops[op], c.cast(a, dtype), c.cast(b, dtype))  # type: ignore[no-any-return]
        right = c.cast(b, dtype)
        if isinstance(alpha, Value) or alpha != 1:
            right = c.op("Mul", right, c.cast(alpha, dtype))
        return c.op(op, c.cast(a, dtype), right)  # type: ignore[no-any-return]

    return lower


for _name, _op in {"add": "Add", "sub": "Sub", "mul": "Mul"}.items():
    for _form in ("Tensor", "Scalar"):
        lowers(getattr(getattr(aten, _name), _form))(_arithmetic(_op))
for _name, _op in {"maximum": "Max", "minimum": "Min"}.items():
    lowers(getattr(aten, _name).default)(_arithmetic(_op))


@lowers(aten.rsub.Scalar, aten.rsub.Tensor)
def _rsub(c: Lowering, meta: Any, a: Value, b: Any, alpha: Any = 1) -> Tensor:
    return _arithmetic("Sub")(c, meta, b, a, alpha=alpha)  # type: ignore[no-any-return]


def floor_divide(c: Lowering, a: Tensor, b: Tensor) -> Tensor:
    """Integer division that rounds down."""
    return c.op("Div", c.op("Sub", a, c.op("Mod", a, b)), b)  # type: ignore[no-any-return]


@lowers(aten.div.Tensor, aten.div.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode, aten.floor_divide.default)
def _div(c: Lowering, meta: Any, a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    dtype = dtype_name(meta.dtype)
    left, right = c.cast(a, dtype), c.cast(b, dtype)
    if dtype in _FLOATS:
        quotient = c.op("Div", left, right)
        if rounding_mode is None:
            return quotient  # type: ignore[no-any-return]
        if rounding_mode == "floor":
            return c.op("Floor", quotient)  # type: ignore[no-any-return]
        raise refuse("division with truncation")
    if rounding_mode == "floor":
        return floor_divide(c, left, right)
    return c.op("Div", left, right)  # type: ignore[no-any-return]


@lowers(aten.remainder.Tensor, aten.remainder.Scalar)
def _remainder(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    if dtype in _FLOATS:
        raise refuse("remainder of floats")
    return c.op("Mod", c.cast(a, dtype), c.cast(b, dtype))  # type: ignore[no-any-return]


@lowers(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def _pow(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    base = c.cast(a, dtype)
    if not isinstance(b, Value):
        if b == 1:
            return base
        if b == 2:
            return c.op("Mul", base, base)  # type: ignore[no-any-return]
        if b == 0.5 and dtype in _FLOATS:
            return c.op("Sqrt", base)  # type: ignore[no-any-return]
    return c.op("Pow", base, c.cast(b, dtype))  # type: ignore[no-any-return]


def _compare(op: str, is_negated: bool = False) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
        common = _common(a, b)
        made = c.op(op, c.cast(a, common), c.cast(b, common))
        return c.op("Not", made) if is_negated else made  # type: ignore[no-any-return]

    return lower


for _name, _op in _COMPARE.items():
    for _form in ("Tensor", "Scalar"):
        lowers(getattr(getattr(aten, _name), _form))(_compare(_op))
for _form in ("Tensor", "Scalar"):
    lowers(getattr(aten.ne, _form))(_compare("Equal", is_negated=True))


def _logical(op: str) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
        return c.op(op, _truth(c, a), _truth(c, b))  # type: ignore[no-any-return]

    return lower


def _bitwise(op: str) -> Any:
    def lower(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
        dtype = dtype_name(meta.dtype)
        return c.op(op if dtype == "bool" else f"Bitwise{op}", c.cast(a, dtype), c.cast(b, dtype))  # type: ignore[no-any-return]

    return lower


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    lowers(getattr(aten, f"logical_{_name}").default)(_logical(_op))
    for _form in ("Tensor", "Scalar"):
        lowers(getattr(getattr(aten, f"bitwise_{_name}"), _form))(_bitwise(_op))


@lowers(aten.bitwise_not.default)
def _bitwise_not(c: Lowering, meta: Any, x: Value) -> Tensor:
    return c.op("Not" if x.dtype == "bool" else "BitwiseNot", x.tensor)  # type: ignore[no-any-return]


@lowers(aten.where.self)
def _where(c: Lowering, meta: Any, condition: Value, a: Value, b: Value) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Where", c.cast(condition, "bool"), c.cast(a, dtype), c.cast(b, dtype))  # type: ignore[no-any-return]


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def _masked_fill(c: Lowering, meta: Any, x: Value, mask: Value, value: Any) -> Tensor:
    dtype = dtype_name(meta.dtype)
    return c.op("Where", mask.tensor, c.cast(value, dtype), c.cast(x, dtype))  # type: ignore[no-any-return]


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


def _axes(c: Lowering, x: Value, dim: Any) -> Tensor | None:
    if dim is None or dim == []:
        return None
    return c.constant([x.axis(d) for d in (dim if isinstance(dim, (list, tuple)) else [dim])])


def _reduce(op: str) -> Any:
    def lower(c: Lowering, meta: Any, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        wanted = dtype_name(meta.dtype)
        return c.op(op, c.cast(x, wanted), _axes(c, x, dim), keepdims=int(keepdim))  # type: ignore[no-any-return]

    return lower


for _target, _op in (
    (aten.sum.dim_IntList, "ReduceSum"), (aten.sum.default, "ReduceSum"), (aten.mean.dim, "ReduceMean"),
    (aten.mean.default, "ReduceMean"), (aten.amax.default, "ReduceMax"), (aten.amin.default, "ReduceMin"),
    (aten.prod.default, "ReduceProd"), (aten.prod.dim_int, "ReduceProd"), (aten.max.default, "ReduceMax"),
    (aten.min.default, "ReduceMin"),
):  # fmt: skip
    lowers(_target)(_reduce(_op))


def _any(op: str) -> Any:
    def lower(c: Lowering, meta: Any, x: Value, dim: Any = None, keepdim: bool = False) -> Tensor:
        bits = c.cast_tensor(_truth(c, x), "int32")
        made = c.op(op, bits, _axes(c, x, dim), keepdims=int(keepdim))
        return c.cast_tensor(made, dtype_name(meta.dtype))

    return lower


for _name, _op in {"any": "ReduceMax", "all": "ReduceMin"}.items():
    for _form in ("default", "dim", "dims"):
        lowers(getattr(getattr(aten, _name), _form))(_any(_op))


def _arg(op: str) -> Any:
    def lower(c: Lowering, meta: Any, x: Value, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if dim is None:
            if keepdim:
                raise refuse(f"{op} over all dimensions that keeps them")
            flat = c.op("Reshape", x.tensor, c.constant([-1]))
            return c.op(op, flat, axis=0, keepdims=0)  # type: ignore[no-any-return]
        return c.op(op, x.tensor, axis=x.axis(dim), keepdims=int(keepdim))  # type: ignore[no-any-return]

    return lower


for _name, _op in {"argmax": "ArgMax", "argmin": "ArgMin"}.items():
    lowers(getattr(aten, _name).default)(_arg(_op))


def _extreme(op: str) -> Any:
    def lower(c: Lowering, meta: Any, x: Value, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        value = c.op(f"Reduce{op}", x.tensor, c.constant([x.axis(dim)]), keepdims=int(keepdim))
        return value, c.op(f"Arg{op}", x.tensor, axis=x.axis(dim), keepdims=int(keepdim))

    return lower


for _name, _op in {"max": "Max", "min": "Min"}.items():
    lowers(getattr(aten, _name).dim)(_extreme(_op))


@lowers(aten.var.correction)
def _var(c: Lowering, meta: Any, x: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    axes = _axes(c, x, dim)
    mean = c.op("ReduceMean", x.tensor, axes, keepdims=1)
    apart = c.op("Sub", x.tensor, mean)
    squares = c.op("Mul", apart, apart)
    correction = 1 if correction is None else correction
    if correction == 0:
        return c.op("ReduceMean", squares, axes, keepdims=int(keepdim))  # type: ignore[no-any-return]
    reduced = range(x.rank) if not dim else [x.axis(d) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
    sizes = [x.shape[d] for d in reduced]
    if not all(isinstance(size, int) for size in sizes):
        raise refuse("variance over a size that varies")
    total = c.op("ReduceSum", squares, axes, keepdims=int(keepdim))
    count = math.prod(sizes) - correction
    divisor = count if count > 0 else 0
    return c.op("Div", total, c.constant(divisor, x.dtype))  # type: ignore[no-any-return]


@lowers(aten.cumsum.default)
def _cumsum(c: Lowering, meta: Any, x: Value, dim: int, *, dtype: Any = None) -> Tensor:
    if x.rank == 0:
        return c.cast(x, dtype_name(meta.dtype))
    return c.op("CumSum", c.cast(x, dtype_name(meta.dtype)), c.constant(x.axis(dim)))  # type: ignore[no-any-return]


@lowers(aten.mm.default, aten.bmm.default)
def _mm(c: Lowering, meta: Any, a: Value, b: Value) -> Tensor:
    return c.op("MatMul", a.tensor, b.tensor)  # type: ignore[no-any-return]


@lowers(aten.addmm.default, aten.baddbmm.default)
def _addmm(c: Lowering, meta: Any, bias: Value, a: Value, b: Value, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    made = c.op("MatMul", a.tensor, b.tensor)
    dtype = dtype_name(meta.dtype)
    if isinstance(alpha, Value) or alpha != 1:
        made = c.op("Mul", made, c.cast(alpha, dtype))
    if not isinstance(beta, Value) and beta == 0:  # torch does not read the bias then
        return made  # type: ignore[no-any-return]
    right = bias.tensor
    if isinstance(beta, Value) or beta != 1:
        right = c.op("Mul", right, c.cast(beta, dtype))
    return c.op("Add", made, right)  # type: ignore[no-any-return]


def _size_op(op: str) -> Any:
    def lower(c: Lowering, meta: Any, *sizes: Any) -> Tensor:
        if not isinstance(meta, (int, torch.SymInt)):
            raise refuse("sizes that are no whole numbers")
        made = c.zero_rank(sizes[0])
        for size in sizes[1:]:
            made = c.op(op, made, c.zero_rank(size))
        return made

    return lower


for _target, _op in (
    (operator.add, "Add"), (operator.sub, "Sub"), (operator.mul, "Mul"), (operator.mod, "Mod"),
    (torch.sym_max, "Max"), (torch.sym_min, "Min"),
):  # fmt: skip
    lowers(_target)(_size_op(_op))


@lowers(operator.floordiv)
def _size_floordiv(c: Lowering, meta: Any, a: Any, b: Any) -> Tensor:
    return floor_divide(c, c.zero_rank(a), c.zero_rank(b))


@lowers(operator.neg)
def _size_neg(c: Lowering, meta: Any, a: Any) -> Tensor:
    return c.op("Neg", c.zero_rank(a))  # type: ignore[no-any-return]
