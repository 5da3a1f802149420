"""Quantised models that run on bytes: against onnxruntime without optimisations, on both implementations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)

RNG = np.random.default_rng(11)
LIMITS = {np.uint8: (0, 256), np.int8: (-128, 128)}


class Model:
    """A graph that grows node by node; scales and zero points are constants."""

    def __init__(self, shape: tuple[Any, ...]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shape = shape

    def constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants.append(nh.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def quantized(self, value: str, scale: float, zero: Any) -> str:
        return self.node("QuantizeLinear", value, self.constant(np.float32(scale)), self.constant(zero))

    def real(self, value: str, scale: Any, zero: Any, **attributes: Any) -> str:
        return self.node("DequantizeLinear", value, self.constant(np.float32(scale)), self.constant(zero), **attributes)

    def rounded(self, value: str, scale: float, zero: Any) -> str:
        return self.real(self.quantized(value, scale, zero), scale, zero)

    def proto(self, *results: str) -> onnx.ModelProto:
        inputs = [h.make_tensor_value_info("x", onnx.TensorProto.FLOAT, list(self.shape))]
        outputs = [h.make_empty_tensor_value_info(name) for name in results]
        graph = h.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 19)], ir_version=9)


def run_reference(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": x}))


def check(model: onnx.ModelProto, x: np.ndarray, step: float, holds: str | None = None) -> asc.Executable:
    """Results are within one step of the reference; ``holds`` names the operator that runs."""
    wanted = run_reference(model, x)
    for onednn in (True, False):
        got: dict[str, list[np.ndarray]] = {}
        for mode in ("host", "sink"):
            exe = asc.compile(model, mode=mode, threads=1, options=asc.Options(onednn=onednn))
            got[mode] = list(exe.run({"x": x}).values())
            for g, w in zip(got[mode], wanted, strict=True):
                assert g.dtype == w.dtype
                assert g.shape == w.shape
                assert np.abs(g.astype(np.float64) - w).max(initial=0) <= step * 1.001
            if holds:
                assert f"{holds} '" in exe.explain()
        assert all(np.array_equal(a, b) for a, b in zip(got["host"], got["sink"], strict=True))
    return exe


def weights(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return RNG.integers(*LIMITS[dtype], shape).astype(dtype)


def conv(
    m: Model,
    x: str,
    shape: tuple[int, ...],
    dtype: Any = np.int8,
    zero: Any = 0,
    axis: int | None = None,
    bias: bool = True,
    **attributes: Any,
) -> str:
    n = shape[0] if axis is not None else 1
    scales = (0.5 + RNG.random(n)) / (np.sqrt(np.prod(shape[1:])) * 60)
    zeros = np.full(n, zero, dtype)
    w = m.constant(weights(shape, dtype))
    w = m.real(w, scales[0], zeros[0]) if axis is None else m.real(w, scales, zeros, axis=axis)
    more = [m.constant(RNG.standard_normal(shape[0]).astype(np.float32))] if bias else []
    return m.node("Conv", x, w, *more, **attributes)


SHAPES = [
    ((1, 3, 9, 8), (8, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 16, 7, 7), (24, 16, 1, 1), {}),
    ((1, 8, 12, 10), (8, 1, 3, 3), {"group": 8, "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    ((1, 8, 9, 9), (6, 4, 3, 3), {"group": 2, "dilations": [2, 1], "pads": [1, 0, 2, 1]}),
    ((2, 5, 17), (7, 5, 4), {"strides": [3]}),
    ((1, 3, 5, 6, 4), (4, 3, 2, 2, 2), {"pads": [0, 1, 0, 1, 0, 1]}),
    ((1, 70, 6, 5), (70, 1, 5, 5), {"group": 70, "pads": [2, 2, 2, 2]}),
]


@pytest.mark.parametrize(("x_type", "x_zero"), [(np.uint8, 0), (np.uint8, 131), (np.int8, 0), (np.int8, -7)])
@pytest.mark.parametrize(("w_type", "w_zero"), [(np.int8, 0), (np.int8, 5), (np.uint8, 0), (np.uint8, 128)])
@pytest.mark.parametrize("case", range(len(SHAPES)))
def test_convolutions_are_within_a_step_at_all_zero_points(case, x_type, x_zero, w_type, w_zero):
    x_shape, w_shape, attributes = SHAPES[case]
    axis = 0 if case % 2 else None
    m = Model(x_shape)
    y = conv(m, m.rounded("x", 0.03, x_type(x_zero)), w_shape, w_type, w_zero, axis, bias=case % 3 > 0, **attributes)
    result = m.rounded(y, 0.05, x_type(x_zero))
    check(m.proto(result), RNG.standard_normal(x_shape).astype(np.float32), 0.05, "QuantizedConv")


@pytest.mark.parametrize("op", ["Relu", "Clip", None])
def test_bounds_and_float_results_of_convolutions(op):
    m = Model((1, 4, 6, 6))
    y = conv(m, m.rounded("x", 0.03, np.uint8(120)), (8, 4, 3, 3))
    if op == "Clip":
        y = m.node("Clip", y, m.constant(np.float32(-0.5)), m.constant(np.float32(1.5)))
    elif op:
        y = m.node(op, y)
    x = RNG.standard_normal((1, 4, 6, 6)).astype(np.float32)
    check(m.proto(y), x, 1e-4, "QuantizedConv")
    check(m.proto(m.rounded(y, 0.02, np.int8(-10))), x, 0.02, "QuantizedConv")


def residual_net() -> tuple[Model, str]:
    m = Model(("n", 3, "h", "w"))
    x = m.rounded("x", 0.04, np.uint8(128))
    a = m.rounded(conv(m, x, (16, 3, 3, 3), axis=0, pads=[1] * 4), 0.05, np.uint8(110))
    a = m.rounded(m.node("MaxPool", a, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 0.05, np.uint8(110))
    b = m.rounded(conv(m, a, (16, 1, 3, 3), axis=0, group=16, pads=[1] * 4), 0.04, np.uint8(128))
    b = m.rounded(m.node("Mul", b, m.rounded(m.node("Sigmoid", b), 1 / 255, np.uint8(0))), 0.04, np.uint8(30))
    c = m.rounded(m.node("Add", a, b), 0.06, np.uint8(100))
    d = m.rounded(m.node("Concat", c, b, axis=1), 0.06, np.uint8(100))
    s = m.node("Split", d, m.constant(np.array([8, 24])), axis=1)
    m.nodes[-1].output.append("rest")
    e = m.rounded(conv(m, m.rounded("rest", 0.06, np.uint8(100)), (8, 24, 1, 1)), 0.06, np.uint8(128))
    e = m.node("Add", m.rounded(s, 0.06, np.uint8(100)), e)
    e = m.rounded(e, 0.1, np.uint8(128))
    e = m.rounded(m.node("Resize", e, "", m.constant(np.float32([1, 1, 2, 2])), mode="nearest"), 0.1, np.uint8(128))
    g = m.rounded(m.node("GlobalAveragePool", e), 0.01, np.uint8(128))
    f = m.rounded(m.node("Flatten", g), 0.01, np.uint8(128))
    w = m.real(m.constant(weights((8, 5), np.int8)), 0.01, np.int8(0))
    return m, m.rounded(m.node("Gemm", f, w, m.constant(RNG.standard_normal(5).astype(np.float32))), 0.02, np.uint8(99))


def test_a_network_of_bytes_keeps_channels_last_between_its_ends():
    m, y = residual_net()
    x = RNG.standard_normal((2, 3, 20, 18)).astype(np.float32)
    exe = check(m.proto(y), x, 0.06)
    tasks = [line for line in exe.explain().splitlines() if "': task" in line]
    turned = [line for line in tasks if line.strip().startswith("Transpose")]
    assert len(turned) <= 2
    for op in ("QuantizedConv", "QuantizedMatMul", "BytePool"):
        assert f"{op} '" in exe.explain()


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pads_of_bytes_keep_channels_last(axes: int, mode: str, tmp_path: Path) -> None:
    shape, zero = (2, 3, 9, 7, 6)[: axes + 2], np.uint8(100)
    m = Model(shape)
    a = m.rounded(conv(m, m.rounded("x", 0.04, zero), (8, 3, *[1] * axes)), 0.05, zero)
    pads = np.array([0, 0, *(2, 1, 0)[:axes], 0, 0, *(0, 1, 3)[:axes]], np.int64)
    b = m.rounded(m.node("Pad", a, m.constant(pads), mode=mode), 0.05, zero)
    y = m.rounded(conv(m, b, (4, 8, *[2] * axes)), 0.06, zero)
    x = RNG.standard_normal(shape).astype(np.float32)
    exe = check(m.proto(y), x, 0.06, "QuantizedConv")
    turned = [line for line in exe.explain().splitlines() if line.strip().startswith("Transpose")]
    assert len(turned) <= 2
    exe.save(tmp_path / "m.asc")
    assert np.array_equal(asc.load(tmp_path / "m.asc").run({"x": x})[y], exe.run({"x": x})[y])


def test_without_fusion_operators_run_one_by_one():
    m, y = residual_net()
    x = RNG.standard_normal((1, 3, 10, 10)).astype(np.float32)
    exe = asc.compile(m.proto(y), threads=1, options=asc.Options(fuse=False))
    got = next(iter(exe.run({"x": x}).values()))
    assert np.abs(got - run_reference(m.proto(y), x)[0]).max() <= 0.0601
    assert "Quantized" not in exe.explain()


def test_saved_files_hold_the_operators(tmp_path: Path):
    m, y = residual_net()
    x = RNG.standard_normal((1, 3, 12, 12)).astype(np.float32)
    exe = asc.compile(m.proto(y), threads=1)
    wanted = exe.run({"x": x})[y]
    exe.save(tmp_path / "m.asc")
    loaded = asc.load(tmp_path / "m.asc")
    assert np.array_equal(loaded.run({"x": x})[y], wanted)
    assert loaded.explain().count("QuantizedConv '") == exe.explain().count("QuantizedConv '")


@pytest.mark.parametrize("pads", [{}, {"pads": [1, 1, 0, 1], "count_include_pad": 1}, {"pads": [1, 0, 1, 1]}])
@pytest.mark.parametrize("zero", [np.uint8(7), np.int8(-100)])
def test_averages_of_bytes(pads, zero):
    m = Model((2, 3, 8, 7))
    a = m.rounded(conv(m, m.rounded("x", 0.03, zero), (5, 3, 1, 1)), 0.04, zero)
    y = m.node("AveragePool", a, kernel_shape=[3, 2], strides=[2, 1], **pads)
    x = RNG.standard_normal((2, 3, 8, 7)).astype(np.float32)
    check(m.proto(m.rounded(y, 0.03, zero)), x, 0.07, "BytePool")


@pytest.mark.parametrize("zero", [np.uint8(7), np.int8(-100)])
@pytest.mark.parametrize("channels", [1, 5, 16, 24, 63, 64, 65, 96])
@pytest.mark.parametrize(
    "window",
    [
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [2, 3], "strides": [1, 3], "ceil_mode": 1},
        {"kernel_shape": [1, 2], "dilations": [1, 3], "pads": [0, 1, 0, 1]},
        {"kernel_shape": [9, 7]},
    ],
)
def test_maxima_of_bytes_come_line_by_line(window, channels, zero):
    m = Model((2, 3, 9, 7))
    a = m.rounded(conv(m, m.rounded("x", 0.03, zero), (channels, 3, 1, 1)), 0.04, zero)
    y = m.node("MaxPool", a, **window)
    x = RNG.standard_normal((2, 3, 9, 7)).astype(np.float32)
    assert ": task, lines" in check(m.proto(m.rounded(y, 0.04, zero)), x, 0.041, "BytePool").explain()


@pytest.mark.parametrize("b_shape", [(16, 9), (3, 16, 9)])
def test_products_of_two_results(b_shape):
    m = Model((3, 4, 16))
    a = m.rounded("x", 0.02, np.uint8(100))
    b = m.node("Mul", a, m.constant(np.float32(0.5)))
    b = m.rounded(m.node("Transpose", b, perm=[0, 2, 1]), 0.01, np.uint8(100))
    check(
        m.proto(m.rounded(m.node("MatMul", a, b), 0.05, np.int8(-3))),
        RNG.standard_normal((3, 4, 16)).astype(np.float32),
        0.05,
        "QuantizedMatMul",
    )
    m = Model((3, 4, 16))
    w = m.real(m.constant(weights(b_shape, np.uint8)), 0.01, np.uint8(119))
    y = m.node("MatMul", m.rounded("x", 0.02, np.int8(4)), w)
    check(m.proto(y), RNG.standard_normal((3, 4, 16)).astype(np.float32), 2e-4, "QuantizedMatMul")


def test_every_byte_of_a_table_is_right():
    m = Model((40, 256))
    a = m.rounded("x", 1.0, np.uint8(128))
    y = m.quantized(m.node("Tanh", m.node("Mul", a, m.constant(np.float32(0.03)))), 1 / 100, np.int8(-5))
    x = np.tile(np.arange(-128, 128, dtype=np.float32), (40, 1))
    assert "table of bytes" in check(m.proto(y), x, 1).explain()


def test_padding_of_bytes_is_their_zero_point():
    m = Model((1, 2, 5, 5))
    a = m.rounded("x", 0.03, np.uint8(77))
    a = m.rounded(m.node("Pad", a, m.constant(np.array([0, 0, 1, 2, 0, 0, 0, 1]))), 0.03, np.uint8(77))
    exe = check(
        m.proto(m.rounded(conv(m, a, (4, 2, 2, 2)), 0.05, np.uint8(128))),
        RNG.standard_normal((1, 2, 5, 5)).astype(np.float32),
        0.05,
        "QuantizedConv",
    )
    assert "DequantizeLinear '" in exe.explain()


@pytest.mark.parametrize("shape", [(0, 4, 6, 6), (1, 4, 1, 1)])
def test_empty_and_smallest_inputs(shape):
    m = Model(("n", 4, "h", "w"))
    y = m.rounded(conv(m, m.rounded("x", 0.03, np.uint8(128)), (8, 4, 1, 1)), 0.05, np.uint8(128))
    check(m.proto(y), RNG.standard_normal(shape).astype(np.float32), 0.05)


def test_a_wrong_rank_is_refused():
    m = Model(())
    m.shape = ("a", "b", "c")
    y = m.rounded(conv(m, m.rounded("x", 0.03, np.uint8(128)), (8, 4, 1, 1)), 0.05, np.uint8(128))
    with pytest.raises(asc.GraphError):
        asc.compile(m.proto(y), threads=1).run({"x": np.zeros((2, 4, 5), np.float32)})


def test_scalar_zero_points_may_have_one_dimension():
    m = Model((2, 3))
    a = m.node("QuantizeLinear", "x", m.constant(np.float32([0.1])), m.constant(np.uint8([3])))
    y = m.node("DequantizeLinear", a, m.constant(np.float32(0.1)), m.constant(np.uint8([3])))
    exe = asc.compile(m.proto(y), threads=1)
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_allclose(
        next(iter(exe.run({"x": x}).values())), np.clip(np.rint(x / 0.1) + 3, 0, 255) / 10 - 0.3, atol=1e-6
    )
