"""Networks whose files have nodes of our own: channels last, products of bytes and of bfloat16, fused nodes, attention,
recurrence in half precision."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

from tests.unit import onnx_models
from tests.unit.attention_models import Form, attention
from tests.unit.test_own_nodes import MODELS


def _fused() -> onnx.ModelProto:
    """A normalisation between chains of element-wise operators, one of them over a broadcast."""
    nodes = [
        h.make_node("Mul", ["x", "scale"], ["a"]),
        h.make_node("Tanh", ["a"], ["b"]),
        h.make_node("Add", ["b", "x"], ["c"]),
        h.make_node("LayerNormalization", ["c", "scale"], ["d"], axis=-1),
        h.make_node("Sigmoid", ["d"], ["e"]),
        h.make_node("Mul", ["e", "d"], ["f"]),
        h.make_node("ReduceMax", ["f"], ["y"], keepdims=0),
    ]
    inputs = [onnx_models.info("x", shape=["n", "m", 8])]
    constants = {"scale": np.linspace(-1, 2, 8, dtype=np.float32)}
    return onnx_models.model(nodes, inputs, [onnx_models.info("y")], constants, opset=17)


def _halves() -> onnx.ModelProto:
    """A recurrent layer behind a product, all in half precision."""
    half = np.float16
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["a"]),
        h.make_node("LSTM", ["a", "i", "r", "b"], ["", "", "c"], hidden_size=2),
        h.make_node("Softmax", ["c"], ["y"]),
    ]
    rng = np.random.default_rng(3)
    shapes = {"w": (5, 4), "i": (1, 8, 4), "r": (1, 8, 2), "b": (1, 16)}
    constants = {name: rng.standard_normal(shape).astype(half) for name, shape in shapes.items()}
    inputs = [onnx_models.info("x", T.FLOAT16, ["t", 2, 5])]
    return onnx_models.model(nodes, inputs, [onnx_models.info("y", T.FLOAT16)], constants)


@cache
def network_models() -> tuple[onnx.ModelProto, ...]:
    """The networks, in a stable order; not to be changed."""
    return (*(make() for make in MODELS.values()), attention(Form(), 2, 8), _fused(), _halves(), onnx_models.mlp())
