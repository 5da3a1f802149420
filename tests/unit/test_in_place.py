"""Element-wise results lie over dying inputs, and over nothing else."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ascendsched._core", reason="the extension is not built")
from onnx import ModelProto, TensorProto, helper

import ascendsched as asc


def model(*nodes: tuple[str, list[str], str]) -> ModelProto:
    made = [helper.make_node(op, inputs, [output]) for op, inputs, output in nodes]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [33, 7])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [33, 7])
    return helper.make_model(
        helper.make_graph(made, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


BUFFER_BYTES = 33 * 7 * 4 + 36  # in multiples of 64
X = np.linspace(0.5, 2, 33 * 7, dtype=np.float32).reshape(33, 7)


def test_a_chain_of_element_wise_operators_needs_one_buffer() -> None:
    exe = asc.compile(model(("Exp", ["x"], "a"), ("Neg", ["a"], "b"), ("Add", ["b", "x"], "c"), ("Abs", ["c"], "y")))
    x = X.copy()
    np.testing.assert_allclose(exe(x), np.abs(x - np.exp(x)), rtol=1e-5)
    np.testing.assert_array_equal(x, X)
    assert exe.stats()["arena_planned_bytes"] in (0, BUFFER_BYTES)  # 0 where they are one task


def test_an_input_that_is_read_later_keeps_its_memory() -> None:
    exe = asc.compile(model(("Exp", ["x"], "a"), ("Neg", ["a"], "b"), ("Mul", ["a", "b"], "y")), mode="sink")
    np.testing.assert_allclose(exe(X), -(np.exp(X) ** 2), rtol=1e-5)


def test_an_operand_read_twice_may_be_written_over() -> None:
    exe = asc.compile(model(("Exp", ["x"], "a"), ("Mul", ["a", "a"], "b"), ("Neg", ["b"], "y")), mode="sink")
    np.testing.assert_allclose(exe(X), -(np.exp(X) ** 2), rtol=1e-5)
