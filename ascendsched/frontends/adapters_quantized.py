"""Quantised operators as integer products, scales and roundings; those of ``com.microsoft`` included."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ascendsched.errors import UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_FLOAT, _INT32, _DOUBLE = 1, 6, 11  # TensorProto
_EXACT_FLOATS = 1 << 24  # integers below are float32 numbers, and so are their sums


def _convolve(r: Replacement, node: NodeDef, ctx: AdapterContext) -> str:
    data, weight, zero, weight_zero = node.inputs[0], node.inputs[1], node.input(2), node.input(3)
    # A type that holds every product and sum of the convolution exactly.
    to = _FLOAT if _largest_sum(ctx, weight, weight_zero) < _EXACT_FLOATS else _DOUBLE
    x = r.make("Cast", data, to=to)
    if zero:
        x = r.make("Sub", x, r.make("Cast", zero, to=to))
    w = r.make("Cast", weight, to=to)
    if weight_zero:
        w = r.make("Sub", w, _per_channel(r, r.make("Cast", weight_zero, to=to), weight, 0))
    return r.make("Conv", x, w, **node.attributes)


def _largest_sum(ctx: AdapterContext, weight: str, zero: str) -> float:
    """Return a bound of the sums of products with any bytes; infinity for weights that are not constant."""
    w, z = ctx.constant_value(weight), ctx.constant_value(zero) if zero else None
    if w is None or w.array.ndim < 2 or w.array.dtype.kind not in "iu" or (zero and z is None):
        return math.inf
    rows = w.array.reshape(len(w.array), math.prod(w.array.shape[1:])).astype(np.int64)
    if z is not None:
        if z.array.dtype.kind not in "iu" or z.array.size not in (1, len(rows)):
            return math.inf
        rows = rows - z.array.astype(np.int64).reshape(-1, 1)
    return float(255 * np.abs(rows).sum(1).max(initial=0))


def _per_channel(r: Replacement, values: str, like: str, axis: int) -> str:
    """Return one number, or one for each index of an axis of ``like``, so that it broadcasts to it."""
    ones = r.make("Expand", r.constant([1]), r.make("Shape", r.make("Shape", like, start=axis + 1)))
    return r.make("Reshape", values, r.make("Concat", r.constant([-1]), ones, axis=0))


def conv_integer(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """An integer convolution, computed exactly: on bytes where the core can, which needs constant weights."""
    weight, zero = ctx.constant_value(node.inputs[1]), node.input(3)
    if weight is not None and 3 <= weight.array.ndim <= 5 and (not zero or ctx.constant_value(zero) is not None):
        return None
    r = Replacement(node, ctx)
    r.make("Cast", _convolve(r, node, ctx), output=node.outputs[0], to=_INT32)
    return r.nodes


def q_linear_conv(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The convolution of the numbers that the bytes stand for, rounded once."""
    r = Replacement(node, ctx)
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.inputs[:8]
    operands = [r.make("DequantizeLinear", x, x_scale, x_zero), r.make("DequantizeLinear", w, w_scale, w_zero, axis=0)]
    if node.input(8):
        bias = r.make("Cast", node.inputs[8], to=_FLOAT)
        operands.append(r.make("Mul", bias, r.make("Mul", x_scale, w_scale)))
    r.make("QuantizeLinear", r.make("Conv", *operands, **node.attributes), y_scale, y_zero, output=node.outputs[0])
    return r.nodes


def q_gemm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: the exact product of the integers and an integer bias, scaled; rounded where a scale is given."""
    r = Replacement(node, ctx)
    a, a_scale, a_zero, b, b_scale, b_zero = node.inputs[:6]
    attributes = node.attributes
    if attributes.get("transA", 0):
        a = r.make("Transpose", a, perm=[1, 0])
    if attributes.get("transB", 0):
        b = r.make("Transpose", b, perm=[1, 0])
    total = r.make("MatMulInteger", a, b, a_zero, b_zero)
    scale = r.make("Mul", r.make("Mul", a_scale, b_scale), r.constant(attributes.get("alpha", 1.0), "float32"))
    bias = node.input(6)
    adds_after = bool(bias) and all(ctx.constant_value(name) is not None for name in (bias, a_scale, b_scale))
    if bias and not adds_after:
        total = r.make("Add", total, bias)
    is_rounded = bool(node.input(7))
    output = None if is_rounded else node.outputs[0]
    scaled = r.make("Mul", r.make("Cast", total, to=_FLOAT), scale, output=None if adds_after else output)
    if adds_after:
        scaled = r.make("Add", scaled, r.make("Mul", r.make("Cast", bias, to=_FLOAT), scale), output=output)
    if is_rounded:
        r.make("QuantizeLinear", scaled, node.inputs[7], node.input(8), output=node.outputs[0])
    return r.nodes


def q_linear_concat(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: scale and zero point of the result come first, then (value, scale, zero point) of each part."""
    r = Replacement(node, ctx)
    if len(node.inputs) < 5 or len(node.inputs) % 3 != 2:
        raise UnsupportedError(f"{node.where()}: {len(node.inputs)} inputs; expected 2, and 3 for each part")
    parts = [r.make("DequantizeLinear", *node.inputs[i : i + 3]) for i in range(2, len(node.inputs), 3)]
    result = r.make("Concat", *parts, **node.attributes)
    r.make("QuantizeLinear", result, node.inputs[0], node.inputs[1], output=node.outputs[0])
    return r.nodes


