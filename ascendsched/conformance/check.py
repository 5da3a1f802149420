"""A check, what it may say, and the models that checks share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from ascendsched import plugins
from ascendsched.errors import UnsupportedError
from ascendsched.executable import Executable, compile
from ascendsched.graph import Graph, Tensor
from ascendsched.native import core as _core
from ascendsched.options import Options

Array = np.ndarray[Any, Any]
Tail = Callable[[Graph, Tensor], Tensor]  # what comes after a carrier
Verdict = Literal["passed", "failed", "unsupported"]

WIDTH = 16
_UNARY = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Sqrt")


@dataclass(frozen=True)
class Outcome:
    """What a check said of a device; `detail` is the reason where it has not passed."""

    check: str
    verdict: Verdict
    detail: str = ""


class Unsupported(Exception):  # noqa: N818 - no error: a device may do less than others
    """The device does not do what a check is about."""


class Failure(Exception):  # noqa: N818 - a verdict
    """The device does it, but wrong."""


def expect(holds: bool, what: str) -> None:
    """Fails the check unless `holds`."""
    if not holds:
        raise Failure(what)


def _nothing(graph: Graph, value: Tensor) -> Tensor:
    return value


@dataclass
class Subject:
    """A device under check."""

    device: str
    _build: Callable[[Tail], Graph] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        plugins.load(self.device)
        self.computes: bool = _core.device_info(self.device)["computes"]

    def has_kernels(self, graph: Graph) -> bool:
        """Whether the device has a kernel for every node, were all of them its own."""
        return not any(why_not for _, _, _, why_not in _core.check_support(graph.core, self.device))

    def compile(self, graph: Graph, mode: str = "auto", options: Options | None = None) -> Executable:
        """Compiles a graph for the device; Unsupported where it lacks a kernel."""
        try:
            return compile(graph, device=self.device, mode=mode, threads=1, options=options)
        except UnsupportedError as error:
            raise Unsupported(str(error)) from error

    def carrier(self, tail: Tail = _nothing) -> Graph:
        """A model of several tasks from "x" of shape (n, 16) that the device can run, whatever it computes."""
        if self._build is None:
            builders: list[Callable[[Tail], Graph]] = [_mlp, *(partial(_chain, op) for op in _UNARY)]
            self._build = next((build for build in builders if self.has_kernels(build(_nothing))), None)
        if self._build is None:
            raise Unsupported(f"none of these float32 operators: MatMul with Add and Relu, {', '.join(_UNARY)}")
        return self._build(tail)


def expected(graph: Graph, feeds: dict[str, Array]) -> dict[str, Array]:
    """Results of the CPU device."""
    return compile(graph, threads=1).run(feeds)


def compare(got: dict[str, Array], wanted: dict[str, Array], rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Fails the check where results differ."""
    for name, want in wanted.items():
        have = got[name]
        expect(
            have.shape == want.shape and have.dtype == want.dtype,
            f"result {name}: {have.dtype}{have.shape}, expected {want.dtype}{want.shape}",
        )
        if not np.allclose(have, want, rtol, atol, equal_nan=True):
            worst = float(np.max(np.abs(have.astype(np.float64) - want.astype(np.float64))))
            raise Failure(f"result {name} differs from the CPU device's by up to {worst:.3g}")


def rows(n: int) -> dict[str, Array]:
    """Input of a carrier."""
    return {"x": np.random.default_rng(n).uniform(0.1, 1, (n, WIDTH)).astype(np.float32)}


def only(results: dict[str, Array]) -> Array:
    """The one result of a carrier."""
    (result,) = results.values()
    return result


def _mlp(tail: Tail) -> Graph:
    generator = np.random.default_rng(0)
    graph = Graph("mlp")
    value = graph.input("x", "float32", ("n", WIDTH))
    for _ in range(2):
        weights = graph.constant(generator.standard_normal((WIDTH, WIDTH), dtype=np.float32) / 4)
        bias = graph.constant(generator.standard_normal(WIDTH, dtype=np.float32))
        value = graph.op("Relu", graph.op("Add", graph.op("MatMul", value, weights), bias))
    graph.output(tail(graph, value))
    return graph


def _chain(op: str, tail: Tail) -> Graph:
    graph = Graph(op)
    value = graph.input("x", "float32", ("n", WIDTH))
    for _ in range(3):
        value = graph.op(op, value)
    graph.output(tail(graph, value))
    return graph


def single(op: str, arrays: Sequence[Array | None], constants: Sequence[int] = (), **attributes: Any) -> Graph:
    """A graph of one operator; inputs are "0", "1" and so on, but for those that are constants."""
    graph = Graph(op)
    values: list[Any] = []
    for i, array in enumerate(arrays):
        if array is None:
            values.append(None)
        elif i in constants:
            values.append(graph.constant(array))
        else:
            values.append(graph.input(str(i), array.dtype.name, [None] * array.ndim))
    graph.output(graph.op(op, *values, **attributes))
    return graph
