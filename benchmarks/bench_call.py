"""What does a call cost?

One Add on [1, 16], where nearly everything is the call, and an MLP 17-64-64-6 of the size of a controller. One thread,
mode "auto", which sinks these static shapes, except where the label says "host".

How to read it: ``bind().run()`` reads and writes the same two arrays in every call; ``exe(x)`` and ``exe.run(dict)``
look at their input anew and return a fresh array. onnxruntime's rows are its usual call and its IO binding with both
arrays bound. "host" shows what resolving operator by operator adds once everything has been seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from command import main
from harness import PEER, Array, Effort, Subject, Table, bind_session, compare, onnx_reference, then
from models import Layer, sequence_model

import ascendsched as asc
from ascendsched.demo.peers import create_session, has_onnxruntime

WIDTHS = (17, 64, 64, 6)


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table per model."""
    for title, model, width in (("Add, [1, 16]", _add(), 16), ("MLP 17-64-64-6", _mlp(), WIDTHS[0])):
        x = np.random.default_rng(1).standard_normal((1, width)).astype(np.float32)
        reference = onnx_reference(model, x)
        subjects = [*_ours(model, x, reference.shape), *_peers(model, x, reference.shape)]
        yield compare(title, "call", subjects, reference, effort)


def _ours(model: Any, x: Array, shape: tuple[int, ...]) -> Iterator[Subject]:
    executable = asc.compile(model, threads=1)
    y = np.empty(shape, np.float32)
    bound = executable.bind({"x": x}, outputs={"y": y}).run
    yield Subject("bind().run()", bound, result=then(bound, y))
    yield Subject("exe(x)", partial(executable, x))
    yield Subject("exe.run(dict)", partial(executable.run, {"x": x}))
    y_host = np.empty(shape, np.float32)
    bound_host = asc.compile(model, mode="host", threads=1).bind({"x": x}, outputs={"y": y_host}).run
    yield Subject("host, bind().run()", bound_host, result=then(bound_host, y_host))


def _peers(model: Any, x: Array, shape: tuple[int, ...]) -> Iterator[Subject]:
    if not has_onnxruntime():
        return
    session = create_session(model.SerializeToString(), 1)
    yield Subject(f"{PEER}, run(dict)", partial(session.run, None, {"x": x}), is_peer=True)
    y = np.empty(shape, np.float32)
    bound = bind_session(session, {"x": x}, {"y": y})
    yield Subject(f"{PEER}, IO binding", bound, result=then(bound, y), is_peer=True)


def _add() -> Any:
    return sequence_model((1, 16), (1, 16), [("Add", {"bias": np.linspace(-1, 1, 16)}, {})])


def _mlp() -> Any:
    random = np.random.default_rng(0)
    layers: list[Layer] = []
    for i, (rows, columns) in enumerate(pairwise(WIDTHS)):
        weight = random.standard_normal((rows, columns)) * rows**-0.5
        bias = random.standard_normal(columns) * 0.1
        layers += [("Gemm", {f"weight{i}": weight, f"bias{i}": bias}, {}), ("Relu", {}, {})]
    return sequence_model((1, WIDTHS[0]), (1, WIDTHS[-1]), layers[:-1])


if __name__ == "__main__":
    sys.exit(main(__doc__, {"call": measure}))
