"""Products with constant bfloat16 weights: right against float64, with and without the CPU's instructions for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

HALF = ml_dtypes.bfloat16
RNG = np.random.default_rng(21)
WAYS = (asc.Options(), asc.Options(onednn=False), asc.Options(fuse=False))


def some(*shape: int, rng: np.random.Generator = RNG) -> np.ndarray:
    return rng.standard_normal(shape).astype(HALF)


def model_of(nodes: list[onnx.NodeProto], rank: int, constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    info = h.make_tensor_value_info("x", T.BFLOAT16, [None] * rank)
    kept = [nh.from_array(value, name) for name, value in constants.items()]
    graph = h.make_graph(nodes, "g", [info], [h.make_empty_tensor_value_info("y")], kept)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)


def single(op: str, rank: int, constants: dict[str, np.ndarray], **attributes: Any) -> onnx.ModelProto:
    node = h.make_node(op, ["x", *constants], ["y"], name="product", **attributes)
    return model_of([node], rank, constants)


def check(model: onnx.ModelProto, x: np.ndarray, wanted: np.ndarray, size: np.ndarray) -> None:
    """``size``: of what each result sums. Operands are exact, sums are float32, results are rounded once."""
    for options in WAYS:
        results = [asc.compile(model, mode=mode, threads=1, options=options).run({"x": x})["y"] for mode in MODES]
        for got in results:
            assert got.dtype == HALF
            assert got.shape == wanted.shape
            error = np.abs(got.astype(np.float64) - wanted)
            assert (error <= np.abs(wanted) / 256 + size * 1e-5 + 1e-30).all()
        assert np.array_equal(results[0].view(np.uint16), results[1].view(np.uint16))


MODES = ("host", "sink")


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_matrix_products_are_right(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, k, n = draw(st.integers(1, 40)), draw(st.integers(1, 200)), draw(st.integers(1, 150))
    shape = (*draw(st.lists(st.integers(0, 3), max_size=2)), m, k)
    x, w = some(*shape, rng=rng), some(k, n, rng=rng)
    real = x.astype(np.float64)
    wide = w.astype(np.float64)
    check(single("MatMul", len(shape), {"w": w}), x, real @ wide, np.abs(real) @ np.abs(wide))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_gemms_are_right(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, k, n = draw(st.integers(1, 60)), draw(st.integers(1, 120)), draw(st.integers(1, 120))
    turns = [draw(st.booleans()) for _ in range(2)]
    x, w = some(*((k, m) if turns[0] else (m, k)), rng=rng), some(*((n, k) if turns[1] else (k, n)), rng=rng)
    attributes: dict[str, Any] = {"transA": int(turns[0]), "transB": int(turns[1])}
    attributes |= {"alpha": draw(st.sampled_from([1.0, 0.5])), "beta": draw(st.sampled_from([1.0, 2.0, 0.0]))}
    constants = {"w": w}
    shapes = draw(st.sampled_from([None, (n,), (1, n), (m, 1), (m, n), (1,)]))
    if shapes is not None:
        constants["b"] = some(*shapes, rng=rng)
    a, b = (v.astype(np.float64).T if t else v.astype(np.float64) for v, t in zip((x, w), turns, strict=True))
    add = attributes["beta"] * constants["b"].astype(np.float64) if shapes is not None else 0.0
    wanted = attributes["alpha"] * (a @ b) + add
    check(single("Gemm", 2, constants, **attributes), x, wanted, np.abs(a) @ np.abs(b) + np.abs(add))


@pytest.mark.parametrize("group", [1, 2, 8])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(1, 1, 0), (3, 1, 1), (3, 2, 0)])
@pytest.mark.parametrize("bias", [False, True])
def test_convolutions_are_right(group: int, kernel: int, stride: int, pad: int, bias: bool) -> None:
    x, w = some(2, 8, 30, 28), some(16, 8 // group, kernel, kernel)
    constants = {"w": w} | ({"b": some(16)} if bias else {})
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    wide, inputs, outputs = w.astype(np.float64), 8 // group, 16 // group

    def convolve(windows: np.ndarray, wide: np.ndarray) -> np.ndarray:
        parts = [
            np.einsum(
                "nchwij,ocij->nohw",
                windows[:, g * inputs : (g + 1) * inputs],
                wide[g * outputs : (g + 1) * outputs],
                optimize=True,
            )
            for g in range(group)
        ]
        return np.concatenate(parts, 1)

    add = constants["b"].astype(np.float64).reshape(1, -1, 1, 1) if bias else 0.0
    attributes = {"group": group, "strides": [stride] * 2, "pads": [pad] * 4}
    size = convolve(np.abs(windows), np.abs(wide)) + np.abs(add)
    check(single("Conv", 4, constants, **attributes), x, convolve(windows, wide) + add, size)


def test_infinities_and_nan_pass_through_products() -> None:
    x = some(16, 128)
    x[0, 0], x[1, 1], x[2, 2] = np.inf, np.nan, -np.inf
    w = np.abs(some(128, 64)) + HALF(0.5)
    for options in WAYS:
        y = asc.compile(single("MatMul", 2, {"w": w}), threads=1, options=options).run({"x": x})["y"].astype(np.float32)
        assert np.isposinf(y[0]).all()
        assert np.isnan(y[1]).all()
        assert np.isneginf(y[2]).all()
        assert np.isfinite(y[3:]).all()


def block(width: int = 64) -> onnx.ModelProto:
    """A normalisation, two products and a residual, as exporters write them."""
    constants = {"g": some(width), "u": some(width, 4 * width), "d": some(4 * width, width), "b": some(4 * width)}
    node = h.make_node
    nodes = [
        node("LayerNormalization", ["x", "g"], ["n"]),
        node("MatMul", ["n", "u"], ["m"], name="up"),
        node("Add", ["m", "b"], ["a"]),
        node("Gelu", ["a"], ["e"]),
        node("MatMul", ["e", "d"], ["p"], name="down"),
        node("Add", ["x", "p"], ["y"]),
    ]
    return model_of(nodes, 3, constants)


def test_weights_keep_their_bytes() -> None:
    x = some(2, 10, 64)
    model = block()
    exe = asc.compile(model, threads=1)
    exe.run({"x": x})
    assert exe.explain().count("MatMulBFloat16 '") == 2
    plain = asc.compile(model, threads=1, options=asc.Options(fuse=False))
    got, wanted = (e.run({"x": x})["y"].astype(np.float32) for e in (exe, plain))
    np.testing.assert_allclose(got, wanted, rtol=0.05, atol=0.05 * np.abs(wanted).max())


def test_saved_files_hold_the_operators(tmp_path: Path) -> None:
    x = some(2, 10, 64)
    exe = asc.compile(block(), threads=1)
    exe.save(tmp_path / "m.asc")
    loaded = asc.load(tmp_path / "m.asc")
    assert np.array_equal(exe.run({"x": x})["y"].view(np.uint16), loaded.run({"x": x})["y"].view(np.uint16))
    assert loaded.explain().count("MatMulBFloat16 '") == exe.explain().count("MatMulBFloat16 '")


def test_values_that_the_model_widens_itself_are_not_rounded() -> None:
    w = some(64, 64)
    nodes = [
        h.make_node("Cast", ["w"], ["wide"], to=T.FLOAT),
        h.make_node("MatMul", ["x", "w"], ["half"]),
        h.make_node("Cast", ["half"], ["real"], to=T.FLOAT),
        h.make_node("Mul", ["real", "third"], ["precise"]),
        h.make_node("MatMul", ["precise", "wide"], ["y"]),
    ]
    model = model_of(nodes, 2, {"w": w, "third": np.float32(1 / 3)})
    x = some(32, 64)
    got = asc.compile(model, threads=1).run({"x": x})["y"]
    wanted = (x.astype(np.float64) @ w.astype(np.float64) / 3) @ w.astype(np.float64)
    assert got.dtype == np.float32
    assert np.abs(got - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize(("m", "k", "n"), [(1, 2048, 2000), (200, 300, 400), (7, 4096, 300)])
def test_threads_give_right_products(m: int, k: int, n: int) -> None:
    x, w = some(m, k), some(k, n)
    wanted = x.astype(np.float64) @ w.astype(np.float64)
    for threads in (1, 2, 3):
        got = asc.compile(single("MatMul", 2, {"w": w}), threads=threads).run({"x": x})["y"].astype(np.float64)
        assert (np.abs(got - wanted) <= np.abs(wanted) / 256 + k * 1e-5).all()


@pytest.mark.parametrize("n", [64, 100, 256])
def test_products_with_a_matrix_and_with_its_transpose_share_the_constant(n: int) -> None:
    w = (some(n, n).astype(np.float32) / n**0.5).astype(HALF)
    nodes = [h.make_node("Gemm", ["x", "w"], ["a"]), h.make_node("Gemm", ["a", "w"], ["y"], transB=1)]
    x, wide = some(64, n), w.astype(np.float64)
    got = asc.compile(model_of(nodes, 2, {"w": w}), threads=1).run({"x": x})["y"].astype(np.float64)
    wanted = x.astype(np.float64) @ wide @ wide.T
    assert np.abs(got - wanted).max() < 0.02 * np.abs(wanted).max()
