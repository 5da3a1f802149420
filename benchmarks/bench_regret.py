"""What does "auto" cost over the mode that would have been best, had one known the shapes to come?

Each sequence of shapes is run by fresh executables of every mode, turn by turn, 50 runs with all that is paid at the
start: resolving, tilings, loading; compiling, which is the same for all, is not in it. Shapes come from traces of
serving (a small decoder's steps and prompts, scaled down), a static model, and sequences made to mislead.

How to read it: "regret" is auto's CPU time over that of the faster of host and sink mode, with the 95 % interval of the
median over rounds; at most 1.10 is the aim. "/ host" is the same over host mode: at most 1.05 where shapes mislead.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from statistics import median

import numpy as np
from command import main
from grid import Grid
from harness import Effort
from sequences import Sequence, sequences

import ascendsched as asc

MODES = ("host", "sink", "auto")
RUNS = 50
RESAMPLES = 1000


def measure(effort: Effort) -> Iterator[Grid]:
    """Yields one table of all sequences."""
    grid = Grid(f"{RUNS} runs from the start", ["host ms", "sink ms", "auto ms", "regret", "95 %", "/ host", "95 %"])
    for sequence in sequences(RUNS):
        times = _measure(sequence, 5 if effort.is_quick else 15)
        best = min(("host", "sink"), key=lambda mode: median(times[mode]))
        row = [sequence.name, *(f"{median(times[mode]):.2f}" for mode in MODES)]
        grid.rows.append(row + _ratio(times["auto"], times[best]) + _ratio(times["auto"], times["host"]))
    yield grid


def _measure(sequence: Sequence, rounds: int) -> dict[str, list[float]]:
    """CPU milliseconds of the whole sequence by mode, one per round; who begins changes."""
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    _run(sequence, "host")  # wakes the kernel libraries
    order = list(MODES)
    for _ in range(rounds):
        for mode in order:
            times[mode].append(_run(sequence, mode))
        order.append(order.pop(0))
    return times


def _run(sequence: Sequence, mode: str) -> float:
    exe = asc.compile(sequence.model, mode=mode, threads=1)
    gc.collect()
    gc.disable()
    begin = time.process_time_ns()
    for feeds in sequence.feeds:
        exe.run(feeds)
    spent = time.process_time_ns() - begin
    gc.enable()
    return spent / 1e6


def _ratio(first: list[float], second: list[float]) -> list[str]:
    """The median ratio of the pairs, and its 95 % interval by bootstrap."""
    ratios = np.asarray(first) / np.asarray(second)
    random = np.random.default_rng(0)
    medians = np.median(ratios[random.integers(0, len(ratios), (RESAMPLES, len(ratios)))], axis=1)
    return [f"{np.median(ratios):.2f}", f"{np.percentile(medians, 2.5):.2f}-{np.percentile(medians, 97.5):.2f}"]


if __name__ == "__main__":
    sys.exit(main(__doc__, {"regret": measure}))
