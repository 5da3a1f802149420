"""Quantised operators as integer products, scales and roundings; those of ``com.microsoft`` included."""

from __future__ import annotations

from collections.abc import Callable

from ascendsched.errors import UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_FLOAT, _INT32, _DOUBLE = 1, 6, 11  # TensorProto


def _convolve(r: Replacement, node: NodeDef, data: str, zero: str, weight: str, weight_zero: str) -> str:
    x = r.make("Cast", data, to=_DOUBLE)  # holds every product and sum of a convolution exactly
    if zero:
        x = r.make("Sub", x, r.make("Cast", zero, to=_DOUBLE))
    w = r.make("Cast", weight, to=_DOUBLE)
    if weight_zero:
        w = r.make("Sub", w, _per_channel(r, r.make("Cast", weight_zero, to=_DOUBLE), weight, 0))
    return r.make("Conv", x, w, **node.attributes)


def _per_channel(r: Replacement, values: str, like: str, axis: int) -> str:
    """Return one number, or one for each index of an axis of ``like``, so that it broadcasts to it."""
    ones = r.make("Expand", r.constant([1]), r.make("Shape", r.make("Shape", like, start=axis + 1)))
    return r.make("Reshape", values, r.make("Concat", r.constant([-1]), ones, axis=0))


def conv_integer(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """An integer convolution, computed exactly."""
    r = Replacement(node, ctx)
    total = _convolve(r, node, node.inputs[0], node.input(2), node.inputs[1], node.input(3))
    r.make("Cast", total, output=node.outputs[0], to=_INT32)
    return r.nodes


def q_linear_conv(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The exact convolution of the integers, scaled, shifted and rounded once."""
    r = Replacement(node, ctx)
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.inputs[:8]
    total = _convolve(r, node, x, x_zero, w, w_zero)
    if node.input(8):
        bias = r.make("Cast", node.inputs[8], to=_DOUBLE)
        total = r.make("Add", total, _per_channel(r, bias, total, 1))
    scale = r.make("Mul", x_scale, w_scale)  # one number, or one for each output channel
    scaled = r.make("Mul", r.make("Cast", total, to=_FLOAT), _per_channel(r, scale, total, 1))
    r.make("QuantizeLinear", scaled, y_scale, y_zero, output=node.outputs[0])
    return r.nodes


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
    _scaled_product(r, node, a, node.input(4), a_scale, b, node.input(5), b_scale, node.input(6))
    return r.nodes


def dynamic_quantize_matmul(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """com.microsoft: the left operand is quantised by its own range first."""
    r = Replacement(node, ctx)
    a, b, b_scale = node.inputs[:3]
    low, scale, zero = _dynamic(r, a)
    _scaled_product(r, node, low, zero, scale, b, node.input(3), b_scale, node.input(4))
    return r.nodes


def _dynamic(r: Replacement, value: str) -> list[str]:
    """Return the bytes, the scale and the zero point."""
    return r.make_several("DynamicQuantizeLinear", [value], [None, None, None])


def _scaled_product(
    r: Replacement,
    node: NodeDef,
    a: str,
    a_zero: str,
    a_scale: str,
    b: str,
    b_zero: str,
    b_scale: str,
    bias: str,
) -> None:
    total = r.make("Cast", r.make("MatMulInteger", a, b, a_zero, b_zero), to=_FLOAT)
    scale = r.make("Mul", a_scale, b_scale)
    if not bias:
        r.make("Mul", total, scale, output=node.outputs[0])
    else:
        r.make("Add", r.make("Mul", total, scale), bias, output=node.outputs[0])


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
