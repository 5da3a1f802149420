"""Products of integers that become one task with what scales them: against NumPy and onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)

RNG = np.random.default_rng(5)


def some_bytes(dtype: Any, *shape: int, rng: np.random.Generator = RNG) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape, dtype=dtype)


class Model:
    """Nodes of either domain; whatever is no name becomes a constant."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def name_of(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        self.constants.append(nh.from_array(np.asarray(value), f"k{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        inputs = tuple(self.name_of(value) for value in inputs)
        self.nodes.append(h.make_node(op, inputs, names, name=names[0], domain=domain, **attributes))
        return names[0]

    def proto(self, inputs: dict[str, np.ndarray], *results: str) -> onnx.ModelProto:
        infos = [
            h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
            for name, value in inputs.items()
        ]
        graph = h.make_graph(
            self.nodes, "g", infos, [h.make_empty_tensor_value_info(name) for name in results], self.constants
        )
        opsets = [h.make_opsetid("", 20), h.make_opsetid("com.microsoft", 1)]
        return h.make_model(graph, opset_imports=opsets, ir_version=9)


def run_reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def tasks_of(exe: asc.Executable) -> list[str]:
    return [line.strip().split(" ")[0] for line in exe.explain().splitlines() if "': task" in line]


def check(model: onnx.ModelProto, feeds: dict[str, np.ndarray], tolerance: float, step: int = 0) -> list[str]:
    """Compare all ways to run; return the operators of the tasks of the last one."""
    wanted = run_reference(model, feeds)
    for fuse in (False, True):
        for onednn in (False, True):
            for mode in ("host", "sink"):
                exe = asc.compile(model, mode=mode, threads=1, options=asc.Options(onednn=onednn, fuse=fuse))
                for got, want in zip(exe.run(feeds).values(), wanted, strict=True):
                    assert got.dtype == want.dtype
                    assert got.shape == want.shape
                    if want.dtype.kind == "f":
                        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
                    else:
                        assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= step
    return tasks_of(exe)


def convolve(x: np.ndarray, w: np.ndarray, zero: int, pads: tuple[int, int], stride: int, group: int) -> np.ndarray:
    """Integers less their zero points, over the last two axes; padding is the zero point, hence 0 here."""
    x = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), pads, pads))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    inputs, outputs = w.shape[1], w.shape[0] // group
    parts = [
        np.einsum("nchwij,ocij->nohw", windows[:, g * inputs : (g + 1) * inputs], w[g * outputs : (g + 1) * outputs])
        for g in range(group)
    ]
    return np.concatenate(parts, 1)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_conv_integer_is_exact_at_all_zero_points(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    group = draw(st.integers(1, 3))
    inputs, outputs = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    begin, end, stride = draw(st.integers(0, 2)), draw(st.integers(0, 2)), draw(st.integers(1, 2))
    shape = (draw(st.integers(1, 2)), group * inputs, draw(st.integers(3, 8)), draw(st.integers(3, 8)))
    x_type, w_type = draw(st.sampled_from([np.uint8, np.int8])), draw(st.sampled_from([np.uint8, np.int8]))
    x, w = some_bytes(x_type, *shape, rng=rng), some_bytes(w_type, group * outputs, inputs, *kernel, rng=rng)
    x_zero = some_bytes(x_type, 1, rng=rng)[0]
    w_zero = some_bytes(w_type, *([group * outputs] if draw(st.booleans()) else []), rng=rng)
    m = Model()
    y = m.node(
        "ConvInteger", "x", w, x_zero, w_zero, pads=[begin, begin, end, end], strides=[stride, stride], group=group
    )
    model = m.proto({"x": x}, y)
    centred = w.astype(np.int64) - w_zero.astype(np.int64).reshape(-1, 1, 1, 1)
    wanted = convolve(x, centred, int(x_zero), (begin, end), stride, group)
    for options in (asc.Options(), asc.Options(onednn=False), asc.Options(fuse=False)):
        exe = asc.compile(model, threads=1, options=options)
        assert np.array_equal(exe.run({"x": x})[y], wanted)
        assert "QuantizedConv" in tasks_of(exe)


def test_conv_integer_takes_weights_that_are_not_constant() -> None:
    x, w = some_bytes(np.uint8, 1, 3, 6, 5), some_bytes(np.uint8, 4, 3, 3, 2)
    m = Model()
    y = m.node("ConvInteger", "x", "w", np.uint8(7), np.uint8(200))
    wanted = convolve(x, w.astype(np.int64) - 200, 7, (0, 0), 1, 1)
    got = asc.compile(m.proto({"x": x, "w": w}, y), threads=1).run({"x": x, "w": w})[y]
    assert np.array_equal(got, wanted)


def dynamic_conv(m: Model, x: str, w: np.ndarray, scale: Any, bias: np.ndarray | None = None, **attributes: Any) -> str:
    """What onnxruntime's quantize_dynamic makes of a convolution."""
    data = m.node("DynamicQuantizeLinear", x, outputs=3)
    y = m.node("ConvInteger", data, w, data[:-1] + "2", w.dtype.type(w.dtype == np.uint8 and 128), **attributes)
    y = m.node("Mul", m.node("Cast", y, to=T.FLOAT), m.node("Mul", data[:-1] + "1", scale))
    return m.node("Add", y, bias.reshape(1, -1, 1, 1)) if bias is not None else y


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_convolutions_are_one_task_each(per_channel: bool, bias: bool) -> None:
    m = Model()
    y, channels = "x", 4
    for outputs, group in ((6, 1), (6, 6), (5, 1)):
        w = some_bytes(np.uint8, outputs, channels // group, 3, 3)
        scale = np.float32(RNG.random((outputs, 1, 1)) / 200 if per_channel else 0.004)
        add = RNG.standard_normal(outputs).astype(np.float32) if bias else None
        y = m.node("Relu", dynamic_conv(m, y, w, scale, add, pads=[1] * 4, group=group))
        channels = outputs
    x = RNG.standard_normal((2, 4, 9, 8)).astype(np.float32)
    tasks = check(m.proto({"x": x}, y), {"x": x}, 2e-3)
    assert tasks.count("QuantizedConv") == 3
    assert tasks.count("Transpose") == 2
    assert not {"Cast", "Add", "Relu"} & set(tasks)


@pytest.mark.parametrize("shape", [(1, 24), (5, 24), (3, 4, 24), (40, 24)])
@pytest.mark.parametrize("per_column", [False, True])
def test_dynamic_products_are_one_task(shape: tuple[int, ...], per_column: bool) -> None:
    m = Model()
    data = m.node("DynamicQuantizeLinear", "x", outputs=3)
    scale, zero = (np.float32(RNG.random(70) / 50), some_bytes(np.uint8, 70)) if per_column else (0.01, np.uint8(99))
    y = m.node("MatMulInteger", data, some_bytes(np.uint8, 24, 70), data[:-1] + "2", zero)
    y = m.node("Cast", y, to=T.FLOAT)
    y = m.node("Mul", y, m.node("Mul", data[:-1] + "1", np.float32(scale)))
    y = m.node("Add", np.float32(RNG.standard_normal(70)), y)
    x = RNG.standard_normal(shape).astype(np.float32)
    tasks = check(m.proto({"x": x}, m.node("Relu", y)), {"x": x}, 1e-4)
    assert "QuantizedMatMul" in tasks
    assert not {"Cast", "Add", "Relu"} & set(tasks)


def test_zero_points_of_rows_stay_a_product_of_integers() -> None:
    x, b, zeros = some_bytes(np.uint8, 3, 6), some_bytes(np.int8, 6, 4), some_bytes(np.uint8, 3)
    m = Model()
    y = m.node("Cast", m.node("MatMulInteger", "x", b, zeros), to=T.FLOAT)
    y = m.node("Mul", y, np.float32(0.5))
    exe = asc.compile(m.proto({"x": x}, y), threads=1)
    wanted = ((x.astype(np.int64) - zeros.astype(np.int64)[:, None]) @ b.astype(np.int64)).astype(np.float32) / 2
    assert np.array_equal(exe.run({"x": x})[y], wanted)
    assert "MatMulInteger" in tasks_of(exe)


@pytest.mark.parametrize("case", ["two readers", "wide scale", "cast to int64", "columns of a result"])
def test_what_does_not_fit_runs_as_it_is(case: str) -> None:
    x, b = some_bytes(np.uint8, 3, 6), some_bytes(np.int8, 6, 4)
    feeds = {"x": x} | ({"b": b} if case == "columns of a result" else {})
    m = Model()
    b_zero = some_bytes(np.int8, 4) if case == "columns of a result" else np.int8(2)
    y = m.node("MatMulInteger", "x", "b" if "b" in feeds else b, np.uint8(3), b_zero)
    real = m.node("Cast", y, to=T.INT64 if case == "cast to int64" else T.FLOAT)
    scale = np.float32(RNG.random((1, 3, 1))) if case == "wide scale" else np.float32(0.5)
    real = m.node("Mul", real, np.int64(3) if case == "cast to int64" else scale)
    results = [real, y] if case == "two readers" else [real]
    assert "MatMulInteger" in check(m.proto(feeds, *results), feeds, 1e-5)


@pytest.mark.parametrize("a_zero", [0, 120])
@pytest.mark.parametrize("b_zero", [0, 7])
def test_rounded_products_of_two_results(a_zero: int, b_zero: int) -> None:
    a, b = some_bytes(np.uint8, 2, 5, 6), some_bytes(np.int8, 2, 6, 4)
    m = Model()
    scales = [np.float32(0.02), np.uint8(a_zero), np.float32(0.03), np.int8(b_zero), np.float32(0.2), np.uint8(100)]
    y = m.node("QLinearMatMul", "a", *scales[:2], "b", *scales[2:])
    assert check(m.proto({"a": a, "b": b}, y), {"a": a, "b": b}, 0, step=1) == ["QuantizedMatMul"]


def test_threads_do_not_change_scaled_products() -> None:
    for m_rows, k, n in ((1, 4096, 2560), (300, 256, 200), (130, 700, 64)):
        m = Model()
        scales = [np.float32(0.02), np.int8(3), np.float32(0.2), np.uint8(100)]
        y = m.node("QLinearMatMul", "a", np.float32(0.02), np.uint8(120), some_bytes(np.int8, k, n), *scales)
        a = some_bytes(np.uint8, m_rows, k)
        model = m.proto({"a": a}, y)
        results = [asc.compile(model, threads=threads).run({"a": a})[y] for threads in (1, 2, 3)]
        assert all(np.array_equal(results[0], other) for other in results[1:])
        assert np.abs(results[0].astype(int) - run_reference(model, {"a": a})[0]).max() <= 1


def test_saved_files_hold_integer_convolutions(tmp_path: Path) -> None:
    m = Model()
    y = dynamic_conv(m, "x", some_bytes(np.int8, 4, 3, 3, 3), np.float32(0.01), np.ones(4, np.float32))
    x = RNG.standard_normal((1, 3, 6, 6)).astype(np.float32)
    exe = asc.compile(m.proto({"x": x}, y), threads=1)
    exe.save(tmp_path / "m.asc")
    assert np.array_equal(asc.load(tmp_path / "m.asc").run({"x": x})[y], exe.run({"x": x})[y])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_where_and_means_of_bytes(dtype: Any) -> None:
    condition, x, y = RNG.random((3, 4)) > 0.5, some_bytes(dtype, 2, 3, 4), some_bytes(dtype, 1, 4)
    feeds = {"c": condition, "x": x, "y": y}
    scales = [np.float32(0.02), dtype(3)], [np.float32(0.03), dtype(5)], [np.float32(0.025), dtype(9)]
    m = Model()
    z = m.node("QLinearWhere", "c", "x", *scales[0], "y", *scales[1], *scales[2], domain="com.microsoft")
    check(m.proto(feeds, z), feeds, 0, step=1)
    for axes, keepdims in (([1], 1), ([-1, 0], 0)):
        m = Model()
        options = {"axes": axes, "keepdims": keepdims, "domain": "com.microsoft"}
        z = m.node("QLinearReduceMean", "x", *scales[0], *scales[2], **options)
        mean = ((x.astype(np.float64) - 3) * 0.02).mean(tuple(axes), keepdims=bool(keepdims)) / 0.025 + 9
        limits = np.iinfo(dtype)
        got = asc.compile(m.proto({"x": x}, z), threads=1).run({"x": x})[z]
        assert got.shape == mean.shape
        assert np.abs(got - mean.round().clip(limits.min, limits.max)).max() <= 1


def test_conversions_of_com_microsoft_with_16_bits() -> None:
    x = RNG.standard_normal((3, 5)).astype(np.float32)
    m = Model()
    zero, more = np.uint16(30000), {"domain": "com.microsoft"}
    y = m.node("QuantizeLinear", "x", np.float32(1e-4), zero, **more)
    check(m.proto({"x": x}, m.node("DequantizeLinear", y, np.float32(1e-4), zero, **more)), {"x": x}, 1e-6)


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention_of_bytes(per_column: bool, unidirectional: int) -> None:
    x, w = some_bytes(np.uint8, 2, 5, 8), some_bytes(np.int8, 8, 48)
    scale = np.float32(RNG.random(48) / 50) if per_column else np.float32(0.01)
    zero = np.zeros(48, np.int8) if per_column else np.int8(2)
    mask = np.array([5, 3], np.int32)
    options = {"num_heads": 4, "unidirectional": unidirectional, "domain": "com.microsoft"}
    operands = ["x", w, np.float32(RNG.standard_normal(48)), np.float32(0.02), scale, mask, np.uint8(120), zero]
    m = Model()
    y = m.node("QAttention", *operands, **options)
    assert "QuantizedMatMul" in check(m.proto({"x": x}, y), {"x": x}, 1e-4)


@pytest.mark.parametrize("has_segments", [True, False])
def test_embeddings_of_bytes(has_segments: bool) -> None:
    ids = RNG.integers(0, 20, (2, 6)).astype(np.int32)
    segments = (ids % 2).astype(np.int32)
    tables = [some_bytes(np.uint8, *shape) for shape in ((20, 8), (12, 8), (2, 8), (8,), (8,))]
    scales = [np.float32(s) for s in (0.02, 0.01, 0.03, 0.015, 0.02)]
    zeros = [np.uint8(z) for z in (128, 100, 90, 20, 120)]
    kinds, mask = ("s", ids.clip(0, 1)) if has_segments else ("", "")
    if not has_segments:
        tables[2], scales[2], zeros[2] = "", "", ""
    m = Model()
    operands = ["i", kinds, *tables, mask, *scales, *zeros]
    y = m.node("QEmbedLayerNormalization", *operands, outputs=2, domain="com.microsoft")
    feeds = {"i": ids} | ({"s": segments} if has_segments else {})
    check(m.proto(feeds, y, y[:-1] + "1"), feeds, 1e-4)


HOSTILE = [
    ("ConvInteger", ["x", np.zeros((4, 3, 3), np.int8)], {}),
    ("ConvInteger", ["x", np.zeros((4, 3, 9, 9), np.int8)], {}),
    ("ConvInteger", ["x", np.zeros((4, 2, 3, 3), np.int8)], {}),
    ("ConvInteger", ["x", np.zeros((0, 3, 3, 3), np.int8)], {}),
    ("ConvInteger", ["x", np.zeros((4, 3, 3, 3), np.int8), np.zeros(3, np.uint8)], {}),
    ("ConvInteger", ["x", np.zeros((4, 3, 3, 3), np.int8), np.uint8(1), np.zeros(3, np.int8)], {}),
    ("ConvInteger", ["x", np.zeros((4, 3, 3, 3), np.int8)], {"group": 0}),
    ("ConvInteger", ["x", np.zeros((4, 3, 3, 3), np.int8)], {"strides": [0, 1]}),
    ("ConvInteger", ["x", np.zeros((4, 3, 3, 3), np.float32)], {}),
    ("QLinearWhere", ["x", "x"], {"domain": "com.microsoft"}),
    ("QLinearReduceMean", ["x", np.float32(1)], {"domain": "com.microsoft", "axes": [7]}),
    ("QAttention", ["x", np.zeros((3, 9), np.int8)], {"domain": "com.microsoft", "num_heads": 0}),
    ("QEmbedLayerNormalization", ["x"], {"domain": "com.microsoft"}),
]


@pytest.mark.parametrize("case", range(len(HOSTILE)))
def test_operands_that_do_not_fit_are_refused(case: int) -> None:
    op, operands, attributes = HOSTILE[case]
    m = Model()
    x = some_bytes(np.uint8, 1, 3, 8, 8)
    model = m.proto({"x": x}, m.node(op, *operands, **attributes))
    with pytest.raises(asc.AscendSchedError, match=rf"{op}_0_0|transpose_to_x_last"):
        asc.compile(model, threads=1).run({"x": x})
