"""Pow with exponents that have ways of their own, against the C library's pow at every kind of number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model

BASES = [0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, 2.0, 3e38, -3e38, 1e-40, -1e-40, 4.0, 0.3, -7.25]


def power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.copysign(math.inf, base)
    except ValueError:
        return math.copysign(math.inf, base) if base == 0 else math.nan


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("exponent", [3.0, 0.5, 2.0, -1.0, 1.5])
@pytest.mark.parametrize("count", [1, 255, 256, 257, 1000])
def test_pow_is_that_of_the_c_library_with_and_without_fusion(exponent, count):
    x = np.resize(np.array(BASES, np.float32), count)
    want = np.array([power(float(v), exponent) for v in x]).astype(np.float32)
    constants = {"e": np.float32(exponent), "zero": np.zeros(1, np.float32)}
    nodes = [h.make_node("Pow", ["x", "e"], ["y"])]
    chain = [h.make_node("Pow", ["x", "e"], ["p"]), h.make_node("Sub", ["p", "zero"], ["y"])]
    for made in (nodes, chain):
        exe = asc.compile(model(made, [info("x", shape=[count])], [info("y")], constants), threads=1)
        got = exe.run({"x": x})["y"]
        np.testing.assert_allclose(got, want, rtol=3e-7, atol=2e-45)
        where = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[where]), np.signbit(want[where]))