def q_linear_where(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: a condition, (value, scale, zero point) of both sides, (scale, zero point) of the result."""
    r = Replacement(node, ctx)
    sides = [r.make("DequantizeLinear", *node.inputs[i : i + 3]) for i in (1, 4)]
    r.make(
        "QuantizeLinear", r.make("Where", node.inputs[0], *sides), node.inputs[7], node.input(8), output=node.outputs[0]
    )
    return r.nodes


def q_linear_reduce_mean(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: with its axes as an attribute."""
    r = Replacement(node, ctx)
    x = r.make("DequantizeLinear", *node.inputs[:3])
    axes = [r.constant(node.attributes["axes"])] if node.attributes.get("axes") else []
    y = r.make("ReduceMean", x, *axes, keepdims=node.attributes.get("keepdims", 1))
    r.make("QuantizeLinear", y, *node.inputs[3:5], output=node.outputs[0])
    return r.nodes


def renamed(op: str) -> Callable[[NodeDef, AdapterContext], list[NodeDef]]:
    """Return an adapter for an operator of ``com.microsoft`` that means what ONNX's operator of that name does."""

    def adapt(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
        return [NodeDef(op, node.inputs, node.outputs, node.attributes, node.name)]

    return adapt


def q_linear_softmax(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: with the meaning of ``axis`` that Softmax had in the opset it names."""
    if node.attributes.get("opset", 13) >= 13:
        axis = node.attributes.get("axis", -1)
        return q_linear("Softmax", 1)(NodeDef(node.op, node.inputs, node.outputs, {"axis": axis}, node.name), ctx)
    r = Replacement(node, ctx)
    if len(node.inputs) < 4:
        raise UnsupportedError(f"{node.where()}: {len(node.inputs)} inputs; expected 5")
    x = r.make("DequantizeLinear", *node.inputs[:3])
    flat = r.make("Softmax", r.make("Flatten", x, axis=node.attributes.get("axis", 1)), axis=-1)
    y = r.make("Reshape", flat, r.make("Shape", x), allowzero=1)
    r.make("QuantizeLinear", y, *node.inputs[3:5], output=node.outputs[0])
    return r.nodes


def q_linear_pool(op: str) -> Callable[[NodeDef, AdapterContext], list[NodeDef]]:
    """Return an adapter for a pooling of ``com.microsoft``."""

    def adapt(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
        if node.attributes.get("channels_last", 0):
            raise UnsupportedError(f"{node.where()}: channels_last is 1; quantize the model with channels first")
        kept = {name: value for name, value in node.attributes.items() if name != "channels_last"}
        return q_linear(op, 1)(NodeDef(node.op, node.inputs, node.outputs, kept, node.name), ctx)

    return adapt


def q_linear_matmul(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The exact product of the integers, scaled and rounded once."""
    r = Replacement(node, ctx)
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.inputs
    total = r.make("Cast", r.make("MatMulInteger", a, b, a_zero, b_zero), to=_FLOAT)
    scales = [r.make("Cast", scale, to=_FLOAT) for scale in (a_scale, b_scale, y_scale)]
    scaled = r.make("Mul", total, r.make("Mul", scales[0], scales[1]))
    r.make("QuantizeLinear", scaled, scales[2], y_zero, output=node.outputs[0])
    return r.nodes


def matmul_integer_to_float(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: an integer product, scaled to float32, with a bias."""
    r = Replacement(node, ctx)
    a, b, a_scale, b_scale = node.inputs[:4]
    scaled_product(r, node.outputs[0], a, node.input(4), a_scale, b, node.input(5), b_scale, node.input(6))
    return r.nodes


def dynamic_quantize_matmul(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: the left operand is quantised by its own range first."""
    r = Replacement(node, ctx)
    a, b, b_scale = node.inputs[:3]
    low, scale, zero = _dynamic(r, a)
    scaled_product(r, node.outputs[0], low, zero, scale, b, node.input(3), b_scale, node.input(4))
    return r.nodes


def _dynamic(r: Replacement, value: str) -> list[str]:
    """Return the bytes, the scale and the zero point."""
    return r.make_several("DynamicQuantizeLinear", [value], [None, None, None])


def scaled_product(
    r: Replacement,
    output: str | None,
    a: str,
    a_zero: str,
    a_scale: str,
    b: str,
    b_zero: str,
    b_scale: str,
    bias: str,
) -> str:
    """Make an integer product, scaled to float32, with a bias where that is given."""
    total = r.make("Cast", r.make("MatMulInteger", a, b, a_zero, b_zero), to=_FLOAT)
    scale = r.make("Mul", a_scale, b_scale)
    if not bias:
        return r.make("Mul", total, scale, output=output)
    return r.make("Add", r.make("Mul", total, scale), bias, output=output)


def dynamic_quantize_lstm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: an LSTM whose weights are stored as integers, (directions, in, 4 hidden)."""
    r = Replacement(node, ctx)
    r.make_several("DynamicQuantizeLSTM", node.inputs, node.outputs, **node.attributes)
    return r.nodes


def q_linear(op: str, count: int) -> Callable[[NodeDef, AdapterContext], list[NodeDef]]:
    """Return an adapter for ``com.microsoft::QLinear…``: dequantise, compute in float32, quantise."""

    def adapt(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
        r = Replacement(node, ctx)
        if len(node.inputs) < 3 * count + 2:
            raise UnsupportedError(f"{node.where()}: {len(node.inputs)} inputs; expected {3 * count + 2} or more")
        operands = [r.make("DequantizeLinear", *node.inputs[3 * i : 3 * i + 3]) for i in range(count)]
        result = r.make(op, *operands, **node.attributes)
        r.make("QuantizeLinear", result, *node.inputs[3 * count : 3 * count + 2], output=node.outputs[0])
        return r.nodes

    return adapt
