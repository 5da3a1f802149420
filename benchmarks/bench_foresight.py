"""Are the next shapes foreseen, and what is left of the price of a shape that comes for the first time?

First the forecasts: how often the exact next (batch, context) of a decode step is foreseen, in continuous batching
simulated from traces of serving (batch up to 256, steps of 30 ms), beside two rules of one line, and for sequences that
alternate or have a period; lengths of prompts have no rule. Then the latency of a small decoder's steps with a pause of
2 ms between them, as sampling a token may take: lengths that come back, that are new, and new ones with prediction.

How to read it: "excess gone" is the share of what a new shape takes longer than a repeated one that prediction removes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from command import main
from grid import Grid
from harness import Effort
from sequences import Feeds, decode_feeds, prompt_feeds, traces

import ascendsched as asc
from ascendsched.demo.models import decoder
from ascendsched.tuning.batching import decode_steps
from ascendsched.tuning.forecast import Forecast
from ascendsched.tuning.predictors import Signature

MakeFeeds = Callable[[Any, int], Feeds]
PAUSE_S = 0.002
WARM_UP = 16  # steps until forecasts are trusted, not counted


def measure(effort: Effort) -> Iterator[Grid]:
    """Yields the table of forecasts, then that of latencies."""
    yield _forecasts(5000 if effort.is_quick else 10**9)
    steps = 100 if effort.is_quick else 400
    yield _latencies("decoder, one token a step", steps, lambda model, n: decode_feeds(model, 1, n))
    yield _latencies("decoder, prompts a token longer", min(steps, 200), prompt_feeds)


def _forecasts(limit: int) -> Grid:
    headings = ["length", "right %", "foreseen %", "step again %", "context + 1 %", "us each"]
    grid = Grid("forecast", headings)
    for name, requests in traces():
        steps = [tuple(step) for step, _ in zip(decode_steps(requests), range(limit), strict=False)]
        grid.rows.append(_row(f"decode, {name}", steps))
        grid.rows.append(_row(f"prompts, {name}", [(request.prompt,) for request in requests[:limit]]))
    grid.rows.append(_row("alternating", [((1, 90), (8, 30))[i % 2] for i in range(1000)]))
    grid.rows.append(_row("period of 13", [(i * 7 % 13, i % 13) for i in range(1000)]))
    return grid


def _row(name: str, sequence: list[Signature]) -> list[str]:
    forecast = Forecast()
    start = time.perf_counter()
    for signature in sequence:
        forecast.observe(signature)
    each_us = (time.perf_counter() - start) / len(sequence) * 1e6
    array = np.asarray(sequence)
    again = np.all(array[2:] == 2 * array[1:-1] - array[:-2], axis=1).mean()
    grown = array[:-1].copy()
    grown[:, -1] += 1
    right, foreseen = forecast.right / len(sequence), forecast.foreseen / len(sequence)
    shares = (right, foreseen, again, np.all(array[1:] == grown, axis=1).mean())
    return [name, str(len(sequence)), *(f"{100 * share:.1f}" for share in shares), f"{each_us:.0f}"]


def _latencies(title: str, steps: int, make_feeds: MakeFeeds) -> Grid:
    grid = Grid(title, ["first time us", "foreseen us", "again us", "excess gone %", "wasted ms"])
    model = decoder(vocab=1000)
    for mode in ("host", "auto"):
        plain = asc.compile(model, mode=mode, threads=1)
        guided = asc.compile(model, mode=mode, threads=1, options=asc.Options(predict=True))
        warm = asc.compile(model, mode=mode, threads=1)
        for length in [*range(1, steps + 1)] * 2:
            warm.run(make_feeds(model, length))
        feeds = [make_feeds(model, length) for length in range(1, steps + 1)]
        first, foreseen, again = _times([plain, guided, warm], feeds)
        excess = median(first) - median(again)
        gone = f"{100 * (median(first) - median(foreseen)) / excess:.0f}" if excess > 0 else "-"
        wasted = f"{guided.stats()['ahead_wasted_ns'] / 1e6:.2f}"
        grid.rows.append([mode, *(f"{median(times):.0f}" for times in (first, foreseen, again)), gone, wasted])
        grid.notes.append(f"{mode}: {guided.explain().splitlines()[-1]}")
    return grid


def _times(exes: list[asc.Executable], feeds: list[Feeds]) -> list[list[float]]:
    """Microseconds of each step of each executable, step by step in turn."""
    times: list[list[float]] = [[] for _ in exes]
    for step, feed in enumerate(feeds):
        for i in np.roll(range(len(exes)), step):
            time.sleep(PAUSE_S)
            start = time.perf_counter_ns()
            exes[i].run(feed)
            times[i].append((time.perf_counter_ns() - start) / 1e3)
    return [of_one[WARM_UP:] for of_one in times]


if __name__ == "__main__":
    sys.exit(main(__doc__, {"foresight": measure}))
