"""Fused nodes: element-wise runs, errors, plans and saved files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc
from tests.unit import onnx_models
from tests.unit.fusion_models import MODES, UNFUSED, build, check, normal
from tests.unit.onnx_models import info

UNARIES = [
    "Abs",
    "Neg",
    "Exp",
    "Sqrt",
    "Reciprocal",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Relu",
    "Sin",
    "Cos",
    "Tanh",
    "Sigmoid",
    "Erf",
    "Softplus",
    "Softsign",
    "HardSwish",
    "Elu",
    "LeakyRelu",
    "Selu",
    "HardSigmoid",
    "ThresholdedRelu",
    "Celu",
    "Mish",
    "Gelu",
]
BINARIES = ["Add", "Sub", "Mul", "Div", "Max", "Min"]


# --- element-wise runs ------------------------------------------------------------------------------------------------


def test_a_run_of_element_wise_operators_is_one_task_listed_by_explain():
    nodes = [
        h.make_node("Add", ["x", "a"], ["p"], name="shift"),
        h.make_node("Abs", ["p"], ["q"], name="fold"),
        h.make_node("Mul", ["q", "m"], ["y"], name="scale"),
    ]
    model = build(nodes, {"x": ["n", 8]}, {"a": normal(8), "m": normal(8, seed=1)})
    check(model, {"x": normal(5, 8)}, tasks=1)
    text = asc.compile(model, threads=1).explain()
    assert "fused: Add 'shift' + Abs 'fold' + Mul 'scale'" in text
    assert "fused" not in asc.compile(model, threads=1, options=UNFUSED).explain()


def test_the_environment_turns_fusion_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASCENDSCHED_FUSE", "0")
    model = build([h.make_node("Abs", ["x"], ["p"]), h.make_node("Neg", ["p"], ["y"])], {"x": [3]})
    assert "fused" not in asc.compile(model, threads=1).explain()


@pytest.mark.parametrize("op", UNARIES)
def test_every_unary_operator_agrees_inside_a_run(op: str):
    nodes = [h.make_node("Add", ["x", "x"], ["p"]), h.make_node(op, ["p"], ["q"]), h.make_node("Neg", ["q"], ["y"])]
    x = np.abs(normal(4, 37)) if op == "Sqrt" else normal(4, 37)
    check(build(nodes, {"x": ["n", 37]}), {"x": x}, tasks=1, rtol=1e-4)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0, 1.7])
def test_powers_agree_inside_a_run(exponent: float):
    nodes = [h.make_node("Abs", ["x"], ["p"]), h.make_node("Pow", ["p", "e"], ["q"]), h.make_node("Neg", ["q"], ["y"])]
    check(build(nodes, {"x": ["n", 5]}, {"e": np.float32(exponent)}), {"x": normal(3, 5)}, tasks=1)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (None, 0.5), (-0.5, None), (None, None)])
def test_clip_agrees_inside_a_run(bounds: tuple[float | None, float | None]):
    names = [n if b is not None else "" for n, b in zip(("low", "high"), bounds, strict=True)]
    constants = {n: np.float32(b) for n, b in zip(names, bounds, strict=True) if b is not None}
    nodes = [
        h.make_node("Neg", ["x"], ["p"]),
        h.make_node("Clip", ["p", *names], ["q"]),
        h.make_node("Abs", ["q"], ["y"]),
    ]
    check(build(nodes, {"x": ["n", 70]}, constants), {"x": normal(3, 70)}, tasks=1)


def test_a_value_read_twice_inside_a_run_is_fused():
    nodes = [
        h.make_node("Mul", ["x", "w"], ["p"]),
        h.make_node("Sigmoid", ["p"], ["s"]),
        h.make_node("Mul", ["p", "s"], ["y"]),
    ]
    check(build(nodes, {"x": ["n", 300]}, {"w": normal(300)}), {"x": normal(7, 300)}, tasks=1)


def test_values_that_somebody_else_reads_stay():
    nodes = [
        h.make_node("Abs", ["x"], ["p"]),
        h.make_node("Neg", ["p"], ["q"]),
        h.make_node("Transpose", ["p"], ["t"]),
        h.make_node("MatMul", ["q", "t"], ["y"]),
    ]
    check(build(nodes, {"x": ["n", 3]}), {"x": normal(4, 3)})
    model = build([*nodes[:2], h.make_node("Exp", ["q"], ["y"])], {"x": [3]})
    model.graph.output.append(info("p"))
    exe = asc.compile(model, threads=1)
    x = normal(3)
    got = exe.run({"x": x})
    np.testing.assert_array_equal(got["p"], np.abs(x))
    np.testing.assert_allclose(got["y"], np.exp(-np.abs(x)), rtol=1e-6)


def test_nan_and_infinity_pass_as_in_the_unfused_graph():
    x = np.float32([[np.nan, np.inf, -np.inf, -0.0], [1e38, -1e38, 1e-40, 0.0]])
    nodes = [
        h.make_node("Mul", ["x", "ten"], ["p"]),
        h.make_node("Max", ["p", "zero"], ["q"]),
        h.make_node("Sub", ["q", "x"], ["y"]),
    ]
    model = build(nodes, {"x": ["n", 4]}, {"ten": np.float32(10), "zero": np.float32(0)})
    want = asc.compile(model, threads=1, options=UNFUSED).run({"x": x})["y"]
    for mode in MODES:
        np.testing.assert_array_equal(asc.compile(model, mode=mode, threads=1).run({"x": x})["y"], want)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Element-wise graphs of unknown shapes: operands broadcast in any way, sizes include 0 and 1."""
    rank = draw(st.integers(0, 4))
    full = [draw(st.sampled_from([0, 1, 2, 3, 5, 17])) for _ in range(rank)]
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))

    def operand() -> np.ndarray:
        shape = [d if draw(st.booleans()) else 1 for d in full][draw(st.integers(0, rank)) :]
        return rng.uniform(0.5, 2.0, shape).astype(np.float32)

    feeds = {f"x{i}": operand() for i in range(draw(st.integers(1, 4)))}
    values, nodes = list(feeds), []
    for i in range(draw(st.integers(2, 24))):
        fresh = values[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(values))
        op = draw(st.sampled_from(["Abs", "Neg", "Sigmoid", "Tanh", "Relu", *BINARIES]))
        inputs = [fresh, draw(st.sampled_from(values))] if op in BINARIES else [fresh]
        nodes.append(h.make_node(op, inputs, [f"v{i}"]))
        values.append(f"v{i}")
    nodes.append(h.make_node("Sum", [n.output[0] for n in nodes], ["y"]))
    inputs = {name: [None] * array.ndim for name, array in feeds.items()}
    return build(nodes, inputs), feeds


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_random_graphs_give_the_bits_of_the_unfused_graph(case: tuple[onnx.ModelProto, dict[str, np.ndarray]]):
    model, feeds = case
    want = asc.compile(model, mode="host", threads=1, options=UNFUSED).run(feeds)["y"]
    for mode in MODES:
        got = asc.compile(model, mode=mode, threads=1).run(feeds)["y"]
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


