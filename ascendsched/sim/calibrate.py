"""Costs of a host and its device from a recorded profile, and how well they predict a recording.

What is fitted are medians and means of what the profile holds; what it does not hold keeps the figure of the profile
that one starts from. The check replays a recording: kernels keep their recorded durations, and the host its waits for
the device and its pauses, in which it did nothing that a scheduler could be charged for; all else is predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.profile.spans import Ints, covered_before, union
from ascendsched.profile.timeline import STAGE_NUMBER, WORK, Rank
from ascendsched.sim.cost_profile import CostProfile

MIN_LAUNCHES = 8
#: Starts that are off by more of the span are explained.
LIMIT = 0.1
# A host that does not launch for so long is loading data or running something else than the model.
PAUSE_NS = 1_000_000
SHARES = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class Launched:
    """Kernels in the order of their launches; times in ns. `waited`: of the host for the device before the launch."""

    name: Ints
    start: Ints
    end: Ints
    launch_start: Ints
    launch_end: Ints
    waited: Ints
    stream: Ints
    is_first: np.ndarray[tuple[int], np.dtype[np.bool_]]  # entry of its launch call

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Host:
    """What the host was found to take, in ns: `period` from one launch's end to the next one's start, by kernel."""

    launch: float
    latency: float
    queued_gap: float
    period: float
    period_of: dict[str, float]


@dataclass(frozen=True)
class Check:
    """Errors of predicted kernel starts, as shares of the recorded span: median and 90th percentile; and its length.

    `reason`: why they are above `LIMIT`; empty where they are not.
    """

    kernels: int
    median: float
    p90: float
    recorded_ns: int
    predicted_ns: int
    reason: str = ""


def launched_kernels(rank: Rank) -> Launched:
    """The busiest device's work with its launches.

    Raises
    ------
    AscendSchedError
        Where the profile has too few of them.
    """
    device = rank.busiest()
    work = None if device is None else device.activities.of_kinds(*WORK)
    work = None if work is None else work.take(work.launch >= 0)
    if work is None or len(work) < MIN_LAUNCHES:
        raise AscendSchedError(
            f"[simulate] {rank.source}: fewer than {MIN_LAUNCHES} launches that started work; record the host too"
        )
    threads = rank.launches.thread[work.launch]
    main = np.bincount(threads).argmax()
    work = work.take(threads == main)
    work = work.take(np.lexsort((work.start, work.launch)))
    launch_start, launch_end = rank.launches.start[work.launch], rank.launches.end[work.launch]
    sync = rank.host.take((rank.host.stage == STAGE_NUMBER["sync"]) & (rank.host.thread == main))
    before = covered_before(union(sync.start, sync.end), launch_start)
    waited = np.diff(before, prepend=before[:1])
    is_first = np.diff(work.launch, prepend=-1) != 0
    return Launched(work.name, work.start, work.end, launch_start, launch_end, waited, work.stream, is_first)


def _periods(work: Launched) -> Ints:
    """Host time before each launch since the one before, waits excluded; 0 where the same call started both."""
    period = work.launch_start - np.concatenate([work.launch_start[:1], work.launch_end[:-1]]) - work.waited
    return np.where(work.is_first, np.maximum(0, period), 0)


def fit_host(rank: Rank) -> Host:
    """Fits the host's costs to one rank of a profile."""
    work = launched_kernels(rank)
    period = _periods(work)
    counted = work.is_first & (period < PAUSE_NS)
    counted[0] = False
    free = np.maximum.accumulate(np.concatenate([[0], work.end[:-1]]))
    was_idle = (work.launch_end > free) & work.is_first
    delay = (work.start - work.launch_start)[was_idle]
    gap = (work.start - free)[(work.launch_end < free) & (work.start >= free)]
    periods_of: dict[str, list[int]] = {}
    for name, ns in zip(work.name[counted].tolist(), period[counted].tolist(), strict=True):
        periods_of.setdefault(rank.names[name], []).append(ns)
    return Host(
        launch=_median((work.launch_end - work.launch_start)[work.is_first]),
        latency=max(0.0, float(np.quantile(delay, 0.25))) if len(delay) else 0.0,  # the rest waits for other streams
        queued_gap=_median(gap[gap < 30_000]),
        period=float(period[counted].mean()) if counted.any() else 0.0,
        period_of={name: float(np.mean(all_of)) for name, all_of in periods_of.items()},
    )


