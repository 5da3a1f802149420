"""What does one operator cost?

Chains of 300 operators on [n, 16], each so small that scheduling it costs more than computing it; one thread. The shape
stays the same, is a new one in every call, or is one of 16 in turn.

How to read it: microseconds per operator. "host" resolves operator by operator and remembers what it has seen; with the
caches off it remembers nothing, which is the full price of a dynamic shape. "sink" resolves everything once per shape:
it is cheapest where shapes stay or come back, and pays for loading where every shape is new. "auto" should be near the
better of the two. "static" is an executable for each shape, compiled with that shape fixed: what can be had at best
where the shape stays; of shapes in turn, each has weights and memory of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
from command import main
from harness import PEER, Array, Effort, Subject, Table, compare, compile_variants, onnx_reference
from models import Layer, sequence_model

import ascendsched as asc
from ascendsched.demo.peers import create_session, has_onnxruntime

OPERATORS = 300
WIDTH = 16
CYCLE = 16
CALLS = 2  # a sample

#: By chain, the operators that take turns in it: ONNX operator, its constants, its attributes.
CHAINS: dict[str, list[tuple[str, tuple[str, ...], dict[str, Any]]]] = {
    "MatMul, Softmax": [("MatMul", ("weight",), {}), ("Softmax", (), {"axis": -1})],
    "LayerNorm, Gemm": [("LayerNormalization", ("scale", "bias"), {"axis": -1}), ("Gemm", ("weight", "bias"), {})],
    "Mul, Add, Neg": [("Mul", ("scale",), {}), ("Add", ("bias",), {}), ("Neg", (), {})],
}


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table per chain and way in which shapes come."""
    new = _paired_rows((effort.samples + 1) * CALLS)  # what is checked is a sample too
    middle = len(new) // 2
    returning = [n * len(new) // CYCLE for n in _paired_rows(CYCLE)]
    for name in CHAINS:
        model = _chain(name)
        yield _compare(f"{name}, one shape", model, [middle], CALLS, effort, _static(name, [middle]))
        yield _compare(f"{name}, new shape every call", model, new, CALLS, effort)
        # The shapes have come twice before they are timed.
        title = f"{name}, {CYCLE} shapes in turn"
        yield _compare(title, model, returning, 2 * CYCLE, effort, _static(name, returning))


def _in_turn(executables: Sequence[asc.Executable]) -> Callable[[Array], Any]:
    upcoming = cycle(executables)

    def run(x: Array) -> Any:
        return next(upcoming)(x)

    return run


def _static(name: str, rows: Sequence[int]) -> list[asc.Executable]:
    return [asc.compile(_chain(name, n), threads=1) for n in rows]


def _compare(
    title: str,
    model: Any,
    rows: Sequence[int],
    checked: int,
    effort: Effort,
    fixed: Sequence[asc.Executable] = (),
) -> Table:
    random = np.random.default_rng(1)
    inputs = [random.standard_normal((n, WIDTH)).astype(np.float32) for n in rows]
    references = [onnx_reference(model, x) for x in inputs[:checked]]
    reference = np.concatenate(list(islice(cycle(references), checked)))
    subjects = [_subject(label, run, inputs, checked) for label, run in _runs(model)]
    if fixed:
        subjects.insert(0, _subject("static", _in_turn(fixed), inputs, checked))
    table = compare(title, "operator", subjects, reference, effort, calls=1)
    if fixed:
        ratio = min(table.subject("auto").times_us) / min(table.subject("static").times_us)
        medians = table.subject("auto").median_us / table.subject("static").median_us
        table.notes.append(
            f"auto takes {ratio:.2f} times as long as static by the minimum, {medians:.2f} by the median"
        )
    return table


def _runs(model: Any) -> Iterator[tuple[str, Callable[[Array], Any]]]:
    yield from compile_variants(model)
    yield "sink", asc.compile(model, mode="sink", threads=1)
    if has_onnxruntime():
        session = create_session(model.SerializeToString(), 1)
        yield PEER, lambda x: session.run(None, {"x": x})[0]


def _subject(label: str, run: Callable[[Array], Any], inputs: Sequence[Array], checked: int) -> Subject:
    """Every call of the subject goes on where the one before ended, so that all subjects see the same shapes."""
    upcoming = cycle(inputs)

    def call() -> None:
        for _ in range(CALLS):
            run(next(upcoming))

    def result() -> Array:
        return np.concatenate([run(next(upcoming)) for _ in range(checked)])

    return Subject(label, call, CALLS * OPERATORS, result, is_peer=label == PEER)


def _paired_rows(count: int) -> list[int]:
    """1 to `count`, each once, in random order, yet any two that follow each other make up about the same work."""
    first = np.random.default_rng(2).permutation(count // 2) + 1
    pairs = np.stack([first, count + 1 - first], axis=1)
    rows: list[int] = pairs.ravel().tolist()
    return rows


def _chain(name: str, rows: int | str = "n") -> Any:
    random = np.random.default_rng(0)
    values = {
        "weight": random.standard_normal((WIDTH, WIDTH)) * WIDTH**-0.5,
        "scale": random.uniform(0.9, 1.1, WIDTH),
        "bias": random.uniform(-0.1, 0.1, WIDTH),
    }
    layers: list[Layer] = [(op, {c: values[c] for c in constants}, attrs) for op, constants, attrs in CHAINS[name]]
    return sequence_model((rows, WIDTH), (rows, WIDTH), islice(cycle(layers), OPERATORS))


if __name__ == "__main__":
    sys.exit(main(__doc__, {"chain": measure}))
