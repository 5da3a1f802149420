"""A number for each channel meets all positions: rows of all lengths, alone and in longer runs of operators."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx import helper as h

import ascendsched as asc

pytestmark = pytest.mark.sanitize


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_stay_and_rows_that_change_with_the_batch(is_alone: bool, threads: int) -> None:
    x, gate, y = (h.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("x", "gate", "y"))
    nodes = [h.make_node("Mul", ["x", "gate"], ["y" if is_alone else "product"])]
    if not is_alone:
        nodes.append(h.make_node("Sub", ["product", "gate"], ["y"]))
    graph = h.make_graph(nodes, "gated", [x, gate], [y])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)
    exe = asc.compile(model, mode="host", threads=threads)
    rng = np.random.default_rng(0)
    shapes = [(2, 5, 7, c) for c in (1, 2, 8, 47, 48, 49)] + [(3, 33, 41, c) for c in (1, 3, 8, 40, 88, 255, 256, 257)]
    for shape in shapes:
        for gate_shape in (shape[3:], (shape[0], 1, 1, shape[3]), (shape[1], 1, shape[3]), (shape[2], 1), (1,)):
            a = rng.standard_normal(shape).astype(np.float32)
            b = rng.standard_normal(gate_shape).astype(np.float32)
            wanted = a * b if is_alone else a * b - b
            np.testing.assert_allclose(exe.run({"x": a, "gate": b})["y"], wanted, rtol=1e-6, atol=1e-6)
