"""Fused nodes around products, normalisations and rotations: one task, and the results of the unfused graph."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.fusion_models import build, check, normal


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 17, 64])
@pytest.mark.parametrize("width", [1, 5, 16, 64, 96, 200])
def test_product_bias_activation_and_residual_are_one_task(rows: int, width: int):
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["p"]),
        h.make_node("Add", ["p", "b"], ["q"]),
        h.make_node("Gelu", ["q"], ["g"]),
        h.make_node("Add", ["g", "x"], ["y"]),
    ]
    model = build(nodes, {"x": ["n", width]}, {"w": normal(width, width, seed=1), "b": normal(width, seed=2)})
    check(model, {"x": normal(rows, width)}, tasks=1)


@pytest.mark.parametrize("trans", [0, 1])
def test_gemm_with_an_activation_is_one_task(trans: int):
    nodes = [
        h.make_node("Gemm", ["x", "w", "b"], ["p"], transB=trans, alpha=0.5, beta=2.0),
        h.make_node("Relu", ["p"], ["y"]),
    ]
    w = normal(33, 20, seed=1)
    model = build(nodes, {"x": ["n", 20]}, {"w": w if trans else w.T.copy(), "b": normal(33, seed=2)})
    for rows in (1, 6, 300):
        check(model, {"x": normal(rows, 20)}, tasks=1)


@pytest.mark.parametrize("rows", [1, 2, 33])
@pytest.mark.parametrize("width", [1, 7, 16, 64, 130, 1000])
def test_product_softmax_and_addition_are_one_task(rows: int, width: int):
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["p"]),
        h.make_node("Softmax", ["p"], ["q"], axis=-1),
        h.make_node("Add", ["x", "q"], ["y"]),
    ]
    check(
        build(nodes, {"x": ["n", width]}, {"w": normal(width, width, seed=1) / 8}), {"x": normal(rows, width)}, tasks=1
    )


@pytest.mark.parametrize("rows", [1, 2, 33])
@pytest.mark.parametrize("width", [1, 7, 16, 64, 130, 1000])
def test_normalisation_product_and_addition_are_one_task(rows: int, width: int):
    nodes = [
        h.make_node("LayerNormalization", ["x", "s", "t"], ["p"], axis=-1),
        h.make_node("Gemm", ["p", "w", "b"], ["q"]),
        h.make_node("Add", ["x", "q"], ["y"]),
    ]
    constants = {
        "s": normal(width),
        "t": normal(width, seed=3),
        "w": normal(width, width) / width**0.5,
        "b": normal(width, seed=2),
    }
    check(build(nodes, {"x": ["n", width]}, constants), {"x": normal(rows, width)}, tasks=1, rtol=1e-4)


def test_a_convolution_takes_its_activation_and_residual_in():
    nodes = [
        h.make_node("Conv", ["x", "w", "b"], ["p"], pads=[1, 1, 1, 1]),
        h.make_node("Add", ["p", "x"], ["q"]),
        h.make_node("Relu", ["q"], ["y"]),
    ]
    model = build(nodes, {"x": ["n", 8, "h", "w"]}, {"w": normal(8, 8, 3, 3), "b": normal(8)})
    for shape in ((1, 8, 5, 7), (2, 8, 32, 31)):
        check(model, {"x": normal(*shape)}, tasks=1, rtol=1e-4)


def test_a_decomposed_normalisation_is_one_task():
    nodes = [
        h.make_node("ReduceMean", ["x", "axes"], ["mean"]),
        h.make_node("Sub", ["x", "mean"], ["d"]),
        h.make_node("Pow", ["d", "two"], ["s"]),
        h.make_node("ReduceMean", ["s", "axes"], ["v"]),
        h.make_node("Add", ["v", "eps"], ["e"]),
        h.make_node("Sqrt", ["e"], ["r"]),
        h.make_node("Div", ["d", "r"], ["n"]),
        h.make_node("Mul", ["n", "g"], ["m"]),
        h.make_node("Add", ["m", "b"], ["y"]),
    ]
    constants = {
        "axes": np.int64([-1]),
        "two": np.float32(2),
        "eps": np.float32(1e-5),
        "g": normal(24),
        "b": normal(24, seed=1),
    }
    check(build(nodes, {"x": ["n", "m", 24]}, constants), {"x": normal(2, 3, 24)}, tasks=1)


def rotary(width: int, axis: int, first: str = "x") -> list[onnx.NodeProto]:
    """x cos + rotated(x) sin, as models spell it."""
    return [
        h.make_node("Slice", [first, "zero", "half", "axis"], ["a"]),
        h.make_node("Slice", [first, "half", "end", "axis"], ["b"]),
        h.make_node("Neg", ["b"], ["n"]),
        h.make_node("Concat", ["n", "a"], ["r"], axis=axis),
        h.make_node("Mul", [first, "cos"], ["c"]),
        h.make_node("Mul", ["r", "sin"], ["s"]),
        h.make_node("Add", ["c", "s"], ["y"]),
    ]


def rotary_constants(width: int, axis: int) -> dict[str, np.ndarray]:
    ends = {"zero": 0, "half": width // 2, "end": 2**62, "axis": axis}
    return {name: np.int64([value]) for name, value in ends.items()}


@pytest.mark.parametrize("axis", [-1, 3])
@pytest.mark.parametrize("width", [2, 6, 64, 256, 512])
def test_rotary_embeddings_are_one_task(width: int, axis: int):
    shapes = {"x": ["b", 3, "s", width], "cos": [1, 1, "s", width], "sin": [1, 1, "s", width]}
    model = build(rotary(width, axis), shapes, rotary_constants(width, axis))
    exe = asc.compile(model, threads=1)
    for batch, length in ((1, 1), (2, 5)):
        feeds = {
            "x": normal(batch, 3, length, width),
            "cos": normal(1, 1, length, width),
            "sin": normal(1, 1, length, width),
        }
        check(model, feeds, tasks=1)
        assert exe.run(feeds)["y"].shape == feeds["x"].shape


def test_halves_along_another_dimension_are_no_rotation_of_rows():
    shapes = {"x": [4, 4], "cos": [4, 4], "sin": [4, 4]}
    model = build(rotary(4, 0), shapes, rotary_constants(4, 0))
    check(model, {"x": normal(4, 4), "cos": normal(4, 4, seed=1), "sin": normal(4, 4, seed=2)})


def test_halves_of_a_value_made_inside_the_node_stay_right():
    nodes = [h.make_node("Tanh", ["x"], ["t"]), *rotary(8, -1, "t")]
    model = build(nodes, {"x": ["n", 8], "cos": ["n", 8], "sin": ["n", 8]}, rotary_constants(8, -1))
    check(model, {"x": normal(3, 8), "cos": normal(3, 8, seed=1), "sin": normal(3, 8, seed=2)}, tasks=1)


def test_attention_is_one_task():
    nodes = [
        h.make_node("MatMul", ["q", "k"], ["s"]),
        h.make_node("Mul", ["s", "scale"], ["c"]),
        h.make_node("Add", ["c", "mask"], ["m"]),
        h.make_node("Softmax", ["m"], ["p"], axis=-1),
        h.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    shapes = {"q": [2, 3, "n", 8], "k": [2, 3, 8, "m"], "v": [2, 3, "m", 8], "mask": [2, 1, 1, "m"]}
    model = build(nodes, shapes, {"scale": np.float32(0.35)})
    feeds = {"q": normal(2, 3, 5, 8), "k": normal(2, 3, 8, 9), "v": normal(2, 3, 9, 8), "mask": normal(2, 1, 1, 9)}
    check(model, feeds, tasks=1)


def test_an_operand_that_makes_the_result_larger_than_the_product_stays_right():
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["p"]),
        h.make_node("Add", ["p", "r"], ["q"]),
        h.make_node("Tanh", ["q"], ["y"]),
    ]
    model = build(nodes, {"x": [None, None], "r": [None, None, None]}, {"w": normal(4, 6)})
    exe = asc.compile(model, mode="host", threads=1)
    for shape in ((3, 5, 6), (1, 5, 6), (2, 1, 1), (1, 1, 6), (0, 5, 6)):
        x, r = normal(5, 4), normal(*shape, seed=1)
        want = np.tanh(x @ normal(4, 6) + r)
        np.testing.assert_allclose(exe.run({"x": x, "r": r})["y"], want, rtol=1e-5, atol=1e-6)
