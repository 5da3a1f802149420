"""Convolutions of one channel along one axis, which read the signal as it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx import helper as h

import ascendsched as asc

pytestmark = pytest.mark.sanitize


def network(filters: int, kernel: int, *, has_bias: bool, is_image: bool, **attributes: Any) -> ModelProto:
    rng = np.random.default_rng(filters * kernel)
    axes = (1, 1) if is_image else (1,)
    w = rng.standard_normal((filters, *axes, kernel)).astype(np.float32)
    constants = [numpy_helper.from_array(w, "w")]
    if has_bias:
        constants.append(numpy_helper.from_array(rng.standard_normal(filters).astype(np.float32), "bias"))
    if is_image:  # the first of both axes has one position
        front = {"strides": [1], "dilations": [1], "pads": [0]}
        attributes = {k: _spread(front[k], list(v)) for k, v in attributes.items() if isinstance(v, list)}
    node = h.make_node("Conv", ["x", *(c.name for c in constants)], ["y"], **attributes)
    x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *axes, "t"])
    y = h.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = h.make_graph([node], "net", [x], [y], constants)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


def _spread(front: list[int], own: list[int]) -> list[int]:
    return [*front, own[0], *front, own[1]] if len(own) == 2 else [*front, *own]


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [6], "pads": [37, 43]},
        {"strides": [441], "pads": [9, 450]},
        {"dilations": [3], "pads": [50, 0]},
        {"strides": [4], "dilations": [6], "pads": [1, 97]},
        {"strides": [50]},
    ],
    ids=str,
)
@pytest.mark.parametrize("filters", [1, 3, 8, 70])
@pytest.mark.parametrize("is_image", [False, True], ids=["signal", "image"])
def test_signals_are_convolved_as_by_others(filters: int, is_image: bool, attributes: dict[str, Any]) -> None:
    model = network(filters, 16 + filters, has_bias=filters != 8, is_image=is_image, **attributes)
    peer = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = asc.compile(model, threads=1)
    for batch, length in ((1, 3001), (3, 500)):
        shape = (batch, 1, 1, length) if is_image else (batch, 1, length)
        x = np.random.default_rng(length).standard_normal(shape).astype(np.float32)
        wanted = peer.run(None, {"x": x})[0]
        np.testing.assert_allclose(exe.run({"x": x})["y"], wanted, atol=2e-5 * np.abs(wanted).max())
    assert "signal" in exe.explain() or "taps" in exe.explain()
