"""Bytes are transposed in squares of sixteen, and what is left over one by one."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx import helper as h

import ascendsched as asc

pytestmark = pytest.mark.sanitize


def test_bytes_of_all_extents_are_transposed() -> None:
    x = h.make_tensor_value_info("x", TensorProto.UINT8, ["n", "a", "b"])
    y = h.make_tensor_value_info("y", TensorProto.UINT8, None)
    graph = h.make_graph([h.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 1])], "turn", [x], [y])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)
    exe = asc.compile(model, mode="host", threads=1)
    for rows in (1, 2, 15, 16, 17, 31, 33, 48, 65, 129):
        for columns in (1, 15, 16, 17, 32, 47, 64, 65, 130):
            values = np.random.default_rng(rows).integers(0, 256, (2, rows, columns)).astype(np.uint8)
            np.testing.assert_array_equal(exe.run({"x": values})["y"], values.transpose(0, 2, 1))