def test_half_precision_runs_are_fused_in_float32():
    nodes = [h.make_node("Add", ["x", "x"], ["p"]), h.make_node("Tanh", ["p"], ["q"]), h.make_node("Abs", ["q"], ["y"])]
    model = onnx_models.model(nodes, [info("x", T.FLOAT16, ["n"])], [info("y", T.FLOAT16)])
    x = normal(50).astype(np.float16)
    exe = asc.compile(model, threads=1)
    assert "fused: Add" in exe.explain()
    np.testing.assert_allclose(exe.run({"x": x})["y"], np.abs(np.tanh(2 * x.astype(np.float32))), rtol=1e-3)


def test_bodies_of_control_flow_are_fused_too():
    exe = asc.compile(onnx_models.branches(), threads=1)
    plain = asc.compile(onnx_models.branches(), threads=1, options=UNFUSED)
    for x in (normal(2, 3), -np.ones((2, 3), np.float32)):
        np.testing.assert_array_equal(exe.run({"x": x})["y"], plain.run({"x": x})["y"])


# --- errors, plans, files ---------------------------------------------------------------------------------------------


def test_a_shape_error_names_the_operators_of_the_fused_node():
    nodes = [h.make_node("Abs", ["x"], ["p"], name="first"), h.make_node("Add", ["p", "z"], ["y"], name="second")]
    exe = asc.compile(build(nodes, {"x": [None], "z": [None]}), threads=1)
    with pytest.raises(asc.GraphError, match=r"Fused 'first \+ second': Add: shapes \[2\] and \[3\] do not broadcast"):
        exe.run({"x": normal(2), "z": normal(3)})
    np.testing.assert_array_equal(exe.run({"x": normal(2), "z": normal(2)})["y"], np.abs(normal(2)) + normal(2))


def test_models_cannot_name_the_fused_operator():
    for domain in ("", "ascendsched"):
        model = build([h.make_node("Fused", ["x"], ["y"], domain=domain)], {"x": [3]})
        model.opset_import.append(h.make_opsetid("ascendsched", 1))
        with pytest.raises(asc.UnsupportedError):
            asc.compile(model)


def test_the_same_graph_gives_the_same_plan_text():
    model = onnx_models.mlp()
    assert asc.compile(model).plan.text() == asc.compile(model).plan.text()


def test_a_saved_file_holds_the_unfused_graph(tmp_path: Path):
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        h.make_node("Add", ["p", "b"], ["q"], name="bias"),
        h.make_node("Clip", ["q", "", "one"], ["y"], name="clip"),
    ]
    model = build(nodes, {"x": ["n", 4]}, {"w": normal(4, 4), "b": normal(4), "one": np.float32(1)})
    exe = asc.compile(model, mode="sink", threads=1)
    x = normal(3, 4)
    want = exe.run({"x": x})["y"]
    exe.save(tmp_path / "m.asc")
    loaded = asc.load(tmp_path / "m.asc")
    np.testing.assert_array_equal(loaded.run({"x": x})["y"], want)
    assert loaded._core.explain() == exe._core.explain()
    unfused = asc.load(tmp_path / "m.asc", options=UNFUSED)
    assert "Clip 'clip': task" in unfused.explain()
    np.testing.assert_allclose(unfused.run({"x": x})["y"], want, rtol=1e-6)


def test_devices_that_do_not_compute_run_operator_by_operator():
    model = build([h.make_node("Abs", ["x"], ["p"]), h.make_node("Neg", ["p"], ["y"])], {"x": [3]})
    exe = asc.compile(model, device="null", mode="host")
    exe.run({"x": normal(3)})
    assert exe.stats()["launches"] == 2
