"""Element-wise runs whose rows are short: a tile holds several, and operands are spread over it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.fusion_models import build, check, normal
from tests.unit.onnx_models import info, model


def run_of(operands: int, ops: tuple[str, ...] = ("Add", "Mul", "Sub", "Max", "Div")):
    """A chain of binary operators over x and a0, a1, …, with a Relu behind the first."""
    nodes = [h.make_node("Add", ["x", "a0"], ["v0"]), h.make_node("Relu", ["v0"], ["t0"])]
    for i in range(1, operands):
        nodes.append(h.make_node(ops[i % len(ops)], [f"t{i - 1}", f"a{i}"], [f"t{i}"]))
    nodes[-1].output[0] = "y"
    return nodes


def check_run(x_shape: tuple[int, ...], *shapes: tuple[int, ...]) -> None:
    constants = {f"a{i}": normal(*shape, seed=i) + 2 for i, shape in enumerate(shapes)}
    check(build(run_of(len(shapes)), {"x": x_shape}, constants), {"x": normal(*x_shape, seed=99)}, tasks=1)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 15, 16, 17, 31, 48, 49, 64])
@pytest.mark.parametrize("channels", [2, 5, 64, 300])
def test_one_number_a_channel(size, channels):
    check_run((1, channels, size), (1, channels, 1))
    check_run((3, channels, size), (channels, 1), (3, channels, 1), (3, 1, 1))


def test_operands_of_many_forms_at_once():
    check_run((2, 3, 5, 7), (3, 1, 1), (2, 1, 5, 1), (7,), (1,), (2, 3, 5, 7), (5, 7), (2, 1, 1, 7))
    check_run((4, 70, 3, 2), (70, 1, 1), (3, 2), (4, 70, 1, 2), (4, 1, 3, 1), (70, 3, 2))


def test_more_spread_operands_than_a_tile_has_room_for():
    check_run((2, 40, 5), *[(40, 1), (2, 1, 5), (2, 40, 1)] * 4)


def test_bounds_of_a_clip_stay_numbers():
    nodes = [h.make_node("Mul", ["x", "m"], ["t"]), h.make_node("Clip", ["t", "low", "high"], ["y"])]
    constants = {"m": normal(50, 1), "low": np.float32(-0.25), "high": np.float32(0.5)}
    check(build(nodes, {"x": (3, 50, 3)}, constants), {"x": normal(3, 50, 3)}, tasks=1)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("columns", [2, 3, 15, 16, 17, 24, 25, 40])
@pytest.mark.parametrize("length", [2, 15, 16, 17, 100])
def test_softmax_over_columns_few_or_many(op, columns, length):
    nodes = [h.make_node("Add", ["x", "a"], ["t"]), h.make_node(op, ["t"], ["y"], axis=1)]
    for made, constants in ((nodes, {"a": normal(length, 1)}), ([h.make_node(op, ["x"], ["y"], axis=1)], {})):
        x = normal(3, length, columns) * 4
        got = check(build(made, {"x": x.shape}, constants), {"x": x}, tasks=1).astype(np.float64)
        sums = (got if op == "Softmax" else np.exp(got)).sum(axis=1)
        np.testing.assert_allclose(sums, 1, atol=1e-5)


KINDS = {
    "ReduceSum": lambda x: x.sum(-1),
    "ReduceMean": lambda x: x.mean(-1),
    "ReduceMax": lambda x: x.max(-1),
    "ReduceMin": lambda x: x.min(-1),
    "ReduceProd": lambda x: x.prod(-1),
    "ReduceL1": lambda x: np.abs(x).sum(-1),
    "ReduceL2": lambda x: np.sqrt((x * x).sum(-1)),
    "ReduceSumSquare": lambda x: (x * x).sum(-1),
    "ReduceLogSum": lambda x: np.log(x.sum(-1)),
    "ReduceLogSumExp": lambda x: np.log(np.exp(x).sum(-1)),
}


@pytest.mark.parametrize("op", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("row", [1, 2, 3, 4, 5, 8, 9, 16, 31, 64, 65])
def test_reductions_of_a_few_neighbours(op, dtype, row):
    axes = {"axes": np.array([-1], np.int64)}
    for count in (1, 3, 7, 64, 300, 1025):
        x = np.abs(normal(count, row, seed=row)).astype(dtype)
        if op in ("ReduceMax", "ReduceMin", "ReduceSum"):
            x[count // 2, row - 1] = np.nan
        kind = h.np_dtype_to_tensor_dtype(x.dtype)
        node = h.make_node(op, ["x", "axes"], ["y"], keepdims=0)
        made = model([node], [info("x", kind, ["n", row])], [info("y", kind)], axes)
        got = np.asarray(asc.compile(made, threads=1)(x))
        want = KINDS[op](x.astype(np.float64))
        np.testing.assert_allclose(got, want, rtol=2e-6 if dtype == "float32" else 2e-3, atol=1e-6)
