"""Predicts sink mode from host mode's recordings, and measures it in turn with them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from ascendsched.profile.profile import Profile

if TYPE_CHECKING:
    from ascendsched.executable import Executable

Feeds = Mapping[str, Any]

# Runs of one round: enough for a median, short enough that rounds take turns often.
MIN_RUNS, MAX_RUNS = 6, 60
ROUND_NS = 25_000_000
# Bound of one round's recording.
CAPACITY_BYTES = 32 << 20


@dataclass(frozen=True)
class Estimate:
    """A median over rounds with its 95 % confidence interval (99 % and less where there are few rounds: the range)."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Estimate:
        """Free of assumptions on the distribution: the interval lies between two of the values.

        The number of values below the median is binomial; the ranks come from its normal approximation.
        """
        ordered = sorted(values)
        count = len(ordered)
        reach = int(count / 2 - 0.98 * count**0.5)  # 1.96 times half the square root
        first = min(max(0, reach), (count - 1) // 2)
        return Estimate(median(ordered), ordered[first], ordered[count - 1 - first])

    def to_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return dict(self.__dict__)


@dataclass
class Experiment:
    """Host mode recorded, sink mode predicted and measured; times per run in us, one of each per round.

    Attributes
    ----------
    host_us, recorded_us : list
        Host mode without and with a recording.
    predicted_us, sink_us : list
        Sink mode as predicted from the round's recording, and as measured in the same round.
    replay_error_pct : list
        By how much the replay with nothing changed misses the recording.
    profile : Profile
        The recording of the round that took the median time.
    is_virtual : bool
        Whether times are the device's own, as recorded, and not the caller's; `host_us` is then empty.
    """

    in_flight: int
    runs: int
    is_virtual: bool = False
    host_us: list[float] = field(default_factory=list)
    recorded_us: list[float] = field(default_factory=list)
    predicted_us: list[float] = field(default_factory=list)
    sink_us: list[float] = field(default_factory=list)
    replay_error_pct: list[float] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)

    @property
    def profile(self) -> Profile:
        """The recording of the round that took the median time."""
        order = sorted(range(len(self.recorded_us)), key=lambda i: self.recorded_us[i])
        return self.profiles[order[len(order) // 2]]

    def ratio(self) -> Estimate:
        """Predicted by measured time, round by round, so that what disturbs both cancels."""
        return Estimate.of([p / m for p, m in zip(self.predicted_us, self.sink_us, strict=True)])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        values: dict[str, Any] = {"in_flight": self.in_flight, "runs": self.runs}
        values["rounds"], values["is_virtual"] = len(self.recorded_us), self.is_virtual
        values["host_us"] = None if self.is_virtual else Estimate.of(self.host_us).to_dict()
        values["host_recorded_us"] = Estimate.of(self.recorded_us).to_dict()
        if self.sink_us:
            values["sink_predicted_us"] = Estimate.of(self.predicted_us).to_dict()
            values["sink_measured_us"] = Estimate.of(self.sink_us).to_dict()
            values["predicted_by_measured"] = self.ratio().to_dict()
            values["replay_error_pct"] = median(self.replay_error_pct)
        return values


def run_rounds(
    host: Executable,
    sink: Executable | None,
    feeds: Feeds,
    rounds: int,
    in_flight: int,
    show: Callable[[str], None] = lambda message: None,
) -> Experiment:
    """Runs both executables in turn.

    Parameters
    ----------
    host, sink
        The same model in host mode and in sink mode; without `sink`, nothing is predicted.
    feeds
        Inputs of every run.
    rounds
        Number of turns.
    in_flight
        How many runs are launched before the first of them is waited for.
    show
        Told what is being done.
    """
    for executable in (host, sink):
        if executable is not None:
            run_times(executable, feeds, MIN_RUNS, in_flight)  # tilings, packed constants, schedules
    usual = median(run_times(host, feeds, MIN_RUNS, in_flight))
    runs = int(min(MAX_RUNS, max(MIN_RUNS, ROUND_NS // max(1, usual))))
    if host.has_virtual_time:
        return _run_virtual(host, sink, feeds, in_flight)
    experiment = Experiment(in_flight, runs)
    for number in range(rounds):
        show(f"round {number + 1} of {rounds}")
        experiment.host_us.append(median(run_times(host, feeds, runs, in_flight)) / 1e3)
        with host.profile(CAPACITY_BYTES) as profile:
            experiment.recorded_us.append(median(run_times(host, feeds, runs, in_flight)) / 1e3)
        experiment.profiles.append(profile)
        if sink is not None:
            experiment.sink_us.append(median(run_times(sink, feeds, runs, in_flight)) / 1e3)
    if sink is not None:
        _predict(experiment)
    return experiment


def _run_virtual(host: Executable, sink: Executable | None, feeds: Feeds, in_flight: int) -> Experiment:
    """One round in the device's own time: the caller's clock shows none of it, and every further round is the same."""
    experiment = Experiment(in_flight, MAX_RUNS, is_virtual=True)
    for executable, times in ((host, experiment.recorded_us), (sink, experiment.sink_us)):
        if executable is None:
            continue
        with executable.profile(CAPACITY_BYTES) as profile:
            run_times(executable, feeds, MAX_RUNS, in_flight)
        times.append(profile.what_if().measured_us)
        if executable is host:
            experiment.profiles.append(profile)
    if sink is not None:
        _predict(experiment)
    return experiment


def _predict(experiment: Experiment) -> None:
    for profile, recorded in zip(experiment.profiles, experiment.recorded_us, strict=True):
        found = profile.what_if()
        sink = found.prediction("sink")
        # A model of one task is launched once in either mode.
        experiment.predicted_us.append(recorded if sink is None else sink.us)
        experiment.replay_error_pct.append(found.replay_error_pct)


def run_times(executable: Executable, feeds: Feeds, runs: int, in_flight: int) -> list[int]:
    """Nanoseconds from the end of one run to the end of the next, as its caller sees them."""
    waiting: deque[Any] = deque()
    ends = []
    try:
        for _ in range(runs + 1):
            waiting.append(executable.run_async(feeds))
            if len(waiting) >= in_flight:
                waiting.popleft().wait()
                ends.append(time.perf_counter_ns())
    finally:
        while waiting:
            waiting.popleft().wait()
            ends.append(time.perf_counter_ns())
    return [after - before for before, after in pairwise(ends)]
