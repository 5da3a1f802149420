"""Ranks that follow from nodes are those that ONNX shape inference finds, or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc
from ascendsched.frontends import onnx_types
from ascendsched.frontends.onnx_ranks import Ranks

OPSET = 11


def constant(name: str, values: Any) -> onnx.NodeProto:
    return h.make_node("Constant", [], [name], value=nh.from_array(np.asarray(values), name))


def graph_of(*nodes: onnx.NodeProto, shape: Any = ("n", 3, 8, 8), constants: Any = ()) -> onnx.ModelProto:
    info = h.make_tensor_value_info("x", T.FLOAT, shape)
    kept = [nh.from_array(np.asarray(value), name) for name, value in dict(constants).items()]
    graph = h.make_graph(list(nodes), "g", [info], [h.make_empty_tensor_value_info(nodes[-1].output[0])], kept)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", OPSET)], ir_version=6)


def flattening(*shape: onnx.NodeProto) -> onnx.ModelProto:
    """An old way to [n, 3]: pooling, and a shape made of the batch and -1; `shape` gives "rows" of "x_shape"."""
    return graph_of(
        h.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[1, 1]),
        h.make_node("GlobalAveragePool", ["c"], ["p"]),
        h.make_node("Shape", ["p"], ["x_shape"]),
        *(constant(name, np.array([number], np.int64)) for name, number in (("zero", 0), ("one", 1), ("rest", -1))),
        *shape,
        h.make_node("Concat", ["rows", "rest"], ["to"], axis=-1),
        h.make_node("Reshape", ["p", "to"], ["flat"]),
        h.make_node("MatMul", ["flat", "v"], ["m"]),
        h.make_node("Add", ["m", "b"], ["a"]),
        constants={
            "w": np.ones((3, 3, 1, 1), np.float32),
            "v": np.ones((3, 2), np.float32),
            "b": np.ones(2, np.float32),
        },
    )


def test_a_shape_that_is_computed_has_a_length() -> None:
    model = flattening(
        h.make_node("Cast", ["x_shape"], ["i32"], to=T.INT32),
        h.make_node("Slice", ["i32", "zero", "one", "zero", "one"], ["row"]),
        h.make_node("Cast", ["row"], ["rows"], to=T.INT64),
    )
    ranks = Ranks(model.graph)
    assert [ranks.find(name) for name in ("x", "w", "p", "to", "flat", "m", "a")] == [4, 4, 4, None, 2, 2, 2]


@pytest.mark.parametrize(
    "inputs",
    [
        ["x_shape", "zero", "one", "one", "one"],  # an axis that a list does not have
        ["x_shape", "zero", "one", "zero", "rest"],  # backwards
        ["x_shape", "zero", "x_shape"],
        ["x_shape", "zero"],
    ],
)
def test_what_is_no_plain_slice_has_no_length(inputs: list[str]) -> None:
    assert Ranks(flattening(h.make_node("Slice", inputs, ["rows"])).graph).find("a") is None


def test_long_ways_and_cycles_end() -> None:
    nodes = [h.make_node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(300)]
    assert Ranks(graph_of(*nodes).graph).find("v300") is None
    assert Ranks(graph_of(*nodes).graph).find("v30") == 4
    cycle = graph_of(h.make_node("Add", ["a", "b"], ["b"]), h.make_node("Relu", ["b"], ["a"]))
    assert Ranks(cycle.graph).find("a") is None
    vast = constant("to", np.ones(3, np.int64))
    for size in (2**40, -3):
        vast.attribute[0].t.dims[0] = size
        assert Ranks(graph_of(vast, h.make_node("Reshape", ["x", "to"], ["y"])).graph).find("y") is None
    lengths = graph_of(h.make_node("Concat", ["l", "l"], ["l"], axis=0), h.make_node("Reshape", ["x", "l"], ["y"]))
    assert Ranks(lengths.graph).find("y") is None


@pytest.mark.parametrize(
    ("node", "shape", "rank"),
    [
        (h.make_node("Add", ["x", "x"], ["y"]), None, None),
        (h.make_node("MatMul", ["x", "x"], ["y"]), (4,), None),
        (h.make_node("ReduceMean", ["x"], ["y"], axes=[1]), ("n", 3), 2),
        (h.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0), ("n", 3), None),
        (h.make_node("Gemm", ["x", "x"], ["y"]), None, 2),
        (h.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2]), None, 4),
        (h.make_node("Softmax", ["x"], ["y"], domain="elsewhere"), ("n", 3), None),
        (h.make_node("Relu", [""], ["y"]), ("n", 3), None),
        (h.make_node("Constant", [], ["y"], value_floats=[1.0]), ("n", 3), None),
        (h.make_node("Split", ["x"], ["z", "y"]), ("n", 3), None),
    ],
)
def test_a_rank_is_certain_or_none(node: onnx.NodeProto, shape: Any, rank: int | None) -> None:
    assert Ranks(graph_of(node, shape=shape).graph).find("y") == rank


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_old_softmax_needs_no_shape_inference_where_its_rank_is_plain(
    axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = graph_of(
        h.make_node("Relu", ["x"], ["r"]), h.make_node("Softmax", ["r"], ["y"], axis=axis), shape=(2, 3, 4, 5)
    )
    x = np.random.default_rng(axis + 1).standard_normal((2, 3, 4, 5)).astype(np.float32)
    start = axis % 4
    flat = np.exp(np.maximum(x, 0).reshape(int(np.prod(x.shape[:start])), -1).astype(np.float64))
    wanted = (flat / flat.sum(axis=1, keepdims=True)).reshape(x.shape)
    if axis < 0:  # of old: the last axis
        wanted = np.exp(np.maximum(x, 0)) / np.exp(np.maximum(x, 0)).sum(axis=-1, keepdims=True)
    monkeypatch.setattr(onnx_types, "inferred", lambda model: pytest.fail("shapes were inferred"))
    np.testing.assert_allclose(asc.compile(model, threads=1).run({"x": x})["y"], wanted, rtol=1e-5)
