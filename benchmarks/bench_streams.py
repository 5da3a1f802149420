"""Do independent branches take less time on two streams than on one, and is the estimate that decides right?

Two threads. On one stream a large kernel may use both; on two streams each kernel has one. The last column is the time
that the estimate predicts for two streams, as a part of that for one: what it measures should be near.

The last table is of host mode, operator by operator at ever new shapes, on a device whose kernels need no CPU.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from statistics import median
from time import perf_counter_ns
from typing import Any

import numpy as np
from command import main
from harness import Effort, Figures, Subject, Table, compare

import ascendsched as asc
from ascendsched.demo.onnx_writer import OnnxWriter

THREADS = 2


def recurrent_branches(op: str, gates: int, steps: int, hidden: int) -> tuple[Any, Any]:
    """Two recurrences over the same sequence, added; and an input."""
    rng = np.random.default_rng(hidden)
    writer = OnnxWriter(op)
    x = writer.input("x", "float32", [steps, 1, hidden])
    writer.output("y", "float32", [steps, 1, 1, hidden])
    ends = []
    for name in "ab":
        weights = [(rng.standard_normal((1, gates * hidden, hidden)) / hidden).astype(np.float32) for _ in range(2)]
        names = [writer.constant(f"{kind}{name}", array) for kind, array in zip("WR", weights, strict=True)]
        ends.append(writer.add(op, x, *names, name="branch_" + name, hidden_size=hidden))
    writer.add("Add", *ends, name="y")
    return writer.model(), rng.standard_normal((steps, 1, hidden)).astype(np.float32)


def towers(layers: int, channels: int, size: int) -> tuple[Any, Any]:
    """Two towers of convolutions, added; and an input."""
    rng = np.random.default_rng(channels)
    writer = OnnxWriter("towers")
    shape = [1, channels, size, size]
    x = writer.input("x", "float32", shape)
    writer.output("y", "float32", shape)
    ends = []
    for name in "ab":
        value = x
        for i in range(layers):
            weights = (rng.standard_normal((channels, channels, 3, 3)) / (3 * channels**0.5)).astype(np.float32)
            kernel = writer.constant(f"w{name}{i}", weights)
            value = writer.add("Conv", value, kernel, name=f"conv{name}{i}", pads=[1, 1, 1, 1])
            value = writer.add("Relu", value, name=f"relu{name}{i}")
        ends.append(value)
    writer.add("Add", *ends, name="y")
    return writer.model(), rng.standard_normal(shape).astype(np.float32)


def products(layers: int, width: int, rows: int | str = 1) -> tuple[Any, Any]:
    """Two chains of small products with activations, added; and an input."""
    rng = np.random.default_rng(width)
    writer = OnnxWriter("products")
    x = writer.input("x", "float32", [rows, width])
    writer.output("y", "float32", [rows, width])
    ends = []
    for name in "ab":
        value = x
        for i in range(layers):
            weights = (rng.standard_normal((width, width)) / width**0.5).astype(np.float32)
            value = writer.add("MatMul", value, writer.constant(f"w{name}{i}", weights), name=f"product{name}{i}")
            value = writer.add("Tanh", value, name=f"tanh{name}{i}")
        ends.append(value)
    writer.add("Add", *ends, name="y")
    return writer.model(), rng.standard_normal((1, width)).astype(np.float32)


CASES = {
    "two GRUs, 100 steps of 128": lambda: recurrent_branches("GRU", 3, 100, 128),
    "two LSTMs, 50 steps of 256": lambda: recurrent_branches("LSTM", 4, 50, 256),
    "two towers of 6 convolutions, 16 channels, 32 x 32": lambda: towers(6, 16, 32),
    "two towers of 6 convolutions, 64 channels, 56 x 56": lambda: towers(6, 64, 56),
    "two chains of 20 products of 256 x 256": lambda: products(20, 256),
    "two chains of 20 products of 32 x 32": lambda: products(20, 32),
}


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table of times per case, then one of ratios."""
    ratios = Figures("two streams, as a part of one", "case", [])
    ratios.headings = ("measured", "measured, 90 % of samples", "estimated", "streams by itself")
    for title, make in CASES.items():
        model, x = make()
        compiled = {
            label: asc.compile(model, mode="sink", threads=THREADS, options=asc.Options(streams=streams))
            for label, streams in (("one stream", 1), ("two streams", 2), ("decided", None))
        }
        subjects = [Subject(label, exe.bind({"x": x}).run) for label, exe in compiled.items()]
        table = compare(title, "run", subjects, np.asarray(compiled["one stream"](x)), effort)
        yield table
        one, two = (np.array(table.subject(label).times_us) for label in ("one stream", "two streams"))
        spread = float(np.quantile(two / one, 0.9))
        chosen = compiled["decided"].stats()["streams"]
        row = [float(np.median(two) / np.median(one)), spread, _estimate(compiled["two streams"]), chosen]
        ratios.rows.append((title, row))
    yield ratios
    yield _node_by_node(effort)


def _node_by_node(effort: Effort) -> Table:
    table = Figures("two chains of 20 products, node by node", "run", [])
    table.headings = ("one stream, us", "two streams", "decided", "streams by itself", "decided / one")
    model, _ = products(20, 32, "n")
    sizes = count(1)
    for task_us in (5, 20, 100):
        for way, workers in (("serial", 0), ("pipelined", 1)):
            compiled = [
                asc.compile(
                    model,
                    device=f"timed:us={task_us}",
                    mode="host",
                    threads=THREADS,
                    options=asc.Options(streams=streams, pipeline_workers=workers, schedule_cache_bytes=0),
                )
                for streams in (1, 2, None)
            ]
            times: list[list[float]] = [[], [], []]
            for _ in range(4 + effort.samples):
                for exe, spent in zip(compiled, times, strict=True):
                    feeds = {"x": np.zeros((next(sizes), 32), np.float32)}
                    begin = perf_counter_ns()
                    exe.run(feeds)
                    spent.append((perf_counter_ns() - begin) / 1e3)
            one, two, decided = (median(spent[4:]) for spent in times)
            row = [one, two, decided, compiled[2].stats()["streams"], decided / one]
            table.rows.append((f"kernels of {task_us} us, {way}", row))
    return table


def _estimate(exe: asc.Executable) -> float:
    """What the estimate expects of two streams, without the costs of waiting, which a forced choice leaves out."""
    found = re.search(r"estimated ([0-9.]+) us, one stream ([0-9.]+) us", exe.explain())
    return float(found[1]) / float(found[2]) if found else 1.0


if __name__ == "__main__":
    sys.exit(main(__doc__, {"streams": measure}))
