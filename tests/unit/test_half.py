"""Half precision: arithmetic in float32, rounded where a value leaves a run of operators."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from . import onnx_models

MODES = ["host", "sink", "auto"]


def chain() -> object:
    rng = np.random.default_rng(0)
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["a"]),
        h.make_node("Transpose", ["a"], ["b"], perm=[1, 0]),
        h.make_node("Reshape", ["b", "flat"], ["c"]),
        h.make_node("Mul", ["c", "c"], ["d"]),
        h.make_node("Sqrt", ["d"], ["y"]),
    ]
    constants = {"w": rng.standard_normal((16, 8)).astype(np.float16), "flat": np.array([-1])}
    inputs = [onnx_models.info("x", T.FLOAT16, ["n", 16])]
    return onnx_models.model(nodes, inputs, [onnx_models.info("y", T.FLOAT16)], constants)


@pytest.mark.parametrize("mode", MODES)
def test_a_run_of_operators_is_rounded_once_at_its_end(mode):
    from onnx import numpy_helper

    model = chain()
    w = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
    exe = asc.compile(model, mode=mode, threads=1)
    for n in (1, 3, 7, 3):
        x = np.random.default_rng(n).standard_normal((n, 16)).astype(np.float16)
        exact = np.abs((x.astype(np.float64) @ w).T.ravel())
        got = exe(x)
        assert got.dtype == np.float16
        assert np.array_equal(got, exact.astype(np.float16)), "more than one rounding"
    text = exe.plan.text()
    assert "task MatMul" in text
    assert text.count("task Cast") == 2, "one into the run, one out of it"


def test_what_would_overflow_half_precision_on_the_way_does_not():
    nodes = [h.make_node("Mul", ["x", "x"], ["a"]), h.make_node("Sqrt", ["a"], ["y"])]
    model = onnx_models.model(nodes, [onnx_models.info("x", T.FLOAT16, ["n"])], [onnx_models.info("y", T.FLOAT16)])
    assert asc.compile(model, threads=1)(np.array([1000], np.float16)) == 1000


def test_a_cast_of_the_model_rounds_as_it_says():
    nodes = [
        h.make_node("Cast", ["x"], ["half"], to=T.FLOAT16),
        h.make_node("Cast", ["half"], ["y"], to=T.FLOAT),
    ]
    model = onnx_models.model(nodes, [onnx_models.info("x", T.FLOAT, ["n"])], [onnx_models.info("y", T.FLOAT)])
    x = np.array([0.1, 1 / 3, 2049], np.float32)
    assert np.array_equal(asc.compile(model, threads=1)(x), x.astype(np.float16).astype(np.float32))


def test_moving_half_precision_elements_converts_nothing():
    nodes = [h.make_node("Transpose", ["x"], ["a"], perm=[1, 0]), h.make_node("Concat", ["a", "a"], ["y"], axis=0)]
    model = onnx_models.model(nodes, [onnx_models.info("x", T.FLOAT16, ["n", 3])], [onnx_models.info("y", T.FLOAT16)])
    exe = asc.compile(model, threads=1)
    x = np.arange(6, dtype=np.float16).reshape(2, 3)
    assert np.array_equal(exe(x), np.concatenate([x.T, x.T]))
    assert "Cast" not in exe.plan.text()


def test_bfloat16_arrays_go_in_and_out():
    nodes = [h.make_node("Add", ["x", "x"], ["y"])]
    model = onnx_models.model(nodes, [onnx_models.info("x", T.BFLOAT16, ["n"])], [onnx_models.info("y", T.BFLOAT16)])
    x = np.array([1.5, -2, 1e38], ml_dtypes.bfloat16)
    got = asc.compile(model, threads=1)(x)
    assert got.dtype == ml_dtypes.bfloat16
    assert np.array_equal(got, x + x)
