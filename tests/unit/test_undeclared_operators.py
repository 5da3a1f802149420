"""Operators that onnxruntime writes into opsets that do not have them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx import helper as h

import ascendsched as asc


def test_layer_normalisation_before_its_opset() -> None:
    scale = np.arange(1, 9, dtype=np.float32)
    node = h.make_node("LayerNormalization", ["x", "scale"], ["y"], axis=-1, epsilon=1e-5)
    x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])
    y = h.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])
    graph = h.make_graph([node], "net", [x], [y], [numpy_helper.from_array(scale, "scale")])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 14)], ir_version=8)
    values = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    centred = values - values.mean(-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(asc.compile(model).run({"x": values})["y"], wanted, atol=1e-5)
