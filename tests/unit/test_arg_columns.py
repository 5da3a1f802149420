"""ArgMax and ArgMin along an axis that is not the last: columns side by side."""

from __future__ import annotations

import numpy as np
import pytest

import ascendsched as asc


def places(op: str, dtype: str, axis: int, last: bool) -> asc.Executable:
    g = asc.Graph("places")
    x = g.input("x", dtype, ("a", "b", "c"))
    g.output(g.op(op, x, axis=axis, keepdims=0, select_last_index=int(last)), "y")
    return asc.compile(g, threads=1)


def expected(x: np.ndarray, op: str, axis: int, last: bool) -> np.ndarray:
    find = np.argmax if op == "ArgMax" else np.argmin
    return x.shape[axis] - 1 - find(np.flip(x, axis), axis) if last else find(x, axis)


@pytest.mark.sanitize
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int32", "int64"])
def test_columns_agree_with_numpy_where_many_are_equal_and_some_are_nan(op: str, dtype: str, last: bool) -> None:
    rng = np.random.default_rng(3)
    for axis in (0, 1):
        exe = places(op, dtype, axis, last)
        for shape in [(1, 4, 2), (3, 2, 3), (2, 5, 17), (7, 3, 600), (2, 1, 9)]:
            x = rng.integers(0, 4, shape).astype(dtype)
            if x.dtype.kind == "f":
                x[rng.random(shape) < 0.1] = np.nan
            np.testing.assert_array_equal(exe.run({"x": x})["y"], expected(x, op, axis, last))
        assert ": task, columns" in exe.explain()
