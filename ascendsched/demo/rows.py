"""One row of the demo's table: how something is checked, timed and profiled."""

from __future__ import annotations

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
    shares_wall_ns: int = 0
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
        begin = time.perf_counter_ns()
        self.shares = self._record(self.work, calls)
        self.shares_wall_ns = time.perf_counter_ns() - begin
        if self.overlapped is not None:
            self.overlapped(1)  # the executor's thread and its first wake-up
            self.overlap = self._record(self.overlapped, calls)

    @property
    def judged(self) -> Profile | None:
        """The profile whose verdict counts: the overlapped one where host and device did overlap."""
        if self.overlap is not None and self.overlap.verdict.verdict != "insufficient_evidence":
            return self.overlap
        return self.shares

    @property
    def host_share_pct(self) -> float:
        """What is not kernels in a run, Python's part included, run as it is timed; 0 where nothing was profiled."""
        if self.shares is None:
            return 0.0
        return max(0.0, 100.0 * (1 - self.shares.verdict.figures["busy_ns"] / self.shares_wall_ns))

    @property
    def kernel_us(self) -> float:
        """Kernel time per unit: the rest of the median."""
        return self.us * (1 - self.host_share_pct / 100)

    @property
    def cache_hit_pct(self) -> float | None:
        """Hits while timed, of the schedule cache where it was asked, else of the tiling cache; None: neither was."""
        for cache in ("schedule", "tiling"):
            hits, misses = (self.counters.get(f"{cache}_{what}", 0) for what in ("hits", "misses"))
            if hits + misses:
                return 100.0 * hits / (hits + misses)
        return None

    @property
    def load_ms(self) -> float | None:
        """What loading schedules on the device cost so far; None where nothing was loaded."""
        load_ns = self._stats().get("load_ns", 0)
        return load_ns / 1e6 if load_ns else None

    def _stats(self) -> Mapping[str, int]:
        stats: Mapping[str, int] = {} if self.executable is None else self.executable.stats()
        return stats

    def _record(self, work: Work, calls: int) -> Profile:
        profile: Profile
        with self.executable.profile() as profile:
            work(calls)
        return profile


def time_in_turn(rows: list[Row], calls: int, blocks: int) -> None:
    """Times all rows in turn, a block each, so that the machine's mood is the same for all."""
    for _ in range(blocks):
        for row in rows:
            row.time(max(1, calls // blocks))
