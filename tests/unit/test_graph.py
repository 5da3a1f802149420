"""What the graph builder takes, and what it refuses when it is given, not when it is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendsched as asc


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), float])
def test_element_types_of_numpy_are_names_of_types(dtype: Any) -> None:
    g = asc.Graph()
    g.output(g.op("Neg", g.input("x", dtype, (np.int64(2), "n", None))), "y")
    (x,) = asc.compile(g, threads=1).inputs
    assert (x.dtype, x.shape) == (np.dtype(dtype).name, (2, "n", None))


@pytest.mark.parametrize("dtype", [1, "float99", object(), np.dtype("datetime64[s]")])
def test_element_types_that_there_are_not_are_refused(dtype: Any) -> None:
    with pytest.raises(asc.AscendSchedError, match="element type"):
        asc.Graph().input("x", dtype, (2,))


@pytest.mark.parametrize("shape", ["n", 2, (2.5,), ((2,),), {2}])
def test_shapes_that_are_none_are_refused(shape: Any) -> None:
    with pytest.raises(asc.GraphError, match="shape of 'x'"):
        asc.Graph().input("x", "float32", shape)


@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_name_that_is_given_twice_is_refused_so_that_no_result_is_lost(kind: str) -> None:
    g = asc.Graph()
    x, z = g.input("x", "float32", (2,)), g.input("x" if kind == "input" else "z", "float32", (2,))
    g.output(g.op("Neg", x), "y")
    g.output(g.op("Abs", z), "y" if kind == "output" else "w")
    with pytest.raises(asc.GraphError, match=f"several {kind}s are named"):
        asc.compile(g)


def test_inputs_and_outputs_have_names() -> None:
    g = asc.Graph()
    with pytest.raises(asc.GraphError, match="name of an output"):
        g.output(g.input("x", "float32", (2,)), "")
    with pytest.raises(asc.GraphError, match="name of an input"):
        g.input(3, "float32", (2,))  # type: ignore[arg-type]


def test_an_array_where_a_value_belongs_is_answered_with_constant() -> None:
    g = asc.Graph()
    with pytest.raises(asc.GraphError, match="constant"):
        g.op("Add", g.input("x", "float32", (2,)), np.ones(2, np.float32))
