"""One row of the demo's table: how something is checked, timed and profiled."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.errors import AscendSchedError
from ascendsched.profile import Profile

#: Larger errors than this share of the reference's largest value stop the demo: a wrong result has no speed.
TOLERANCE = 1e-3

# Where host and device overlap, a preempted thread shows as idle time: the pass of median idle time counts.
OVERLAPPED_PASSES = 3

Work = Callable[[int], None]  # does one block of `count` units


@dataclass
class Row:
    """What is measured of one way to run one model.

    Attributes
    ----------
    model, label : str
        Which model, and how it runs.
    unit : str
        What one unit is: "token" or "run".
    work : callable
        Does the next units of work, as timed.
    overlapped : callable, optional
        The same through asynchronous runs, so that host and device may overlap; profiled only.
    executable : object, optional
        Whose statistics and profile belong to the row; none for other runtimes.
    units_per_call : int
        Units that `work(1)` does.
    """

    model: str
    label: str
    unit: str
    work: Work
    overlapped: Work | None = None
    executable: Any = None
    units_per_call: int = 1
    max_error: float | None = None  # none: the row is the reference
    times_us: list[float] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    shares: Profile | None = None
    host_share_pct: float = 0.0
    overlap: Profile | None = None
    trace: str | None = None

    @property
    def name(self) -> str:
        """Model and label."""
        return f"{self.model}, {self.label}"

    @property
    def us(self) -> float:
        """Median microseconds per unit."""
        return median(self.times_us)

    def check(self, results: NDArray[Any], reference: NDArray[Any]) -> None:
        """Stores the largest absolute error.

        Raises
        ------
        AscendSchedError
            Where it is beyond the tolerance: the demo times no wrong result.
        """
        error = float(np.abs(results.astype(np.float64) - reference).max())
        limit = TOLERANCE * max(1.0, float(np.abs(reference).max()))
        # Written so that a NaN fails too.
        if not error <= limit:
            raise AscendSchedError(
                f"[demo] {self.name}: error {error:.2e} against the reference is above {limit:.2e}; "
                "please report it with the output of `ascendsched info`"
            )
        self.max_error = error

    def time(self, calls: int) -> None:
        """Times `calls` units of work one by one, and counts what the caches did meanwhile."""
        before = self._stats()
        for _ in range(calls):
            begin = time.perf_counter_ns()
            self.work(1)
            self.times_us.append((time.perf_counter_ns() - begin) / 1e3 / self.units_per_call)
        for key, value in self._stats().items():
            self.counters[key] = self.counters.get(key, 0) + value - before.get(key, 0)

    def profile(self, calls: int) -> None:
        """Two profiled passes: as timed, for the shares; asynchronously, for the device's idle time."""
        if self.executable is None:
            return
        walls = []
        profile: Profile
        with self.executable.profile() as profile:
            for _ in range(calls):
                begin = time.perf_counter_ns()
                self.work(1)
                walls.append(time.perf_counter_ns() - begin)
        self.shares = profile
        self.host_share_pct = host_share(profile, median(walls) / self.units_per_call)
        if self.overlapped is not None:
            self.overlapped(1)  # the executor's thread and its first wake-up
            passes = []
            for _ in range(OVERLAPPED_PASSES):
                with self.executable.profile() as profile:
                    self.overlapped(calls)
                passes.append(profile)
            passes.sort(key=lambda p: p.verdict.figures.get("idle_pct", 0.0))
            self.overlap = passes[OVERLAPPED_PASSES // 2]

    @property
    def judged(self) -> Profile | None:
        """The profile whose verdict counts: the overlapped one where host and device did overlap."""
        if self.overlap is not None and self.overlap.verdict.verdict != "insufficient_evidence":
            return self.overlap
        return self.shares

    @property
    def kernel_us(self) -> float:
        """Kernel time per unit: the rest of the median."""
        return self.us * (1 - self.host_share_pct / 100)

    @property
    def hit_pct(self) -> float | None:
        """While timed: schedules that were found, or without look-ups of any, nodes whose tiling was known."""
        count = self.counters.get
        hits, misses = count("schedule_hits", 0), count("schedule_misses", 0)
        if not hits + misses:
            hits = count("nodes_skipped", 0) + count("twins", 0) + count("tiling_hits", 0)
            # Without a tiling cache nothing is looked up: every resolved node is a miss.
            misses = count("tiling_misses", 0) or (0 if count("tiling_hits", 0) else count("nodes_resolved", 0))
        return 100.0 * hits / (hits + misses) if hits + misses else None

    @property
    def load_ms(self) -> float | None:
        """What loading schedules on the device cost so far; None where nothing was loaded."""
        load_ns = self._stats().get("load_ns", 0)
        return load_ns / 1e6 if load_ns else None

    def _stats(self) -> Mapping[str, int]:
        stats: Mapping[str, int] = {} if self.executable is None else self.executable.stats()
        return stats


def host_share(profile: Profile, wall_ns: float) -> float:
    """Percent of a run that is not kernels, Python's part included; of medians, which a preempted run cannot move."""
    device = profile.recording.device
    numbers, index = np.unique(device.run, return_inverse=True)
    kernel_ns = np.bincount(index, weights=device.end - device.start, minlength=len(numbers))
    return max(0.0, 100.0 * (1 - float(np.median(kernel_ns)) / wall_ns)) if len(kernel_ns) else 100.0


def await_run(run: Any) -> Any:
    """The results of a run in flight, as soon as they are there.

    Polls: a parked waiter would be woken by the device's thread, which costs that thread more than a small model does.
    """
    while not run.is_done:
        os.sched_yield()
    return run.wait()


def time_in_turn(rows: list[Row], calls: int, blocks: int) -> None:
    """Times all rows in turn, a block each, so that the machine's mood is the same for all."""
    for _ in range(blocks):
        for row in rows:
            row.time(max(1, calls // blocks))
