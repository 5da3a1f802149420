"""One row times a matrix that no cache holds: the sums stand in the first-level cache while the matrix streams by."""

from __future__ import annotations

import numpy as np
import pytest

import ascendsched as asc


@pytest.mark.parametrize(("k", "n"), [(768, 768), (2051, 259), (130, 9001), (3, 200_003), (4096, 128 + 1)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, None), (1.0, 1.0), (0.5, 2.0)])
def test_row_times_large_matrix_is_exact_enough(k: int, n: int, alpha: float, beta: float | None) -> None:
    generator = np.random.default_rng(k)
    x, w = generator.standard_normal((1, k), np.float32), generator.standard_normal((k, n), np.float32)
    bias = generator.standard_normal(n, np.float32)
    w[:, n - 1] = w[:, 0]
    bias[n - 1] = bias[0]
    g = asc.Graph()
    inputs = [g.input("x", "float32", (1, k)), g.input("w", "float32", (k, n))]
    feeds = {"x": x, "w": w}
    if beta is not None:
        inputs.append(g.input("b", "float32", (n,)))
        feeds["b"] = bias
    g.output(g.op("Gemm", *inputs, alpha=alpha, beta=1.0 if beta is None else beta))
    (got,) = asc.compile(g, threads=1).run(feeds).values()
    wanted = alpha * (x.astype(np.float64) @ w) + (0 if beta is None else beta * bias)
    assert np.abs(got - wanted).max() < 1e-6 * k
    assert got[0, n - 1] == got[0, 0]  # equal columns give equal sums, at the end of a strip too
