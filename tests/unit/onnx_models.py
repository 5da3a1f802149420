"""Small ONNX models that several test files share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh


def info(name: str, dtype: int = T.FLOAT, shape: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    return h.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 18,
) -> onnx.ModelProto:
    initializers = [nh.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = h.make_graph(nodes, "test", inputs, outputs, initializers)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8)


def body(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
) -> onnx.GraphProto:
    return h.make_graph(nodes, "body", inputs, outputs)


def branches() -> onnx.ModelProto:
    """y = x + w where sum(x) > 0, else the rows of x twice; the branch depends on data, x and w are captured."""
    then = body([h.make_node("Add", ["x", "w"], ["t"])], [], [info("t")])
    twice = body([h.make_node("Concat", ["x", "x"], ["e"], axis=0)], [], [info("e")])
    nodes = [
        h.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        h.make_node("Greater", ["s", "zero"], ["c"]),
        h.make_node("If", ["c"], ["i"], then_branch=then, else_branch=twice),
        h.make_node("Neg", ["i"], ["y"]),
    ]
    constants = {"zero": np.float32(0), "w": np.arange(3, dtype=np.float32)}
    return model(nodes, [info("x", shape=["n", 3])], [info("y", shape=["m", 3])], constants)


def counted_loop() -> onnx.ModelProto:
    """a = x * 2 ** trips, growing = x repeated, s = stacked partial results; stops early where the sum passes 100."""
    nodes = [
        h.make_node("Add", ["a_in", "a_in"], ["a_out"]),
        h.make_node("Concat", ["g_in", "x"], ["g_out"], axis=0),
        h.make_node("ReduceSum", ["a_out"], ["total"], keepdims=0),
        h.make_node("Less", ["total", "limit"], ["go_on"]),
        h.make_node("Cast", ["i"], ["i_float"], to=T.FLOAT),
        h.make_node("Add", ["a_out", "i_float"], ["piece"]),
    ]
    inputs = [info("i", T.INT64, []), info("c", T.BOOL, []), info("a_in"), info("g_in")]
    loop = body(nodes, inputs, [info("go_on", T.BOOL, []), info("a_out"), info("g_out"), info("piece")])
    nodes = [h.make_node("Loop", ["trips", "", "x", "x"], ["a", "g", "s"], body=loop)]
    return model(
        nodes,
        [info("x", shape=["n"]), info("trips", T.INT64, [])],
        [info("a", shape=["n"]), info("g", shape=["m"]), info("s", shape=["k", "n"])],
        {"limit": np.float32(100)},
    )


def nonzero() -> onnx.ModelProto:
    """Positions and values of positive elements, doubled, and how many there are."""
    nodes = [
        h.make_node("Greater", ["x", "zero"], ["mask"]),
        h.make_node("NonZero", ["mask"], ["where"]),
        h.make_node("Transpose", ["where"], ["rows"], perm=[1, 0]),
        h.make_node("GatherND", ["x", "rows"], ["picked"]),
        h.make_node("Add", ["picked", "picked"], ["y"]),
        h.make_node("Shape", ["rows"], ["shape"]),
        h.make_node("Gather", ["shape", "first"], ["count"], axis=0),
    ]
    constants = {"zero": np.float32(0), "first": np.int64(0)}
    outputs = [info("where", T.INT64, [2, "k"]), info("y", shape=["k"]), info("count", T.INT64, [])]
    return model(nodes, [info("x", shape=["a", "b"])], outputs, constants)


def mlp(width: int = 16, layers: int = 3, seed: int = 0) -> onnx.ModelProto:
    """Layers of x = tanh(x W + b) on [n, width]."""
    rng = np.random.default_rng(seed)
    nodes, constants, x = [], {}, "x"
    for i in range(layers):
        constants[f"w{i}"] = (rng.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32)
        constants[f"b{i}"] = rng.standard_normal(width).astype(np.float32)
        nodes += [h.make_node("Gemm", [x, f"w{i}", f"b{i}"], [f"g{i}"]), h.make_node("Tanh", [f"g{i}"], [f"x{i}"])]
        x = f"x{i}"
    nodes[-1].output[0] = "y"
    return model(nodes, [info("x", shape=["n", width])], [info("y", shape=["n", width])], constants)
