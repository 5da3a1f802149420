"""Work that is shared out to threads: the same numbers as on one thread, the same bits on every run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from .onnx_models import info, model

RNG = np.random.default_rng(5)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(nodes, inputs, constants, feeds, onednn=True):
    graph = model(nodes, inputs, [h.make_empty_tensor_value_info("y")], constants, 18)
    wanted = asc.compile(graph, threads=1, options=asc.Options(onednn=onednn)).run(feeds)["y"]
    for threads in (2, 3):
        exe = asc.compile(graph, threads=threads, options=asc.Options(onednn=onednn))
        got = exe.run(feeds)["y"]
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
        assert np.array_equal(exe.run(feeds)["y"], got)


@pytest.mark.parametrize("size", [(1, 67, 61), (2, 24, 23)])
@pytest.mark.parametrize("groups", [1, 2])
def test_pointwise_convolution_with_residual(size, groups):
    batch, height, width = size
    constants = {"w": some(130, 140 // groups, 1, 1), "b": some(130)}
    feeds = {"x": some(batch, 140, height, width), "r": some(batch, 130, height, width)}
    nodes = [
        h.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", group=groups),
        h.make_node("Add", ["c", "r"], ["s"], name="add"),
        h.make_node("Relu", ["s"], ["y"], name="relu"),
    ]
    inputs = [info("x", T.FLOAT, feeds["x"].shape), info("r", T.FLOAT, feeds["r"].shape)]
    check(nodes, inputs, constants, feeds)


def test_unfolded_convolution_of_several_images():
    constants = {"w": some(40, 30, 3, 3)}
    feeds = {"x": some(3, 30, 41, 37)}
    nodes = [h.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1, 1, 1, 1])]
    check(nodes, [info("x", T.FLOAT, feeds["x"].shape)], constants, feeds, onednn=False)


@pytest.mark.parametrize("shape", [(700001,), (1, 1), (3, 130, 1)])
def test_long_run_of_element_wise_operators(shape):
    feeds = {"x": some(3, 130, 1801) if len(shape) == 3 else some(700001)}
    constants = {"a": some(*shape), "k": np.float32(0.5)}
    nodes = [
        h.make_node("Mul", ["x", "a"], ["m"], name="mul"),
        h.make_node("Tanh", ["m"], ["t"], name="tanh"),
        h.make_node("Add", ["t", "k"], ["y"], name="add"),
    ]
    check(nodes, [info("x", T.FLOAT, feeds["x"].shape)], constants, feeds)


@pytest.mark.parametrize(("op", "gates", "outputs"), [("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)])
def test_directions_of_recurrent_operators(op, gates, outputs):
    constants = {"w": some(2, gates * 96, 64) / 8, "r": some(2, gates * 96, 96) / 8, "l": np.array([50, 33], np.int32)}
    feeds = {"x": some(50, 2, 64)}
    results = ["y", "last", "cell"][:outputs]
    node = h.make_node(op, ["x", "w", "r", "", "l"], results, name="n", hidden_size=96, direction="bidirectional")
    check([node], [info("x", T.FLOAT, feeds["x"].shape)], constants, feeds)
