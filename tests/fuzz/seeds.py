"""Small models that between them use every operator: what the fuzzer mutates."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from tests.fuzz.seeds_values import value_models
from tests.unit import onnx_models

F = np.float32
I64 = np.int64
X = np.arange(-12, 12, dtype=F).reshape(2, 3, 4) / 4
IMAGE = np.linspace(-1, 1, 2 * 3 * 6 * 6, dtype=F).reshape(2, 3, 6, 6)
MATRIX = np.linspace(-1, 1, 12, dtype=F).reshape(3, 4)
MASK = X > 0
BOXES = np.linspace(0, 1, 24, dtype=F).reshape(1, 6, 4)
SCORES = np.linspace(0, 1, 12, dtype=F).reshape(1, 2, 6)
BYTES = np.arange(-6, 6, dtype=np.int8).reshape(2, 6)
SIGNAL = np.sin(np.arange(40, dtype=F)).reshape(2, 20, 1)
WHOLE = (X * 4).astype(np.int32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, I64)


def single(op: str, inputs: list[Any], outputs: int = 1, opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    """One node; the first operand is an input with symbolic dims, further ones are initializers, None is absent."""
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(inputs)]
    results = [f"o{k}" for k in range(outputs)]
    nodes = [h.make_node(op, names, results, name=op.lower(), **attributes)]
    constants = {n: v for n, v in zip(names[1:], inputs[1:], strict=True) if n}
    graph_inputs = []
    if inputs and inputs[0] is not None:
        first = np.asarray(inputs[0])
        dims = [f"d{k}" if first.ndim > 1 and k == 0 else d for k, d in enumerate(first.shape)]
        graph_inputs = [onnx_models.info("i0", h.np_dtype_to_tensor_dtype(first.dtype), dims)]
    return onnx_models.model(
        nodes, graph_inputs, [h.make_empty_tensor_value_info(r) for r in results], constants, opset
    )


def _elementwise() -> list[onnx.ModelProto]:
    real = "Exp Log Sin Cos Tanh Sigmoid Sqrt Reciprocal Floor Ceil Round Abs Sign Neg Relu Erf IsNaN IsInf Softplus"
    more = "Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Elu Celu Selu LeakyRelu HardSigmoid ThresholdedRelu Gelu"
    more += " HardSwish Mish Softsign Identity"
    models = [single(op, [X], opset=20) for op in (real + " " + more).split()]
    compare = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")
    models += [single(op, [X, MATRIX]) for op in ("Add", "Sub", "Mul", "Div", "Pow", *compare)]
    models += [single(op, [X, MATRIX, F(1)]) for op in ("Min", "Max", "Sum", "Mean")]
    models += [single(op, [WHOLE, np.int32([[1, 2, 3, 4]])]) for op in ("Add", "Div", "Mod", "Pow", "Equal", "Max")]
    models += [single(op, [MASK, MASK[:1]]) for op in ("And", "Or", "Xor")]
    models += [single(op, [WHOLE, WHOLE[0]]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")]
    return [
        *models,
        single("Swish", [X], opset=24),
        single("Not", [MASK]),
        single("BitwiseNot", [WHOLE]),
        single("BitShift", [WHOLE.astype(np.uint8), np.uint8([1, 2, 3, 9])], direction="LEFT"),
        single("Mod", [X, F(3)], fmod=1),
        single("Clip", [X, F(-1), F(1)]),
        single("Cast", [X], to=T.INT32),
        single("CastLike", [X, np.float16(0)]),
        single("Dropout", [X, F(0.5)], outputs=2),
        single("Dropout", [X, F(0.5), np.array(True)], outputs=2, seed=1),
        *(single(op, [X], seed=1.0) for op in ("RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")),
        single("PRelu", [X, F([[0.5]])]),
        single("Where", [MASK, X, F(0)]),
    ]


def _shapes() -> list[onnx.ModelProto]:
    reductions = ("Sum", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    return [
        single("Shape", [X], start=-2),
        single("Size", [X]),
        single("Range", [ints(0)[0], ints(9)[0], ints(2)[0]]),
        single("ConstantOfShape", [ints(2, 3)], value=nh.from_array(np.float32([7]))),
        single("EyeLike", [MATRIX], k=1),
        single("OneHot", [ints(0, 2, 1), ints(4)[0], F([0, 1])], axis=-1),
        single("NonZero", [MASK]),
        single("Compress", [X, np.array([True, False, True])], axis=1),
        single("Reshape", [X, ints(0, -1)]),
        single("Flatten", [X], axis=2),
        single("Squeeze", [X[:, :1], ints(1)]),
        single("Unsqueeze", [X, ints(0, 2)]),
        single("Transpose", [X], perm=[2, 0, 1]),
        single("Concat", [X, X[:1], X], axis=0),
        single("Split", [X, ints(1, 2)], outputs=2, axis=1),
        single("Split", [X], outputs=2, axis=2, num_outputs=2),
        single("Expand", [X[:, :1], ints(2, 5, 4)]),
        single("Tile", [X, ints(1, 2, 3)]),
        single("DepthToSpace", [np.zeros((1, 8, 2, 3), F)], blocksize=2, mode="CRD"),
        single("SpaceToDepth", [IMAGE], blocksize=2),
        single("Trilu", [X, ints(1)[0]], upper=0),
        single("Slice", [X, ints(0, -1), ints(2, -5), ints(1, 2), ints(1, -2)]),
        single("Pad", [X, ints(0, 1, 2, 0, 1, 0), F(3)], mode="constant"),
        single("Pad", [X, ints(0, 1, 2, 0, 1, 0)], mode="reflect"),
        single("Pad", [X, ints(1, 1), F(3), ints(1)], mode="edge"),
        single("Gather", [X, ints(2, -1, 0)], axis=1),
        single("GatherND", [X, np.array([[0, 1], [1, -1]])]),
        single("GatherElements", [X, np.zeros((2, 1, 4), I64)], axis=1),
        single("ScatterND", [X, np.array([[0, 1], [1, -1]]), np.ones((2, 4), F)], reduction="add"),
        single("ScatterElements", [X, np.zeros((2, 1, 4), I64), np.ones((2, 1, 4), F)], axis=1),
        single("CumProd", [X, ints(1)[0]], opset=26, reverse=1),
        single("BitCast", [X], opset=26, to=T.INT32),
        single("ReverseSequence", [X, ints(1, 2, 0)], batch_axis=1, time_axis=0),
        single("Unique", [WHOLE.ravel()], outputs=4),
        single("DFT", [X[..., :2], ints(5)[0], ints(1)[0]], opset=20, onesided=0),
        single("STFT", [SIGNAL, ints(3)[0], np.ones(8, F), ints(8)[0]], opset=17),
        single("CumSum", [X, ints(1)[0]], exclusive=1, reverse=1),
        single("TopK", [X, ints(2)], outputs=2, axis=1),
        single("ArgMax", [X], axis=1),
        single("ArgMin", [X], axis=-1, keepdims=0, select_last_index=1),
        *(single(f"Reduce{op}", [X, ints(1, -1)]) for op in reductions),
        *(single(f"Reduce{op}", [X, ints(0)], keepdims=0) for op in ("Max", "Min")),
    ]


def _networks() -> list[onnx.ModelProto]:
    channels = np.linspace(0.5, 1.5, 3, dtype=F)
    weights = np.linspace(-1, 1, 4 * 3 * 3 * 3, dtype=F).reshape(4, 3, 3, 3)
    lstm = [np.linspace(-1, 1, 2 * n, dtype=F).reshape(1, -1, 4)[:, :8] for n in (16, 16)]
    gates = [np.ones((1, 6, 4), F), np.ones((1, 6, 2), F), np.ones((1, 12), F)]
    hidden = [np.ones((1, 8, 4), F), np.ones((1, 8, 2), F), np.ones((1, 16), F)]
    assert lstm[0].shape == (1, 8, 4)
    return [
        single("MatMul", [X, np.ones((4, 5), F)]),
        single("Gemm", [MATRIX, np.ones((5, 4), F), np.ones(5, F)], transB=1, alpha=0.5, beta=2.0),
        single("BatchNormalization", [IMAGE, *[channels] * 4]),
        single("InstanceNormalization", [IMAGE, channels, channels]),
        single("LayerNormalization", [X, np.ones(4, F), np.ones(4, F)], axis=-1),
        single("RMSNormalization", [X, np.ones(4, F)], opset=23, axis=-1),
        single("Softmax", [X], axis=1),
        single("LogSoftmax", [X], axis=-1),
        single("Conv", [IMAGE, weights, np.ones(4, F)], pads=[1, 1, 1, 1], strides=[2, 1]),
        single("Conv", [IMAGE, weights[:3, :1]], group=3, dilations=[2, 2], kernel_shape=[3, 3]),
        single("MaxPool", [IMAGE], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1),
        single("AveragePool", [IMAGE], kernel_shape=[2, 3], auto_pad="SAME_UPPER", count_include_pad=1),
        single("GlobalAveragePool", [IMAGE]),
        single("GlobalMaxPool", [IMAGE]),
        single("LSTM", [X, *hidden], outputs=3, hidden_size=2, direction="forward"),
        single("DynamicQuantizeLSTM", _quantized_lstm(), outputs=3, domain="com.microsoft", hidden_size=2),
        single("GRU", [X, *gates], outputs=2, hidden_size=2, linear_before_reset=1),
        single("ConvTranspose", [IMAGE, weights[:3]], strides=[2, 1], output_padding=[1, 0]),
        single("RNN", [X, np.ones((1, 2, 4), F), np.ones((1, 2, 2), F)], outputs=2, hidden_size=2),
        single("MaxPool", [IMAGE], outputs=2, kernel_shape=[2, 2], storage_order=1),
        single("GridSample", [IMAGE, np.linspace(-1.5, 1.5, 16, dtype=F).reshape(2, 2, 2, 2)], opset=20, mode="cubic"),
        single("Einsum", [X, MATRIX], equation="abc,dc->abd"),
        single("QuantizeLinear", [X, F(0.1), np.uint8(3)]),
        single("DequantizeLinear", [BYTES, F([0.1, 0.2]), np.int8([1, 2])], axis=0),
        single("DynamicQuantizeLinear", [X], outputs=3),
        single("MatMulInteger", [BYTES, BYTES.T, np.int8(2), np.int8([1, 3])]),
        single("NonMaxSuppression", [BOXES, SCORES, ints(3), F([0.5]), F([0.1])]),
        single("Resize", [IMAGE, None, F([1, 1, 2, 2])], mode="nearest"),
        single("Resize", [IMAGE, None, None, ints(2, 3, 4, 9)], mode="linear"),
    ]


def _quantized_lstm() -> list[Any]:
    weights = np.arange(-24, 24, dtype=np.int8).reshape(1, 6, 8)
    scale, zero = F([0.02]), np.int8([1])
    return [X, weights[:, :4], weights[:, 4:], None, None, None, None, None, scale, zero, scale, zero]


def _nested() -> list[onnx.ModelProto]:
    info, node, body = onnx_models.info, h.make_node, onnx_models.body
    step = body(
        [node("Add", ["s", "e"], ["t"]), node("Neg", ["t"], ["u"])], [info("s"), info("e")], [info("t"), info("u")]
    )
    scan = node("Scan", ["start", "x"], ["last", "all"], body=step, num_scan_inputs=1)
    inputs = [info("start", shape=[4]), info("x", shape=["n", 4])]
    return [
        onnx_models.branches(),
        onnx_models.counted_loop(),
        onnx_models.nonzero(),
        onnx_models.mlp(layers=2),
        onnx_models.model([scan], inputs, [info("last"), info("all")]),
    ]


@cache
def seed_models() -> tuple[onnx.ModelProto, ...]:
    """Every seed, in a stable order; not to be changed."""
    from ascendsched.demo.decoder_model import fixed_decoder, growing_decoder
    from ascendsched.demo.decoder_weights import DecoderConfig
    from tests.fuzz.seeds_quantized import quantized_models

    config = DecoderConfig(vocab=11, d=8, layers=1, heads=2, kv_heads=1, ff=12, seed=0)
    decoders = [growing_decoder(config), fixed_decoder(config, 5)]
    small = [*_elementwise(), *_shapes(), *_networks(), *_nested(), *decoders, *value_models(), *quantized_models()]
    return tuple(small)


def operators(graph: onnx.GraphProto) -> set[str]:
    """The operators of a graph and of its bodies."""
    found = {n.op_type for n in graph.node}
    for n in graph.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                found |= operators(a.g)
    return found
