"""Gelu and SiLU, spelt out as exporters do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.fusion_models import UNFUSED, build, check, normal

ROOT = float(np.sqrt(2 / np.pi))


class Net:
    """Nodes on the way to `y`; numbers become constants of rank `rank`."""

    def __init__(self, rank: int = 0):
        self.rank = rank
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def __call__(self, op: str, *operands: str | float) -> str:
        names = [v if isinstance(v, str) else self.number(v) for v in operands]
        self.nodes.append(h.make_node(op, names, [f"v{len(self.nodes)}"]))
        return f"v{len(self.nodes) - 1}"

    def number(self, value: float) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.full([1] * self.rank, value, np.float32)
        return name

    def model(self, result: str) -> onnx.ModelProto:
        nodes = [*self.nodes, h.make_node("Identity", [result], ["y"])]
        return build(nodes, {"x": ["n", 37]}, self.constants)


def tanh_of(f: Net, cubic: float = 0.044715, root: float = ROOT) -> str:
    return f("Tanh", f("Mul", f("Add", "x", f("Mul", f("Pow", "x", 3.0), cubic)), root))


GELUS: dict[str, Callable[[Net], str]] = {
    "gpt": lambda f: f("Mul", f("Mul", "x", 0.5), f("Add", tanh_of(f), 1.0)),
    "half last": lambda f: f("Mul", f("Mul", f("Add", 1.0, tanh_of(f)), "x"), 0.5),
    "halved by a division": lambda f: f("Div", f("Mul", f("Add", 1.0, tanh_of(f)), "x"), 2.0),
    "half of the sum": lambda f: f("Mul", "x", f("Mul", f("Add", 1.0, tanh_of(f)), 0.5)),
    "fast": lambda f: f(
        "Mul",
        f("Mul", 0.5, "x"),
        f("Add", 1.0, f("Tanh", f("Mul", f("Mul", "x", ROOT), f("Add", 1.0, f("Mul", f("Mul", "x", 0.044715), "x"))))),
    ),
    "cube of products": lambda f: f(
        "Mul",
        f("Mul", "x", 0.5),
        f("Add", f("Tanh", f("Mul", ROOT, f("Add", "x", f("Mul", 0.044715, f("Mul", "x", f("Mul", "x", "x")))))), 1.0),
    ),
    "erf": lambda f: f("Mul", f("Mul", "x", f("Add", f("Erf", f("Div", "x", float(np.sqrt(2)))), 1.0)), 0.5),
    "erf of a product": lambda f: f("Mul", f("Mul", 0.5, "x"), f("Add", 1.0, f("Erf", f("Mul", "x", 0.5**0.5)))),
}
OTHERS: dict[str, Callable[[Net], str]] = {
    "another cubic": lambda f: f("Mul", f("Mul", "x", 0.5), f("Add", tanh_of(f, 0.05), 1.0)),
    "another root": lambda f: f("Mul", f("Mul", "x", 0.5), f("Add", tanh_of(f, root=0.8), 1.0)),
    "no half": lambda f: f("Mul", f("Mul", "x", 0.4), f("Add", tanh_of(f), 1.0)),
    "another addend": lambda f: f("Mul", f("Mul", "x", 0.5), f("Add", tanh_of(f), 1.5)),
    "another factor": lambda f: f("Mul", f("Mul", f("Abs", "x"), 0.5), f("Add", tanh_of(f), 1.0)),
    "a square": lambda f: f("Mul", f("Mul", f("Mul", "x", "x"), 0.5), f("Add", tanh_of(f), 1.0)),
    "a constant within": lambda f: f(
        "Mul", f("Mul", "x", 0.5), f("Add", f("Erf", f("Add", f("Mul", "x", 0.5**0.5), 0.1)), 1.0)
    ),
    "tanh of the argument of erf": lambda f: f(
        "Mul", f("Mul", "x", 0.5), f("Add", f("Tanh", f("Mul", "x", 0.5**0.5)), 1.0)
    ),
}


def operators(model: onnx.ModelProto, **settings: object) -> str:
    return asc.compile(model, threads=1, **settings).explain()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", GELUS)
def test_a_gelu_that_is_spelt_out_is_one_operator(name: str):
    net = Net()
    model = net.model(GELUS[name](net))
    text = operators(model)
    assert [op in text for op in ("Gelu", "Tanh", "Erf")] == [True, False, False]
    assert "Gelu" not in operators(model, options=UNFUSED)
    check(model, {"x": normal(9, 37) * 4})


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_nearly_a_gelu_is_none(name: str):
    net = Net()
    model = net.model(OTHERS[name](net))
    assert "Gelu" not in operators(model)
    check(model, {"x": normal(9, 37) * 3})


def test_numbers_with_dimensions_keep_theirs():
    net = Net(rank=3)
    model = net.model(GELUS["gpt"](net))
    assert check(model, {"x": normal(4, 37)}).shape == (1, 4, 37)


def test_what_others_read_of_a_gelu_stays():
    net = Net()
    tanh = tanh_of(net)
    gelu = net("Mul", net("Mul", "x", 0.5), net("Add", tanh, 1.0))
    check(net.model(net("Sub", gelu, tanh)), {"x": normal(3, 37)})


@pytest.mark.parametrize("swap", [False, True])
def test_a_silu_agrees_wherever_its_gate_is_read(swap: bool):
    net = Net()
    gate = net("Sigmoid", "x")
    silu = net("Mul", gate, "x") if swap else net("Mul", "x", gate)
    check(net.model(net("Add", silu, 1.0)), {"x": normal(7, 37) * 5}, tasks=1)
    check(net.model(net("Add", silu, gate)), {"x": normal(7, 37) * 5}, tasks=1)


@pytest.mark.parametrize("name", ["gpt", "erf", "silu"])
def test_far_from_zero_they_are_what_the_formula_says(name: str):
    net = Net()
    model = net.model(net("Mul", "x", net("Sigmoid", "x")) if name == "silu" else GELUS[name](net))
    x = np.zeros((1, 37), np.float32)
    x[0, :10] = [-np.inf, -1e30, -200, -90, -20, 20, 200, 1e30, np.inf, np.nan]
    y = asc.compile(model, threads=1).run({"x": x})["y"][0]
    assert np.all(np.isnan(y[[0, 9]]))
    assert np.all(np.abs(y[1:5]) < [1e-30, 1e-30, 1e-30, 1e-7])
    np.testing.assert_array_equal(y[6:9], x[0, 6:9])
    np.testing.assert_allclose(y[5], 20, rtol=1e-6)
    assert np.all(np.signbit(y[1:5]))


def test_the_tanh_form_is_as_precise_as_its_argument():
    net = Net()
    model = net.model(GELUS["gpt"](net))
    x = np.linspace(-9, 9, 37 * 4001, dtype=np.float32).reshape(-1, 37)
    y = asc.compile(model, threads=1).run({"x": x})["y"]
    wide = x.astype(np.float64)
    want = 0.5 * wide * (1 + np.tanh(ROOT * (wide + 0.044715 * wide**3)))
    assert np.max(np.abs(y - want) / np.maximum(np.abs(wide), 1e-3)) < 2.0**-23
