"""Integrity checks: what in a profile limits the trust in what is read from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascendsched.profile.gaps import CLOCK_TOLERANCE_NS, Gaps
from ascendsched.profile.spans import total, union
from ascendsched.profile.timeline import COMMUNICATION, STAGE_NUMBER, Device, Rank

# Shares of the device's entries from which a check lowers the confidence by one step, and by two.
SHARE_LOWERS = 0.05
SHARE_LOWERS_TWICE = 0.25
FEW_ACTIVITIES = 50
# Entries of one stream that overlap by more than a clock's error were stamped by a clock that jumped.
OVERLAP_NS = 1_000
PROFILER_SHARE = 0.01
# One gap of this length that makes up nearly all of the window is a pause of the program, or a stamp of another clock.
LONG_GAP_NS = 60_000_000_000
LONG_GAP_SHARE = 0.9


@dataclass(frozen=True)
class Check:
    """One finding: its name, the count behind it, a sentence, and by how many steps it lowers the confidence."""

    name: str
    count: int
    sentence: str
    lowers: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"name": self.name, "count": self.count, "sentence": self.sentence}


def check_rank(rank: Rank, device: Device | None, gaps: Gaps | None) -> tuple[Check, ...]:
    """Everything that was found, in order of importance."""
    found = list(_device_checks(rank, device, gaps)) if device is not None and gaps is not None else []
    found += [Check("reading", 1, note, 1) for note in rank.notes]
    if rank.extra.get("has_stacks"):
        cost = "call stacks were collected, which slows the host: its share is an upper bound; record once without"
        found.append(Check("call_stacks", 1, cost))
    return tuple(found)


def _lowers(count: int, of: int) -> int:
    share = count / max(1, of)
    return int(share > SHARE_LOWERS) + int(share > SHARE_LOWERS_TWICE)


def _device_checks(rank: Rank, device: Device, gaps: Gaps) -> Iterator[Check]:
    work = device.work
    count = len(work)
    if count < FEW_ACTIVITIES:
        yield Check("few_activities", count, f"only {count} device activities: one gap can decide", 1)
    if gaps.unlaunched:
        text = f"device activities without launch record: {gaps.unlaunched} of {count}; gaps before them have no cause"
        yield Check("missing_launch_records", gaps.unlaunched, text, _lowers(gaps.unlaunched, count))
    if gaps.early_starts:
        text = f"device activities that start before their launch call: {gaps.early_starts}; the clocks disagree"
        yield Check("negative_launch_to_start", gaps.early_starts, text, _lowers(gaps.early_starts, count))
    inside = _unfinished_launches(rank, device)
    if inside:
        text = f"device activities that start before their launch call returns: {inside}; their launch delay is unknown"
        yield Check("start_within_launch", inside, text)
    jumps = _overlaps(device)
    if jumps:
        text = f"activities that overlap others of their stream: {jumps}; the clock jumped, or streams were merged"
        yield Check("clock_jumps", jumps, text, _lowers(jumps, count))
    longest = int(gaps.length.max(initial=0))
    if longest > max(LONG_GAP_NS, LONG_GAP_SHARE * gaps.window_ns):
        text = f"one gap of {longest / 1e9:.0f} s is nearly the whole window: the program paused, or a clock jumped"
        yield Check("clock_jumps", 1, text, 2)
    outside = _outside_steps(rank, device)
    if outside:
        text = f"device activities that run after the end of their step: {outside}; steps are cut by launch"
        yield Check("steps_cut", outside, text)
    overhead = rank.host.take(rank.host.stage == STAGE_NUMBER["profiler"])
    cost = total(union(overhead.start, overhead.end))
    if cost > PROFILER_SHARE * max(1, gaps.window_ns):
        share = 100 * cost / max(1, gaps.window_ns)
        text = f"the profiler itself took {cost / 1e3:.0f} us ({share:.1f} % of the window)"
        yield Check("profiler_overhead", len(overhead), text)


def _unfinished_launches(rank: Rank, device: Device) -> int:
    work = device.work
    linked = work.take(work.launch >= 0)
    if not len(linked):
        return 0
    begun, returned = rank.launches.start[linked.launch], rank.launches.end[linked.launch]
    return int(np.count_nonzero((returned > linked.start) & (begun <= linked.start + CLOCK_TOLERANCE_NS)))


def _overlaps(device: Device) -> int:
    work = device.work.take(device.work.kind != COMMUNICATION)
    order = np.lexsort((work.start, work.stream))
    start, end, stream = work.start[order], work.end[order], work.stream[order]
    return int(np.count_nonzero((stream[1:] == stream[:-1]) & (start[1:] < end[:-1] - OVERLAP_NS)))


def _outside_steps(rank: Rank, device: Device) -> int:
    work = device.work.take(device.work.launch >= 0)
    if not rank.steps or not len(work):
        return 0
    begun = rank.launches.start[work.launch]
    first = np.array([step.start for step in rank.steps])
    last = np.array([step.end for step in rank.steps])
    order = np.argsort(first)
    place = np.maximum(np.searchsorted(first[order], begun, side="right") - 1, 0)
    within = (begun >= first[order][place]) & (begun < last[order][place])
    return int(np.count_nonzero(within & (work.end > last[order][place])))
