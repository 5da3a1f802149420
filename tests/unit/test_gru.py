"""GRU against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")

STEPS, BATCH, WIDTH, HIDDEN = 7, 3, 5, 6


def values(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) / 2).astype(np.float32)


def gru(rng: np.random.Generator, directions: int, *, fed_weights: bool = False, operands: str = "", **attributes):
    """A GRU and its feeds; `operands` names the optional ones: b (bias), l (lengths), h (initial state)."""
    weights = {"w": values(rng, directions, 3 * HIDDEN, WIDTH), "r": values(rng, directions, 3 * HIDDEN, HIDDEN)}
    feeds = {"x": values(rng, STEPS, BATCH, WIDTH)}
    if "b" in operands:
        weights["b"] = values(rng, directions, 6 * HIDDEN)
    if "l" in operands:
        # onnxruntime drops the initial state of an empty sequence.
        feeds["l"] = np.array([STEPS, 1 if "h" in operands else 0, 4], np.int32)
    if "h" in operands:
        feeds["h"] = values(rng, directions, BATCH, HIDDEN)
    names = ["x", "w", "r", *("blh"[i] if "blh"[i] in operands else "" for i in range(3))]
    node = h.make_node("GRU", names, ["y", "y_h"], hidden_size=HIDDEN, **attributes)
    if fed_weights:
        feeds |= weights
    inputs = [info(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
    return model([node], inputs, [info("y"), info("y_h")], {} if fed_weights else weights), feeds


def compare(made, feeds) -> None:
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    want = dict(zip(("y", "y_h"), session.run(None, feeds), strict=True))
    for mode in ("host", "sink"):
        got = asc.compile(made, mode=mode, threads=1).run(feeds)
        for name, value in want.items():
            assert got[name].shape == value.shape
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operands", ["", "b", "bh", "bl", "lh", "blh"])
@pytest.mark.parametrize("linear_before_reset", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_gru_agrees(direction, linear_before_reset, operands):
    directions = 2 if direction == "bidirectional" else 1
    attributes = {"direction": direction, "linear_before_reset": linear_before_reset}
    compare(*gru(np.random.default_rng(), directions, operands=operands, **attributes))


@pytest.mark.parametrize("linear_before_reset", [0, 1])
def test_gru_agrees_with_fed_weights_clipping_and_other_activations(linear_before_reset):
    rng, attributes = np.random.default_rng(), {"linear_before_reset": linear_before_reset}
    compare(*gru(rng, 1, fed_weights=True, operands="bh", **attributes))
    compare(*gru(rng, 1, operands="b", clip=0.25, **attributes))
    compare(*gru(rng, 1, operands="b", activations=["HardSigmoid", "Softsign"], **attributes))
    names = ["Sigmoid", "LeakyRelu", "HardSigmoid", "Tanh"]
    compare(*gru(rng, 2, operands="b", activations=names, direction="bidirectional", **attributes))


def test_gru_works_in_float16():
    made, feeds = gru(np.random.default_rng(), 1, fed_weights=True, operands="b")
    want = asc.compile(made).run(feeds)["y"]
    halves = {k: v.astype(np.float16) for k, v in feeds.items()}
    inputs = [info(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in halves.items()]
    got = asc.compile(model(list(made.graph.node), inputs, [info("y", 10)])).run(halves)["y"]
    np.testing.assert_allclose(got, want, atol=1e-2)


def test_gru_keeps_the_initial_state_of_an_empty_sequence():
    made, feeds = gru(np.random.default_rng(), 1, operands="lh")
    feeds["l"][:] = 0
    got = asc.compile(made).run(feeds)
    np.testing.assert_array_equal(got["y_h"], feeds["h"])
    assert not got["y"].any()


def test_gru_tells_lengths_that_do_not_fit():
    made, feeds = gru(np.random.default_rng(), 1, operands="l")
    feeds["l"][0] = STEPS + 1
    with pytest.raises(asc.AscendSchedError, match="sequence_lens holds 8"):
        asc.compile(made).run(feeds)


def test_gru_refuses_weights_of_another_size():
    made, feeds = gru(np.random.default_rng(), 1)
    made.graph.initializer[0].dims[:] = [1, WIDTH, 3 * HIDDEN]
    with pytest.raises(asc.GraphError, match=r"expected \[1, 18, 5\]"):
        asc.compile(made).run(feeds)
