"""Few rows times a transposed matrix that is fed: products that are sums along the rows of both."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.options import ISAS

ROWS = (1, 2, 3, 4, 5, 7, 8, 16, 17)
CASES = [(1, 1), (3, 5), (4, 16), (63, 65), (300, 130), (1000, 257)]  # n, k


def product(bias: bool) -> asc.Executable:
    g = asc.Graph("product")
    a, b = g.input("a", "float32", ("m", "k")), g.input("b", "float32", ("n", "k"))
    more = [g.input("c", "float32", ("n",))] if bias else []
    g.output(g.op("Gemm", a, b, *more, transB=1, alpha=0.5), "y")
    return asc.compile(g, threads=1)


@pytest.mark.sanitize
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize(("n", "k"), CASES, ids=str)
def test_few_rows_times_a_transposed_matrix_agree_with_float64(n: int, k: int, bias: bool) -> None:
    exe, rng = product(bias), np.random.default_rng(n + k)
    for m in ROWS:
        feeds = {"a": rng.standard_normal((m, k), np.float32), "b": rng.standard_normal((n, k), np.float32)}
        expected = 0.5 * feeds["a"].astype(np.float64) @ feeds["b"].T.astype(np.float64)
        if bias:
            feeds["c"] = rng.standard_normal(n, np.float32)
            expected += feeds["c"]
        scale = np.abs(feeds["a"]) @ np.abs(feeds["b"]).T + 1
        assert np.max(np.abs(exe.run(feeds)["y"] - expected) / scale) < 1e-6, m


def test_a_row_gives_the_same_bits_among_any_number_of_rows() -> None:
    exe, rng = product(False), np.random.default_rng(3)
    a, b = rng.standard_normal((4, 257), np.float32), rng.standard_normal((1000, 257), np.float32)
    alone = exe.run({"a": a[:1], "b": b})["y"]
    for m in (2, 3, 4):
        assert np.array_equal(exe.run({"a": a[:m], "b": b})["y"][:1], alone), m


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_set_has_the_product(isa: str) -> None:
    program = """
import numpy as np, ascendsched as asc
g = asc.Graph("p")
g.output(g.op("Gemm", g.input("a", "float32", ("m", 67)), g.input("b", "float32", (999, 67)), transB=1), "y")
rng = np.random.default_rng(1)
a, b = rng.standard_normal((13, 67), np.float32), rng.standard_normal((999, 67), np.float32)
print(np.abs(asc.compile(g, threads=1).run({"a": a, "b": b})["y"] - a.astype("f8") @ b.T).max() < 1e-4)
"""
    environment = {**os.environ, "ASCENDSCHED_ISA": isa}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout == "True\n"
