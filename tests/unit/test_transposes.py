"""Transpositions that compilation moves or removes: results stay, tasks go, and bad shapes are still refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper as h

import ascendsched as asc
from ascendsched import _core
from tests.unit import onnx_models
from tests.unit.onnx_models import info

TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]
UNFUSED = asc.Options(fuse=False)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def transpose(name: str, to: str, perm: Sequence[int]) -> onnx.NodeProto:
    return h.make_node("Transpose", [name], [to], perm=list(perm))


def build(
    nodes: list[onnx.NodeProto], shape: Sequence[Any] | None, constants: dict[str, np.ndarray] | None = None
) -> onnx.ModelProto:
    return onnx_models.model(nodes, [info("x", shape=shape)], [info("y")], constants)


def count(exe: asc.Executable, op: str) -> int:
    return sum(line.split(" '")[0].endswith(f" {op}") for line in exe.plan.text().splitlines())


def check(model: onnx.ModelProto, x: np.ndarray, transposes: int | None) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": x})
    for mode in ("host", "sink"):
        exe = asc.compile(model, mode=mode, threads=1)
        got = list(exe.run({"x": x}).values())
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
        if transposes is not None:
            assert count(exe, "Transpose") == transposes


def channels_last_block(i: int) -> list[onnx.NodeProto]:
    """Conv on the channels-first order between a pair of transpositions, then bias, activation and residual."""
    return [
        transpose(f"x{i}", f"f{i}", TO_FIRST),
        h.make_node("Conv", [f"f{i}", "w"], [f"c{i}"], pads=[1, 1, 1, 1]),
        transpose(f"c{i}", f"l{i}", TO_LAST),
        h.make_node("Add", [f"l{i}", "b"], [f"d{i}"]),
        h.make_node("Relu", [f"d{i}"], [f"r{i}"]),
        h.make_node("Add", [f"r{i}", f"x{i}"], [f"x{i + 1}"]),
    ]


def test_pairs_around_convolutions_disappear():
    nodes = [transpose("x", "t", TO_FIRST), h.make_node("Conv", ["t", "w"], ["c"]), transpose("c", "x0", TO_LAST)]
    for i in range(3):
        nodes += channels_last_block(i)
    nodes[-1].output[0] = "y"
    kernel = normal(4, 4, 3, 3) / 6
    model = build(nodes, ["n", "h", "w", 4], {"w": kernel, "b": normal(4)})
    ends = 0 if _core.build_info()["onednn"] != "absent" else 2  # convolutions that want channels first
    check(model, normal(2, 7, 6, 4), transposes=ends)
    assert count(asc.compile(model, threads=1, options=UNFUSED), "Transpose") == 8


def test_a_transposition_moves_behind_constants_of_any_rank_and_concatenations():
    nodes = [
        transpose("x", "a", TO_LAST),
        h.make_node("Mul", ["a", "m"], ["b"]),
        h.make_node("Concat", ["a", "b"], ["c"], axis=-2),
        h.make_node("Add", ["c", "s"], ["d"]),
        transpose("d", "y", TO_FIRST),
    ]
    constants = {"m": normal(5, 4), "s": np.float32(2)}
    check(build(nodes, ["n", 4, 3, 5], constants), normal(2, 4, 3, 5), transposes=0)


def test_what_somebody_needs_in_its_own_order_is_transposed_once():
    nodes = [
        transpose("x", "a", [1, 0]),
        h.make_node("Abs", ["a"], ["b"]),
        h.make_node("Softmax", ["a"], ["c"], axis=-1),
        h.make_node("Add", ["b", "c"], ["y"]),
    ]
    check(build(nodes, ["n", 3]), normal(4, 3), transposes=1)


def test_results_of_the_model_keep_their_order_and_name():
    nodes = [
        transpose("x", "a", [1, 0]),
        h.make_node("Abs", ["a"], ["b"]),
        transpose("b", "y", [1, 0]),
    ]
    model = build(nodes, ["n", 3])
    model.graph.output.extend([info("a"), info("b")])
    check(model, normal(4, 3), transposes=None)


def test_an_input_of_another_rank_is_still_refused():
    nodes = [transpose("x", "a", [1, 0]), h.make_node("Abs", ["a"], ["b"]), transpose("b", "y", [1, 0])]
    exe = asc.compile(build(nodes, None), threads=1)
    np.testing.assert_array_equal(exe(normal(3, 2)), np.abs(normal(3, 2)))
    with pytest.raises(asc.GraphError, match="perm has 2 entries"):
        exe(normal(3, 2, 2))


@pytest.mark.parametrize("perm", [[0, 0], [1, 2], [-1, 0]])
def test_an_invalid_permutation_is_refused(perm: list[int]):
    nodes = [transpose("x", "a", perm), h.make_node("Abs", ["a"], ["b"]), transpose("b", "y", perm)]
    with pytest.raises(asc.GraphError, match="expected a permutation"):
        asc.compile(build(nodes, ["n", 2]), threads=1)(normal(3, 2))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[onnx.ModelProto, np.ndarray]:
    """Random transpositions between element-wise operators, constants and concatenations."""
    x = normal(*(draw(st.integers(1, 4)) for _ in range(3)))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    shapes, nodes, constants = {"x": list(x.shape)}, [], {}
    for i in range(draw(st.integers(2, 14))):
        value = draw(st.sampled_from(list(shapes)[-3:]))
        shape, to = shapes[value], f"v{i}"
        kind = draw(st.sampled_from(["turn", "turn", "constant", "pair", "join", "abs", "softmax"]))
        partners = [v for v, s in shapes.items() if s == shape]
        if kind == "turn":
            perm = draw(st.permutations(range(3)))
            nodes.append(transpose(value, to, perm))
            shape = [shape[p] for p in perm]
        elif kind == "constant":
            dims = [d if draw(st.booleans()) else 1 for d in shape][draw(st.integers(0, 3)) :]
            constants[f"c{i}"] = rng.standard_normal(dims).astype(np.float32)
            nodes.append(h.make_node("Add", draw(st.permutations([value, f"c{i}"])), [to]))
        elif kind == "pair":
            nodes.append(h.make_node("Sub", [value, draw(st.sampled_from(partners))], [to]))
        elif kind == "join":
            axis = draw(st.integers(0, 2))
            nodes.append(h.make_node("Concat", [value, draw(st.sampled_from(partners))], [to], axis=axis))
            shape = [2 * d if a == axis else d for a, d in enumerate(shape)]
        elif kind == "abs":
            nodes.append(h.make_node("Abs", [value], [to]))
        else:
            nodes.append(h.make_node("Softmax", [value], [to], axis=draw(st.integers(-3, 2))))
        shapes[to] = shape
    nodes[-1].output[0] = "y"
    model = build(nodes, ["a", "b", "c"], constants)
    extra = draw(st.sampled_from([n.output[0] for n in nodes]))
    if extra != "y":
        model.graph.output.append(info(extra))
    return model, x


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_random_graphs_give_the_results_of_the_graph_as_it_is(case: tuple[onnx.ModelProto, np.ndarray]):
    model, x = case
    want = asc.compile(model, mode="host", threads=1, options=UNFUSED).run({"x": x})
    got = asc.compile(model, mode="sink", threads=1).run({"x": x})
    assert list(got) == list(want)
    for name, value in want.items():
        assert got[name].shape == value.shape
        np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6)
