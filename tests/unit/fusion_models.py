"""Models for tests of fused nodes, and how their results are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

import ascendsched as asc
from tests.unit import onnx_models
from tests.unit.onnx_models import info

MODES = ("host", "sink")
UNFUSED = asc.Options(fuse=False)


def build(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, Sequence[Any]], constants: dict[str, np.ndarray] | None = None
) -> onnx.ModelProto:
    given_inputs = [info(name, shape=shape) for name, shape in inputs.items()]
    return onnx_models.model(list(nodes), given_inputs, [info("y")], constants, opset=20)


def check(
    model: onnx.ModelProto,
    feeds: dict[str, np.ndarray],
    tasks: int | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> np.ndarray:
    """Runs a model fused in both modes, unfused, and in onnxruntime; all must agree, both modes in every bit."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    want = session.run(None, feeds)[0]
    plain = asc.compile(model, mode="host", threads=1, options=UNFUSED).run(feeds)["y"]
    results = []
    for mode in MODES:
        exe = asc.compile(model, mode=mode, threads=1)
        results.append(exe.run(feeds)["y"])
        if tasks is not None and mode == "host":
            assert exe.stats()["launches"] == tasks
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], plain, rtol=1e-5, atol=atol)
    np.testing.assert_allclose(results[0], want, rtol=rtol, atol=1e-5)
    return results[0]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
