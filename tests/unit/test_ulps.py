"""How many units in the last place the vector functions are off, over every magnitude."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.fusion_models import build

RNG = np.random.default_rng(5)
SELU_ALPHA, SELU_GAMMA = float(np.float32(1.67326319)), float(np.float32(1.05070102))


def elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


CASES: dict[str, tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = {
    "Exp": ({}, np.exp),
    "Sigmoid": ({}, lambda x: np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))),
    "Tanh": ({}, np.tanh),
    "Elu": ({"alpha": 1.5}, lambda x: elu(x, 1.5)),
    "Celu": ({"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(np.minimum(x, 0) / 2), x)),
    "Selu": (
        {"alpha": SELU_ALPHA, "gamma": SELU_GAMMA},
        lambda x: SELU_GAMMA * elu(x, SELU_ALPHA),
    ),
    "Softplus": ({}, lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)),
    "Erf": ({}, np.vectorize(math.erf)),
}


def everywhere(count: int) -> np.ndarray:
    """Of every magnitude below 80 about as many, and more of them between 1/1000 and 1/4."""
    exponents = np.concatenate([RNG.uniform(-40, 6.3, count), RNG.uniform(-10, -2, count)])
    return (RNG.choice([-1, 1], 2 * count) * 2.0**exponents).astype(np.float32)


@pytest.mark.parametrize("op", CASES)
def test_functions_are_within_four_ulp(op: str):
    attributes, exact = CASES[op]
    x = everywhere(10_000 if op == "Erf" else 300_000)
    model = build([h.make_node(op, ["x"], ["y"], **attributes)], {"x": ["n"]})
    y = asc.compile(model, threads=1).run({"x": x})["y"]
    wanted = exact(x.astype(np.float64))
    rounded = np.abs(wanted).astype(np.float32)
    ulp = (np.nextafter(rounded, np.float32(np.inf)) - rounded).astype(np.float64)
    assert np.max(np.abs(y - wanted) / ulp) <= 4
