"""Reductions and products of ATen."""

from __future__ import annotations

import math
from typing import Any

import torch

from ascendsched.graph import Tensor
from ascendsched.torch.lowering import Lowering, Value, dtype_name, lowers, refuse

aten = torch.ops.aten


def _axes(c: Lowering, x: Value, dim: Any) -> Tensor | None:
    if dim is None or dim == []:
        return None
    return c.constant([x.axis(d) for d in (dim if isinstance(dim, (list, tuple)) else [dim])])


def _reduce(op: str) -> Any:
    def lower(c: Lowering, meta: Any, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        wanted = dtype_name(meta.dtype)
        return c.op(op, c.cast(x, wanted), _axes(c, x, dim), keepdims=int(keepdim))

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
        made = c.op(op, c.cast(x, "bool"), _axes(c, x, dim), keepdims=int(keepdim))
        return made if meta.dtype == torch.bool else c.cast_tensor(made, dtype_name(meta.dtype))

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
            return c.op(op, flat, axis=0, keepdims=0)
        return c.op(op, x.tensor, axis=x.axis(dim), keepdims=int(keepdim))

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


def _spread(c: Lowering, x: Value, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Variance, and the mean that it is taken from, with all dimensions."""
    axes = _axes(c, x, dim)
    mean = c.op("ReduceMean", x.tensor, axes, keepdims=1)
    apart = c.op("Sub", x.tensor, mean)
    squares = c.op("Mul", apart, apart)
    correction = 1 if correction is None else correction
    if correction == 0:
        return c.op("ReduceMean", squares, axes, keepdims=int(keepdim)), mean
    total = c.op("ReduceSum", squares, axes, keepdims=int(keepdim))
    return c.op("Div", total, _divisor(c, x, dim, correction)), mean


def _divisor(c: Lowering, x: Value, dim: Any, correction: Any) -> Tensor:
    """How many values are reduced, less a correction."""
    reduced = (
        range(x.rank) if dim in (None, []) else [x.axis(d) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
    )
    sizes = [x.shape[d] for d in reduced]
    if all(isinstance(size, int) for size in sizes):
        return c.constant(max(math.prod(sizes) - correction, 0), x.dtype)
    count = c.constant([1])
    for d in reduced:
        count = c.op("Mul", count, c.dim(x.tensor, d))
    number = c.op("Squeeze", c.cast_tensor(count, x.dtype), c.constant([0]))
    return c.op("Max", c.op("Sub", number, c.constant(correction, x.dtype)), c.constant(0, x.dtype))


@lowers(aten.var.correction)
def _var(c: Lowering, meta: Any, x: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return _spread(c, x, dim, correction, keepdim)[0]


@lowers(aten.var_mean.correction)
def _var_mean(
    c: Lowering, meta: Any, x: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    variance, mean = _spread(c, x, dim, correction, keepdim)
    if not keepdim:
        mean = c.op("Squeeze", mean, _axes(c, x, dim) or c.constant(list(range(x.rank))))
    return variance, mean


@lowers(aten.linalg_vector_norm.default)
def _vector_norm(
    c: Lowering, meta: Any, x: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    wanted = dtype_name(meta.dtype)
    value, axes = c.cast(x, wanted), _axes(c, x, dim)
    if ord in {1, 2}:
        return c.op(f"ReduceL{int(ord)}", value, axes, keepdims=int(keepdim))
    if ord == 0:
        return c.op("ReduceSum", _nonzero(c, value, wanted), axes, keepdims=int(keepdim))
    size = c.op("Abs", value)
    if math.isinf(ord):
        return c.op("ReduceMax" if ord > 0 else "ReduceMin", size, axes, keepdims=int(keepdim))
    total = c.op("ReduceSum", c.op("Pow", size, c.constant(ord, wanted)), axes, keepdims=int(keepdim))
    return c.op("Pow", total, c.constant(1 / ord, wanted))


def _nonzero(c: Lowering, value: Tensor, dtype: str) -> Tensor:
    """One where a value is not zero, else zero."""
    return c.cast_tensor(c.op("Not", c.op("Equal", value, c.constant(0, dtype))), dtype)


@lowers(aten.cumsum.default)
def _cumsum(c: Lowering, meta: Any, x: Value, dim: int, *, dtype: Any = None) -> Tensor:
    if x.rank == 0:
        return c.cast(x, dtype_name(meta.dtype))
    return c.op("CumSum", c.cast(x, dtype_name(meta.dtype)), c.constant(x.axis(dim)))


def _product(c: Lowering, dtype: str, a: Value, b: Value, bias: Tensor | None = None) -> Tensor:
    """a @ b + bias; a weight that torch keeps transposed is read as it lies, not copied at every call."""
    kept = c.transposed.get(b.tensor)
    if kept is not None and b.rank == 2 and dtype in {"float32", "float64"}:
        return c.op("Gemm", a.tensor, kept, *(() if bias is None else (bias,)), transB=1)
    made = c.op("MatMul", a.tensor, b.tensor)
    return made if bias is None else c.op("Add", made, bias)


@lowers(aten.mm.default, aten.bmm.default)
def _mm(c: Lowering, meta: Any, a: Value, b: Value) -> Tensor:
    return _product(c, dtype_name(meta.dtype), a, b)


@lowers(aten.addmm.default, aten.baddbmm.default)
def _addmm(c: Lowering, meta: Any, bias: Value, a: Value, b: Value, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    dtype = dtype_name(meta.dtype)
    if not isinstance(alpha, Value) and not isinstance(beta, Value) and alpha == beta == 1:
        return _product(c, dtype, a, b, bias.tensor)
    made = c.op("Mul", _product(c, dtype, a, b), c.cast(alpha, dtype))
    if not isinstance(beta, Value) and beta == 0:  # torch does not read the bias then
        return made
    return c.op("Add", made, c.op("Mul", bias.tensor, c.cast(beta, dtype)))
