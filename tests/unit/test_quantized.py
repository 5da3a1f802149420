"""Quantised operators and those of com.microsoft, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)

RNG = np.random.default_rng(7)
F = RNG.standard_normal((3, 5, 8)).astype(np.float32)
BYTES = RNG.integers(0, 256, (3, 5, 8), dtype=np.uint8)
SIGNED = RNG.integers(-128, 128, (8, 6), dtype=np.int8)
IMAGE = RNG.integers(0, 256, (1, 4, 7, 6), dtype=np.uint8)
KERNEL = RNG.integers(-128, 128, (6, 4, 3, 3), dtype=np.int8)


def scale(*values: float) -> np.ndarray:
    return np.array(values if len(values) > 1 else values[0], np.float32)


def compare(op, feeds, constants, outputs=1, domain="", opset=21, tolerance=1e-5, steps=0, more=None, **attributes):
    """Operands by name in order, "-…" for absent ones; integers may differ by ``steps``."""
    names = [name if not name.startswith("-") else "" for name in [*feeds, *constants]]
    results = [f"y{i}" for i in range(outputs)]
    node = h.make_node(op, names, results, name="node", domain=domain, **attributes, **(more or {}))
    inputs = [
        h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
        for name, value in feeds.items()
    ]
    kept = [nh.from_array(np.asarray(value), name) for name, value in constants.items() if not name.startswith("-")]
    graph = h.make_graph([node], "g", inputs, [h.make_empty_tensor_value_info(name) for name in results], kept)
    opsets = [h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    for mode in ("host", "sink"):
        got = asc.compile(model, mode=mode, threads=1).run(feeds)
        for name, want in zip(results, wanted, strict=True):
            assert got[name].dtype == want.dtype
            assert got[name].shape == want.shape
            if want.dtype.kind == "f":
                np.testing.assert_allclose(got[name], want, rtol=tolerance, atol=tolerance)
            else:
                assert np.abs(got[name].astype(np.int64) - want.astype(np.int64)).max(initial=0) <= steps


@pytest.mark.parametrize("zero", [np.uint8(0), np.uint8(130), np.int8(-3), np.uint16(40000), np.int16(-5)])
def test_quantize_one_scale(zero):
    x = np.concatenate([F.ravel(), np.float32([1e30, -1e30, np.inf, -np.inf, 0.05, -0.15, 0.25])])
    compare("QuantizeLinear", {"x": x}, {"s": scale(0.1), "z": np.array(zero)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(axis):
    n = F.shape[axis]
    scales = (np.arange(n) + 1).astype(np.float32) / 20
    compare("QuantizeLinear", {"x": F}, {"s": scales, "z": np.arange(n).astype(np.uint8)}, axis=axis)
    compare("DequantizeLinear", {"x": BYTES}, {"s": scales, "z": np.arange(n).astype(np.uint8)}, axis=axis)


def test_blocks_of_an_axis():
    scales = (np.arange(30).reshape(3, 5, 2) + 1).astype(np.float32) / 20
    compare("QuantizeLinear", {"x": F}, {"s": scales, "z": np.ones((3, 5, 2), np.uint8)}, axis=2, block_size=4)
    compare("DequantizeLinear", {"x": BYTES}, {"s": scales, "z": np.ones((3, 5, 2), np.uint8)}, axis=2, block_size=4)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32])
def test_dequantize_every_type(dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, 0, 1, 77], dtype)
    compare("DequantizeLinear", {"x": x}, {"s": scale(0.37), "z": np.array(0, dtype)})


@pytest.mark.parametrize("x", [F, np.abs(F), -np.abs(F), np.zeros((2, 3), np.float32)])
def test_dynamic_quantize(x):
    compare("DynamicQuantizeLinear", {"x": x}, {}, outputs=3)


@pytest.mark.parametrize("zeros", ["none", "scalar", "columns"])
@pytest.mark.parametrize("b_is_constant", [True, False])
def test_matmul_integer(zeros, b_is_constant):
    b = {"b": SIGNED}
    given = {"none": {}, "scalar": {"za": np.uint8(9), "zb": np.int8(-4)}}
    given["columns"] = {"za": np.uint8(9), "zb": np.arange(6).astype(np.int8)}
    feeds, constants = ({"a": BYTES}, {**b, **given[zeros]}) if b_is_constant else ({"a": BYTES, **b}, given[zeros])
    compare("MatMulInteger", feeds, constants)


def test_matmul_integer_sums_exactly_where_float32_alone_would_not():
    a, b = np.full((2, 3000), 255, np.uint8), np.full((3000, 3), -127, np.int8)
    b[::7] = 126
    compare("MatMulInteger", {"a": a}, {"b": b})


def test_conv_integer():
    compare("ConvInteger", {"x": IMAGE}, {"w": KERNEL.view(np.uint8), "zx": np.uint8(128), "zw": np.uint8(120)})


@pytest.mark.parametrize("is_per_channel", [True, False])
def test_q_linear_conv(is_per_channel):
    w_scale = (np.arange(6) + 1).astype(np.float32) / 100 if is_per_channel else scale(0.02)
    w_zero = np.zeros(6, np.int8) if is_per_channel else np.int8(0)
    constants = {"xs": scale(0.05), "xz": np.uint8(120), "w": KERNEL, "ws": w_scale, "wz": w_zero}
    constants |= {"ys": scale(0.4), "yz": np.uint8(128), "b": np.arange(6, dtype=np.int32) * 100}
    compare("QLinearConv", {"x": IMAGE}, constants, steps=1, pads=[1, 1, 1, 1], strides=[2, 1])


def test_q_linear_matmul():
    constants = {"as": scale(0.02), "az": np.uint8(120), "b": SIGNED, "bs": scale(0.01), "bz": np.int8(3)}
    constants |= {"ys": scale(0.1), "yz": np.uint8(128)}
    compare("QLinearMatMul", {"a": BYTES}, constants, steps=1)


def test_products_of_com_microsoft():
    b = {"b": SIGNED, "bs": scale(0.01), "bz": np.int8(3)}
    compare("DynamicQuantizeMatMul", {"a": F}, {**b, "bias": np.ones(6, np.float32)}, domain="com.microsoft")
    constants = {"b": SIGNED, "as": scale(0.02), "bs": scale(0.01), "az": np.uint8(120), "bz": np.int8(3)}
    compare("MatMulIntegerToFloat", {"a": BYTES}, constants, domain="com.microsoft")
    compare("FusedMatMul", {"a": F, "b": F}, {}, domain="com.microsoft", transB=1, alpha=0.5)


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu"])
def test_gelus_of_com_microsoft(op):
    compare(op, {"x": F}, {}, domain="com.microsoft", tolerance=1e-4)


def test_biases_and_skips_of_com_microsoft():
    bias, other = F[0, 0], F[::-1].copy()
    compare("BiasGelu", {"x": F}, {"b": bias}, domain="com.microsoft", tolerance=1e-4)
    operands = {"g": bias, "b": bias + 1, "c": bias * 2}
    compare("SkipLayerNormalization", {"x": F, "s": other}, operands, domain="com.microsoft", tolerance=1e-4)
    operands = {"g": bias, "c": bias * 2}
    compare("SkipSimplifiedLayerNormalization", {"x": F, "s": other}, operands, domain="com.microsoft", tolerance=1e-4)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_elementwise_of_com_microsoft(op):
    other = BYTES[:, ::-1].copy()
    model_inputs = {"a": BYTES}
    constants = {"as": scale(0.02), "az": np.uint8(120), "b": other, "bs": scale(0.03), "bz": np.uint8(100)}
    compare(op, model_inputs, {**constants, "ys": scale(0.05), "yz": np.uint8(128)}, domain="com.microsoft", steps=1)


@pytest.mark.parametrize("is_rounded", [True, False])
@pytest.mark.parametrize("transposes", [True, False])
def test_q_gemm(is_rounded, transposes):
    b = np.ascontiguousarray(SIGNED.T) if transposes else SIGNED
    constants = {"as": scale(0.02), "az": np.uint8(120), "b": b, "bs": scale(0.01), "bz": np.int8(3)}
    constants |= {"c": np.arange(6, dtype=np.int32) * 50}
    if is_rounded:
        constants |= {"ys": scale(0.1), "yz": np.uint8(128)}
    compare("QGemm", {"a": BYTES[0]}, constants, domain="com.microsoft", steps=1, transB=int(transposes))


@pytest.mark.parametrize(("softmax_opset", "axis"), [(13, -1), (13, 1), (11, 1), (11, 2)])
def test_q_linear_softmax(softmax_opset, axis):
    constants = {"xs": scale(0.05), "xz": np.uint8(120), "ys": scale(1 / 256), "yz": np.uint8(0)}
    attributes = {"opset": softmax_opset, "axis": axis}
    compare("QLinearSoftmax", {"x": BYTES}, constants, domain="com.microsoft", steps=1, more=attributes)


def test_q_linear_pools():
    constants = {"xs": scale(0.05), "xz": np.uint8(120), "ys": scale(0.04), "yz": np.uint8(100)}
    compare("QLinearGlobalAveragePool", {"x": IMAGE}, constants, domain="com.microsoft", steps=1)
    options = {"kernel_shape": [3, 2], "strides": [2, 1]}
    compare("QLinearAveragePool", {"x": IMAGE}, constants, domain="com.microsoft", steps=1, **options)


def test_q_linear_concat():
    feeds = {"ys": np.array(0.05, np.float32), "yz": np.array(100, np.uint8), "a": BYTES}
    constants = {"as": scale(0.02), "az": np.uint8(120), "b": BYTES[:, :2], "bs": scale(0.03), "bz": np.uint8(90)}
    compare("QLinearConcat", feeds, constants, domain="com.microsoft", steps=1, axis=1)


def test_conv_integer_is_exact_where_float32_would_not_be():
    image, kernel = np.full((1, 300, 4, 4), 255, np.uint8), np.full((2, 300, 3, 3), 127, np.int8)
    kernel[1, ::3] = -128
    compare("ConvInteger", {"x": image}, {"w": kernel})


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_dynamic_quantize_lstm_is_close(direction):
    n = 2 if direction == "bidirectional" else 1
    w, r = (RNG.integers(-60, 60, (n, 8, 16), dtype=np.int8), RNG.integers(-60, 60, (n, 4, 16), dtype=np.int8))
    constants = {"w": w, "r": r, "-b": 0, "-l": 0, "-h": 0, "-c": 0, "-p": 0}
    constants |= {"ws": np.full(n, 0.01, np.float32), "wz": np.zeros(n, np.int8)}
    constants |= {"rs": np.full(n, 0.01, np.float32), "rz": np.zeros(n, np.int8)}
    options = {"domain": "com.microsoft", "tolerance": 3e-3, "hidden_size": 4, "direction": direction}
    compare("DynamicQuantizeLSTM", {"x": F}, constants, outputs=3, **options)


def test_scales_that_do_not_fit_are_refused():
    node = h.make_node("QuantizeLinear", ["x", "s"], ["y"], name="q", axis=1)
    graph = h.make_graph(
        [node],
        "g",
        [h.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 5, 8])],
        [h.make_empty_tensor_value_info("y")],
        [nh.from_array(np.ones(4, np.float32), "s")],
    )
    with pytest.raises(asc.GraphError, match=r"\[infer_shape\] QuantizeLinear 'q': scale \[4\] for axis 1 of"):
        asc.compile(h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10), threads=1)


@pytest.mark.parametrize(
    "op",
    [
        "DynamicQuantizeLSTM",
        "FusedMatMul",
        "Gelu",
        "QGemm",
        "QLinearAdd",
        "QLinearConcat",
        "QLinearGlobalAveragePool",
        "QLinearSoftmax",
        "SkipLayerNormalization",
    ],
)
@pytest.mark.parametrize("inputs", [[], ["x"]])
def test_foreign_nodes_with_too_few_operands_are_refused(op, inputs):
    node = h.make_node(op, inputs, ["y"], name="n", domain="com.microsoft", axis=3)
    x = h.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    graph = h.make_graph([node], "g", [x], [h.make_empty_tensor_value_info("y")])
    opsets = [h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)]
    if op == "Gelu" and inputs:
        return
    with pytest.raises(asc.AscendSchedError, match="'n"):
        asc.compile(h.make_model(graph, opset_imports=opsets, ir_version=10), threads=1)
