"""Two ways to run a model on the same shapes, turn by turn: which is faster, and how sure is it?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 400
Feeds = dict[str, np.ndarray[Any, Any]]
Call = Callable[[Feeds], object]


@dataclass(frozen=True)
class Timing:
    """Latencies of the runs of one way, in ms."""

    p50_ms: float
    p99_ms: float
    mean_ms: float
    runs: int

    @staticmethod
    def of(times_ns: Sequence[int]) -> Timing:
        """From the time of each run."""
        ms = np.asarray(times_ns, np.float64) / 1e6
        return Timing(float(np.percentile(ms, 50)), float(np.percentile(ms, 99)), float(ms.mean()), len(ms))


@dataclass(frozen=True)
class Race:
    """What came out: `ratio` is the second one's time over the first one's, with its 95 % confidence interval."""

    first: Timing
    second: Timing
    ratio: float
    low: float
    high: float


def race(first: Call, second: Call, feeds: Sequence[Feeds], budget_s: float) -> Race:
    """Runs both on all `feeds`, again and again until the time is up, at least once.

    For each of the feeds, who begins alternates from pass to pass: whoever is second finds warm what the first read.
    """
    times: tuple[list[int], list[int]] = ([], [])
    end = time.perf_counter() + budget_s
    turn = 0
    while turn < len(feeds) or time.perf_counter() < end:
        passes, place = divmod(turn, len(feeds))
        feed = feeds[place]
        order = ((0, first), (1, second)) if (passes + place) % 2 else ((1, second), (0, first))
        for side, call in order:
            start = time.perf_counter_ns()
            call(feed)
            times[side].append(time.perf_counter_ns() - start)
        turn += 1
        if turn >= 8 and time.perf_counter() > end + budget_s:
            break  # even one pass takes too long
    low, high = ratio_interval(times[0], times[1])
    return Race(Timing.of(times[0]), Timing.of(times[1]), _ratio(*map(np.asarray, times)), low, high)


def ratio_interval(first: Sequence[int], second: Sequence[int], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of `second` over `first`, from paired runs, by bootstrap."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    random = np.random.default_rng(seed)
    ratios = []
    for _ in range(RESAMPLES):
        chosen = random.integers(0, len(a), len(a))
        ratios.append(_ratio(a[chosen], b[chosen]))
    return float(np.percentile(ratios, 2.5)), float(np.percentile(ratios, 97.5))


def _ratio(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    """Of the sums, without the hundredth of the pairs in which anything took longest: there others ran in between."""
    worst = np.maximum(first / np.median(first), second / np.median(second))
    kept = worst <= np.percentile(worst, 99)
    return float(second[kept].sum() / first[kept].sum())
