"""Operators that Python computes: results, shapes that only they know, errors, and that nobody overlooks them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc
from ascendsched import host_calls
from ascendsched.native import core
from tests.unit.onnx_models import info, model

X = np.float32([3, 1, 3, 2, 1])


def unique_of_doubled():
    """unique(x + x) + 1: computed on the device, then in Python, then on the device."""
    nodes = [
        h.make_node("Add", ["x", "x"], ["d"]),
        h.make_node("Unique", ["d"], ["u", "", "", "counts"], "distinct"),
        h.make_node("Add", ["u", "one"], ["y"]),
    ]
    outputs = [info("y"), info("counts", T.INT64)]
    return model(nodes, [info("x", shape=["n"])], outputs, {"one": np.float32(1)})


def own(name: str, outputs: int = 1, dtype: int = 1) -> core.Graph:
    """A graph of one host call on a vector of float32."""
    graph = core.Graph("g")
    x = graph.add_value("x", "float32", ["n"])
    graph.add_input(x)
    results = [graph.add_value(f"y{i}", None, None) for i in range(outputs)]
    attributes = {"callable": name, "operator": name, "payload": "p", "output_types": [dtype] * outputs}
    graph.add_node("HostCall", [x], results, attributes, "mine")
    for result in results:
        graph.add_output(result)
    return graph


def compiled(graph: core.Graph, mode: str = "host"):
    wrapped = asc.Graph("g")
    wrapped.core = graph
    return asc.compile(wrapped, mode=mode, threads=1)


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_results_follow_the_data(mode):
    exe = asc.compile(unique_of_doubled(), mode=mode, threads=1)
    for feed in (X, X, X[:2], np.float32([]), X[::-1].copy()):
        values, counts = np.unique(feed, return_counts=True)
        got = exe.run({"x": feed})
        np.testing.assert_array_equal(got["y"], values * 2 + 1)
        np.testing.assert_array_equal(got["counts"], counts)


def test_explain_and_stats_tell_of_host_calls():
    exe = asc.compile(unique_of_doubled(), mode="host", threads=1)
    assert "Unique by onnx.reference, outside the core" in exe.explain()
    assert exe.stats()["host_calls"] == 0
    exe.run({"x": X})
    assert exe.stats()["host_calls"] == 1
    exe.run({"x": X})
    assert exe.stats()["host_calls"] == 1  # nothing changed
    exe.run({"x": X + 1})
    assert exe.stats()["host_calls"] == 2


def test_what_python_raises_names_the_node_and_leaves_the_executable_usable():
    def picky(payload, inputs):
        if inputs[0].sum() < 0:
            raise ValueError("no negative sums")
        return [inputs[0] * 2]

    host_calls.register("tests.picky", picky)
    exe = compiled(own("tests.picky"))
    with pytest.raises(asc.GraphError, match=r"\[host_call\] tests.picky 'mine': ValueError: no negative sums"):
        exe.run({"x": -X})
    np.testing.assert_array_equal(exe.run({"x": X})["y0"], X * 2)


@pytest.mark.parametrize(
    ("returned", "part"),
    [([], "0 results"), ([X.astype(np.float64)], "declared as float32"), ([np.array(["a"])], "not supported")],
)
def test_results_that_do_not_fit_are_refused(returned, part):
    host_calls.register("tests.misfit", lambda payload, inputs: returned)
    with pytest.raises(asc.AscendSchedError, match=part):
        compiled(own("tests.misfit")).run({"x": X})


def test_callables_that_nobody_registered_are_refused():
    with pytest.raises(asc.GraphError, match=r"nothing is registered as 'tests\.nobody'"):
        compiled(own("tests.nobody")).run({"x": X})


def test_inputs_cannot_be_changed():
    def greedy(payload, inputs):
        inputs[0][0] = 7
        return inputs

    host_calls.register("tests.greedy", greedy)
    with pytest.raises(asc.GraphError, match="read-only"):
        compiled(own("tests.greedy")).run({"x": X})


def test_saved_executables_call_again(tmp_path):
    asc.compile(unique_of_doubled(), threads=1).save(tmp_path / "m.asc")
    got = asc.load(tmp_path / "m.asc").run({"x": X})
    np.testing.assert_array_equal(got["y"], [3, 5, 7])
