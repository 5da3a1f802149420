"""Many rows times a matrix of fewer columns than a vector has lanes, as heads of classifiers have."""

from __future__ import annotations

import numpy as np
import pytest

import ascendsched as asc

pytestmark = pytest.mark.sanitize


def head(n: int, k: int, fuses: bool) -> tuple[asc.Executable, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + k)
    w, bias = rng.standard_normal((n, k), np.float32), rng.standard_normal(n, np.float32)
    g = asc.Graph("head")
    y = g.op("Gemm", g.input("x", "float32", ("m", "k")), g.constant(w), g.constant(bias), transB=1, alpha=0.5)
    g.output(g.op("Relu", y) if fuses else y, "y")
    return asc.compile(g, threads=1), w, bias


@pytest.mark.parametrize("fuses", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 65, 66, 67])
@pytest.mark.parametrize("k", [1, 3, 15, 16, 17, 64, 1001, 2048, 2049])
def test_few_columns_agree_with_float64(n: int, k: int, fuses: bool) -> None:
    exe, w, bias = head(n, k, fuses)
    for m in (1, 3, 4, 5, 7, 8, 33):
        x = np.random.default_rng(m).standard_normal((m, k), np.float32)
        expected = 0.5 * x.astype(np.float64) @ w.T.astype(np.float64) + bias
        scale = np.abs(x) @ np.abs(w).T + 1
        got = exe.run({"x": x})["y"]
        assert np.max(np.abs(got - (np.maximum(expected, 0) if fuses else expected)) / scale) < 1e-6, m