def check_host(host: Host, rank: Rank) -> Check:
    """Predicts when each kernel of a recording starts, and compares."""
    work = launched_kernels(rank)
    period = _periods(work)
    time = int(work.launch_start[0])
    free = int(work.start[0])
    drift = 0
    predicted = np.empty(len(work), np.int64)
    launched = time
    free_of: dict[int, int] = {}
    for i in range(len(work)):
        if work.is_first[i]:
            recorded = int(period[i])
            if i == 0 or recorded >= PAUSE_NS:
                time += recorded if i else 0
            else:
                time += round(host.period_of.get(rank.names[work.name[i]], host.period))
            if work.waited[i]:  # the host went on when the device had drained, as it did in the recording
                was_drained = int(work.end[:i].max()) <= int(work.launch_start[i]) + PAUSE_NS
                time = max(time, free) if was_drained else time + int(work.waited[i])
            launched = time
            time += round(host.launch)
        stream = int(work.stream[i])
        ready = free_of.get(stream, 0)
        start = max(ready + round(host.queued_gap) if ready else 0, launched + round(host.latency))
        predicted[i] = start
        free_of[stream] = start + int(work.end[i] - work.start[i])
        free = max(free, free_of[stream])
    drift = int(work.start[0] - predicted[0])
    length = max(1, int(work.end.max() - work.start[0]))
    error = np.abs(predicted + drift - work.start) / length
    total = free + drift - int(work.start[0])
    median, p90 = float(np.median(error)), float(np.quantile(error, 0.9))
    return Check(len(work), median, p90, length, total, _reason(host, work, rank) if p90 > LIMIT else "")


def _reason(host: Host, work: Launched, rank: Rank) -> str:
    """What a recording holds that a replay of its host cannot know, or the fit does not."""
    streams = len(np.unique(work.stream))
    unknown = np.isin(work.name, [i for i, name in enumerate(rank.names) if name not in host.period_of]).mean()
    if streams > 1:
        return f"its kernels run on {streams} streams, and the events between them are not recorded"
    if unknown > 0.25:
        return f"{100 * unknown:.0f} % of its kernels are none of those that the host was fitted to"
    if work.waited.any():
        return f"its host waits for the device {np.count_nonzero(work.waited)} times, for results that it goes on from"
    return "its host takes other times for the same kernels than the one that was fitted"


def fit_profile(rank: Rank, base: CostProfile) -> CostProfile:
    """A cost profile with what the recording holds in place of the base's figures."""
    host = fit_host(rank)
    costs: dict[str, float] = {
        "launch_us": host.launch / 1e3,
        "latency_us": max(0.0, host.latency - host.launch) / 1e3,
        "queued_gap_us": host.queued_gap / 1e3,
    }
    spent = 0.0
    for stage, cost in (("infer_shape", "infer_shape_us"), ("tiling", "tiling_us"), ("alloc", "alloc_us")):
        spans = rank.host.of_stages(stage)
        if len(spans) >= MIN_LAUNCHES:
            costs[cost] = _median(spans.end - spans.start) / 1e3
            spent += costs[cost] * len(spans) / max(1, len(launched_kernels(rank)))
    costs["framework_us"] = max(0.0, host.period / 1e3 - spent)
    fitted = base.replaced(**{name: round(value, 3) for name, value in costs.items()})
    sources = {**base.sources, **dict.fromkeys(costs, f"fitted to {rank.source}")}
    ranges = {**base.ranges, **{name: (fitted.costs[name], fitted.costs[name]) for name in costs}}
    return CostProfile(
        "calibrated",
        f"{base.description}; host fitted to {rank.source}",
        fitted.costs,
        ranges,
        sources,
        jitter_of(rank) or base.jitter,
    )


def jitter_of(rank: Rank) -> tuple[tuple[float, float], ...]:
    """How launch calls vary around their median, as `CostProfile.jitter`; empty where there are too few."""
    work = launched_kernels(rank)
    taken = (work.launch_end - work.launch_start)[work.is_first]
    if len(taken) < 4 * MIN_LAUNCHES or np.median(taken) <= 0:
        return ()
    factors = np.quantile(np.maximum(taken, 1), SHARES) / np.median(taken)
    return tuple((share, round(float(factor), 4)) for share, factor in zip(SHARES, factors, strict=True))


def _median(values: Ints) -> float:
    return float(np.median(values)) if len(values) else 0.0
