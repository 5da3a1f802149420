"""Tasks of whose results only the shapes are read never run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model

MODES = ["host", "sink", "auto"]


def zeros_like_a_step(last):
    """x + zeros of the shape of tanh(x·w), which exporters compute to learn the shape of a state; `last` is the op."""
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["product"]),
        h.make_node("Tanh", ["product"], ["step"]),
        h.make_node(last, ["step"], ["state"], **({"to": T.INT32} if last == "Cast" else {})),
        h.make_node("Shape", ["state"], ["shape"]),
        h.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        h.make_node("Add", ["x", "zeros"], ["y"]),
    ]
    return model(nodes, [info("x", shape=("n", 4))], [info("y")], {"w": np.ones((4, 4), np.float32)})


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_they_are_left_out_and_shapes_stay(mode, fuse, tmp_path):
    exe = asc.compile(zeros_like_a_step("Relu"), mode=mode, threads=1, options=asc.Options(fuse=fuse))
    assert not any("MatMul" in (task.op, *task.parts) for task in exe.tasks())
    assert "shape: nobody reads" in exe.explain()
    exe.save(tmp_path / "saved.asc")
    for loaded in (exe, asc.load(tmp_path / "saved.asc")):
        for n in (1, 3, 3, 3, 2, 0):
            x = np.full((n, 4), n, np.float32)
            np.testing.assert_array_equal(loaded.run({"x": x})["y"], x)


@pytest.mark.parametrize("mode", MODES)
def test_a_result_that_is_read_somewhere_is_computed(mode):
    made = zeros_like_a_step("Relu")
    made.graph.output.append(info("product"))
    exe = asc.compile(made, mode=mode, threads=1)
    for n in (2, 2, 2, 5):
        x = np.full((n, 4), n, np.float32)
        got = exe.run({"x": x})
        np.testing.assert_array_equal(got["y"], x)
        np.testing.assert_array_equal(got["product"], np.full((n, 4), 4 * n, np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_what_may_refuse_its_data_runs(mode):
    nodes = [
        h.make_node("Gather", ["x", "i"], ["rows"], name="look"),
        h.make_node("Shape", ["rows"], ["shape"]),
        h.make_node("ConstantOfShape", ["shape"], ["y"]),
    ]
    made = model(nodes, [info("x", shape=("n", 4)), info("i", T.INT64, ("k",))], [info("y")])
    exe = asc.compile(made, mode=mode, threads=1)
    x = np.ones((3, 4), np.float32)
    assert exe.run({"x": x, "i": np.array([0, 2])})["y"].shape == (2, 4)
    with pytest.raises(asc.GraphError, match="Gather 'look'"):
        exe.run({"x": x, "i": np.array([0, 9])})


@pytest.mark.parametrize("mode", MODES)
def test_contents_that_a_branch_needs_are_computed(mode):
    nodes = [
        h.make_node("Sigmoid", ["x"], ["s"]),
        h.make_node("ReduceSum", ["s"], ["sum"], keepdims=0),
        h.make_node("Cast", ["sum"], ["count"], to=T.INT64),
        h.make_node("Reshape", ["count", "one"], ["shape"]),
        h.make_node("ConstantOfShape", ["shape"], ["y"]),
    ]
    made = model(nodes, [info("x", shape=("n",))], [info("y")], {"one": np.array([1])})
    exe = asc.compile(made, mode=mode, threads=1)
    for n in (2, 4, 4, 4, 2):
        assert exe.run({"x": np.full(n, 50, np.float32)})["y"].shape == (n,)
