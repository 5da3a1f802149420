"""What is left of the price of a shape that comes for the first time, where it is foreseen?

Runs with a pause of 2 ms between them, as sampling a token may take, and until what was foreseen is resolved, which it
is by then where CPUs are free; step by step in turn in three executables: lengths that are new, new ones with
prediction, and lengths that come back. Small and large decoders and, where the shared
catalogue is, MiniLM: decode steps, prompts that grow, requests that alternate, and lengths with a period. Then what
prediction adds to a run whose shape is known.

How to read it: a run's CPU time on the caller's thread, and its latency, in us, medians. "gone" is the share of what a
new shape takes longer than a repeated one that prediction removes, from medians of the differences step by step, with
its 95 % interval by bootstrap over steps. Above 100, what was just made is faster than what rests in memory.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from command import main
from grid import Grid
from harness import Effort
from sequences import TRACES, Feeds, decode_feeds, prompt_feeds

import ascendsched as asc
from ascendsched.demo.models import decoder
from ascendsched.native import core

PAUSE_S = 0.002
WAIT_S = 10.0
RESAMPLES = 1000
WARM_UP = 16  # steps until forecasts are trusted, not counted
Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A model and a sequence of inputs that no shape comes back in."""

    name: str
    model: Any
    feeds: list[Feeds]


def measure(effort: Effort) -> Iterator[Grid]:
    """Yields the table of latencies, then that of what prediction adds."""
    steps = 60 if effort.is_quick else 200
    columns = ["new", "foreseen", "again", "gone %", "95 %"]
    grid = Grid("foreseen shapes", [f"CPU {columns[0]}", *columns[1:], f"wall {columns[0]}", *columns[1:]])
    for case in _cases(steps):
        for mode in ("host", "auto"):
            grid.rows.append([f"{case.name}, {mode}", *_row(case, mode, grid)])
    yield grid
    yield _added(20 if effort.is_quick else 200)


def _cases(steps: int) -> Iterator[Case]:
    small, large = decoder(vocab=1000), decoder(vocab=1000, d=256, layers=8)
    for name, model, count in (("small decoder", small, steps), ("large decoder", large, steps // 2)):
        yield Case(f"{name}, decode", model, [decode_feeds(model, 1, n) for n in range(1, count + 1)])
        alternating = [decode_feeds(model, *((1, 1 + n // 2), (4, 200 + n // 2))[n % 2]) for n in range(count)]
        yield Case(f"{name}, two in turn", model, alternating)
    yield Case("small decoder, prompts + 1", small, [prompt_feeds(small, n) for n in range(1, steps + 1)])
    yield Case("small decoder, prompts + 3", small, [prompt_feeds(small, 3 * n) for n in range(1, steps // 2 + 1)])
    growth = np.cumsum([(1, 1, 2, 5)[n % 4] for n in range(steps)])
    yield Case("small decoder, period of 4", small, [decode_feeds(small, 1, int(n)) for n in growth])
    if model := _minilm():
        texts = [dict.fromkeys(model[1], np.ones((1, n), np.int64)) for n in range(2, 2 + steps // 2)]
        yield Case("MiniLM, texts + 1", model[0], texts)


def _minilm() -> tuple[str, list[str]] | None:
    folder = TRACES.parents[1] / "models"
    if not (folder / "catalog.py").is_file():
        return None
    sys.path.insert(0, str(folder))
    try:
        path, feeds = importlib.import_module("catalog").load("minilm_dynamo")
    except (FileNotFoundError, KeyError, importlib.metadata.PackageNotFoundError):
        return None
    return path, list(feeds[0])


def _row(case: Case, mode: str, grid: Grid) -> list[str]:
    predicting = asc.Options(predict=True)
    exes = [asc.compile(case.model, mode=mode, threads=1, options=options) for options in (None, predicting, None)]
    for feeds in case.feeds * 2:
        exes[2].run(feeds)
    cells = []
    for times in _times(exes, case.feeds):
        cells += [*(f"{np.median(t):.0f}" for t in times), *_gone(*times)]
    stats = exes[1].stats()
    wasted = stats["ahead_wasted"]
    grid.notes.append(f"{case.name}, {mode}: {stats['ahead_used']} of {len(case.feeds)} foreseen, {wasted} wasted")
    return cells


def _gone(new: Array, foreseen: Array, again: Array) -> list[str]:
    """The share of the excess that is gone, in percent, and its interval."""
    picks = np.random.default_rng(0).integers(0, len(new), (RESAMPLES, len(new)))
    picks[0] = range(len(new))
    excess = np.median((new - again)[picks], axis=1)
    if excess[0] <= 0:
        return ["-", "-"]
    shares = 100 * (1 - np.median((foreseen - again)[picks], axis=1) / np.maximum(excess, 1e-3))
    return [f"{shares[0]:.0f}", f"{np.percentile(shares, 2.5):.0f}-{np.percentile(shares, 97.5):.0f}"]


def _times(exes: list[asc.Executable], feeds: list[Feeds]) -> list[Array]:
    """Microseconds of each step of each executable, step by step in turn: of the thread's CPU, and all."""
    times: Array = np.zeros((2, len(exes), len(feeds)))
    for step, feed in enumerate(feeds):
        for i in np.roll(range(len(exes)), step):
            time.sleep(PAUSE_S)
            core.wait_foreseen(exes[i]._core, WAIT_S)
            start, cpu = time.perf_counter_ns(), time.thread_time_ns()
            exes[i].run(feed)
            times[:, i, step] = time.thread_time_ns() - cpu, time.perf_counter_ns() - start
    return list(times[:, :, WARM_UP:] / 1e3)


def _added(rounds: int) -> Grid:
    grid = Grid("shapes that are known", ["us", "predicting", "added"])
    model = decoder(vocab=100, d=16, layers=1)
    for name, lengths in (("the same again", [4]), ("two in turn", [4, 7]), ("ten in turn", list(range(1, 11)))):
        exes = [asc.compile(model, threads=1, options=asc.Options(predict=on)) for on in (False, True)]
        feeds = [decode_feeds(model, 1, length) for length in lengths] * (200 // len(lengths))
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for exe, of_one in zip(exes, times, strict=True):
                start = time.perf_counter_ns()
                for feed in feeds:
                    exe.run(feed)
                of_one.append((time.perf_counter_ns() - start) / len(feeds) / 1e3)
        plain, predicting = (median(of_one) for of_one in times)
        added = median(np.subtract(times[1], times[0]))
        grid.rows.append([name, f"{plain:.2f}", f"{predicting:.2f}", f"{added:.2f}"])
    return grid


if __name__ == "__main__":
    sys.exit(main(__doc__, {"foresight": measure}))
