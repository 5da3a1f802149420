"""Bodies of If, Loop and Scan become closed graphs."""

from __future__ import annotations

import numpy as np
import pytest

from ascendsched.errors import GraphError
from tests.unit.onnx_nodes import F, body, model, node, value
from tests.unit.onnx_recorder import check_same_results, record


def test_branches_are_closed_over_what_either_reads():
    outer = [node("Neg", ["x"], ["n"]), node("Abs", ["x"], ["p"])]
    then = body([node("Add", ["n", "w"], ["t"])], ["t"])
    other = body([node("Mul", ["p", "n"], ["p2"]), node("Mul", ["p2", "x"], ["e"])], ["e"])
    case = model(
        [*outer, node("If", ["flag"], ["y"], then_branch=then, else_branch=other)],
        [value("x"), value("flag", "bool", [])],
        ["y"],
        {"w": F},
    )
    for flag in (True, False):
        recorded = check_same_results(case, {"x": F, "flag": np.array(flag)})
    branch = recorded.nodes[2]
    assert branch.attributes["num_captures"] == 3
    assert [recorded.values[i][0] for i in branch.inputs] == ["flag", "n", "p", "x"]
    for name in ("then_branch", "else_branch"):
        inner = branch.attributes[name]
        assert [inner.values[i][0] for i in inner.inputs] == ["n", "p", "x"]
    # Constants stay constants inside.
    assert [array.tolist() for array, _ in branch.attributes["then_branch"].constants.values()] == [F.tolist()]


def test_branch_may_use_a_captured_name_for_a_value_of_its_own():
    then = body([node("Neg", ["n"], ["t"])], ["t"])
    other = body([node("Abs", ["x"], ["n"]), node("Neg", ["n"], ["e"])], ["e"])
    case = model(
        [node("Exp", ["x"], ["n"]), node("If", ["flag"], ["y"], then_branch=then, else_branch=other)],
        [value("x"), value("flag", "bool", [])],
        ["y"],
    )
    recorded = record(case)
    inner = recorded.nodes[1].attributes["else_branch"]
    assert [inner.values[i][0] for i in inner.inputs] == ["n", "x"]
    assert inner.nodes[0].inputs == [inner.inputs[1]]
    assert inner.nodes[1].inputs == inner.nodes[0].outputs
    assert inner.nodes[0].outputs[0] != inner.inputs[0]


def test_loop_carries_scans_and_captures_through_nested_bodies():
    choice = node(
        "If",
        ["even"],
        ["step"],
        then_branch=body([node("Add", ["x", "s"], ["t"])], ["t"]),
        else_branch=body([node("Sub", ["x", "half"], ["e"])], ["e"]),
    )
    nodes = [
        node("Mod", ["i", "two"], ["rest"]),
        node("Equal", ["rest", "zero"], ["even"]),
        node("Mul", ["x", "x"], ["half"]),
        choice,
        node("Add", ["s", "step"], ["s_out"]),
        node("Identity", ["go"], ["go_out"]),
        node("Identity", ["s_out"], ["seen"]),
    ]
    inputs = [value("i", "int64", []), value("go", "bool", []), value("s", dims=["anything"])]
    loop = node("Loop", ["m", ""], ["last", "all"], body=body(nodes, ["go_out", "s_out", "seen"], inputs))
    loop.input.append("start")
    case = model(
        [loop],
        [value("x"), value("m", "int64", []), value("start")],
        ["last", "all"],
        {"two": np.int64(2), "zero": np.int64(0)},
    )
    recorded = check_same_results(case, {"x": F, "m": np.array(5), "start": F * 0})
    (written,) = recorded.nodes
    assert written.inputs[1] == -1
    assert written.attributes["num_captures"] == 1
    inner = written.attributes["body"]
    assert [inner.values[i][0] for i in inner.inputs] == ["i", "go", "s", "x"]
    assert [inner.values[i][1] for i in inner.inputs] == ["int64", "bool", "float32", None]
    assert all(inner.values[i][2] is None for i in inner.inputs)


def test_scan_body_is_closed():
    inner = body(
        [node("Add", ["state", "row"], ["sum"]), node("Mul", ["sum", "x"], ["out"])],
        ["sum", "out"],
        [value("state", dims=[3]), value("row", dims=[3])],
    )
    scan = node("Scan", ["start", "rows"], ["last", "all"], body=inner, num_scan_inputs=1)
    inputs = [value("start", dims=[3]), value("rows"), value("x", dims=[3])]
    recorded = check_same_results(model([scan], inputs, ["last", "all"]), {"start": F[0], "rows": F, "x": F[1]})
    (loop,) = [each for each in recorded.nodes if each.op == "Loop"]
    assert loop.attributes["num_captures"] == 2  # the scanned rows, and x


def test_branch_with_another_number_of_outputs_is_refused():
    then, other = body([node("Neg", ["x"], ["t"])], ["t"]), body([node("Abs", ["x"], ["e"])], ["e", "e"])
    nodes = [node("If", ["flag"], ["y"], then_branch=then, else_branch=other, name="choice")]
    with pytest.raises(GraphError, match=r"^\[onnx\] node 'choice' \(If\): its body has 0 inputs and 2 outputs.*; "):
        record(model(nodes, [value("x"), value("flag", "bool", [])], ["y"]))


def test_loop_body_that_does_not_fit_its_node_is_refused():
    inner = body([node("Identity", ["go"], ["go_out"])], ["go_out"], [value("i", "int64", []), value("go", "bool", [])])
    loop = node("Loop", ["m", "", "x"], ["y"], body=inner)
    with pytest.raises(GraphError, match="the node needs 3 inputs and 2 outputs"):
        record(model([loop], [value("x"), value("m", "int64", [])], ["y"]))


def test_scan_count_out_of_range_is_refused():
    inner = body([node("Neg", ["row"], ["out"])], ["out"], [value("row", dims=[3])])
    scan = node("Scan", ["x"], ["y"], body=inner, num_scan_inputs=2)
    with pytest.raises(GraphError, match="2 scanned inputs"):
        record(model([scan], [value("x")], ["y"]))
