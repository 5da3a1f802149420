"""Groups of rows, each times a matrix of its own, as mixtures of experts have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendsched as asc

Array = np.ndarray[Any, Any]


def _compile(dtype: str, is_turned: bool, ends: str = "int32", threads: int = 1) -> Any:
    g = asc.Graph("experts")
    a, b = g.input("a", dtype, ("rows", "k")), g.input("b", dtype, ("groups", None, None))
    g.output(g.op("GroupedMatMul", a, b, g.input("ends", ends, ("groups",)), transB=int(is_turned)), "y")
    return asc.compile(g, threads=threads)


def _feeds(sizes: list[int], k: int, n: int, dtype: str, is_turned: bool, ends: str = "int32") -> dict[str, Array]:
    random = np.random.default_rng(0)
    shape = (len(sizes), n, k) if is_turned else (len(sizes), k, n)
    rows, matrices = random.standard_normal((sum(sizes) + 2, k)), random.standard_normal(shape)
    return {"a": rows.astype(dtype), "b": matrices.astype(dtype), "ends": np.cumsum(sizes).astype(ends)}


@pytest.mark.parametrize("is_turned", [False, True], ids=["as it is", "transposed"])
@pytest.mark.parametrize(("dtype", "ends"), [("float32", "int32"), ("float64", "int64")])
@pytest.mark.parametrize("threads", [1, 2])
def test_each_group_is_multiplied_by_its_matrix(dtype: str, ends: str, is_turned: bool, threads: int) -> None:
    exe = _compile(dtype, is_turned, ends, threads)
    for sizes, k, n in (
        ([1, 0, 2, 5, 40], 24, 33),
        ([3], 7, 1),
        ([0, 0, 0], 4, 5),
        ([1] * 8, 0, 3),
        ([600, 900], 64, 96),
    ):
        feeds = _feeds(sizes, k, n, dtype, is_turned, ends)
        matrices = feeds["b"].swapaxes(1, 2) if is_turned else feeds["b"]
        want = np.zeros((sum(sizes) + 2, n))  # the rows of no group stay zero
        first = 0
        for size, matrix in zip(sizes, matrices, strict=True):
            want[first : first + size] = feeds["a"][first : first + size] @ matrix
            first += size
        np.testing.assert_allclose(exe.run(feeds)["y"], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ends", [[2, 1, 3], [1, 2, 9], [-1, 0, 1]])
def test_ends_that_are_no_groups_of_the_rows_are_errors(ends: list[int]) -> None:
    exe = _compile("float32", is_turned=False)
    feeds = _feeds([1, 1, 1], 4, 3, "float32", False)
    with pytest.raises(asc.AscendSchedError, match=r"\[GroupedMatMul\] index out of range"):
        exe.run(feeds | {"ends": np.array(ends, np.int32)})
    assert exe.run(feeds)["y"].shape == (5, 3)


def test_operands_that_do_not_fit_are_errors() -> None:
    exe = _compile("float32", is_turned=False)
    feeds = _feeds([1, 1, 1], 4, 3, "float32", False)
    for changes in ({"a": feeds["a"][:, :3].copy()}, {"ends": feeds["ends"][:2].copy()}):
        with pytest.raises(asc.AscendSchedError):
            exe.run(feeds | changes)
    with pytest.raises(asc.GraphError, match="GroupedMatMul"):
        _compile("int32", is_turned=False)
