"""Ranks beside each other: who arrives last at each collective, by how much, and what it did meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascendsched.profile.diagnosis import Diagnosis
from ascendsched.profile.gaps import Gaps
from ascendsched.profile.spans import Ints, total, union
from ascendsched.profile.timeline import COMMUNICATION, KERNEL, Activities, Device, overlap_ns

# Ranks whose collectives end further apart than this, in the median, do not share a clock.
SAME_CLOCK_NS = 2_000_000
# Arrivals closer than this are no skew: collectives need about that long to meet.
MIN_SKEW_NS = 20_000


@dataclass(frozen=True)
class Arrival:
    """One collective: the rank that came last, how long the first one waited for it, and why it was late."""

    index: int
    name: str
    late_rank: str
    skew_ns: int
    stage: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "index": self.index,
            "name": self.name,
            "late_rank": self.late_rank,
            "dispatch_skew_us": self.skew_ns / 1e3,
            "stage": self.stage,
        }


@dataclass(frozen=True)
class Skew:
    """All collectives of the ranks; `waited_ns` is the summed skew."""

    arrivals: tuple[Arrival, ...]
    clock: str
    notes: tuple[str, ...]

    @property
    def waited_ns(self) -> int:
        """Time for which the first rank waited for the last, over all collectives."""
        return sum(arrival.skew_ns for arrival in self.arrivals)

    def late_rank(self) -> tuple[str, str, float] | None:
        """The rank that the others waited for longest, its main stage, and its share of all waiting in percent."""
        weight: Counter[str] = Counter()
        stages: Counter[tuple[str, str]] = Counter()
        for arrival in self.arrivals:
            if arrival.skew_ns >= MIN_SKEW_NS:
                weight[arrival.late_rank] += arrival.skew_ns
                stages[(arrival.late_rank, arrival.stage)] += arrival.skew_ns
        if not weight:
            return None
        name, waited = weight.most_common(1)[0]
        stage = max((n for (rank, stage), n in stages.items() if rank == name), default=0)
        main = next(key[1] for key, n in stages.items() if key[0] == name and n == stage)
        return name, main, 100 * waited / max(1, self.waited_ns)


def compare_ranks(diagnoses: Sequence[Diagnosis]) -> Skew | None:
    """Compares the ranks' collectives in order; None where fewer than two ranks have any."""
    ranks = [d for d in diagnoses if d.device is not None and len(_collectives(d.device))]
    ranks = [d for d in ranks if not d.rank.extra.get("is_repeated")]
    if len(ranks) < 2:
        return None
    rows = [_collectives(d.device) for d in ranks if d.device is not None]
    count = min(len(row) for row in rows)
    notes = []
    if len({len(row) for row in rows}) > 1:
        counts = ", ".join(f"{d.rank.label}: {len(row)}" for d, row in zip(ranks, rows, strict=True))
        notes.append(f"the ranks recorded different numbers of collectives ({counts}); the first {count} are compared")
    origins = np.array([[d.rank.origin_ns] for d in ranks], dtype=np.int64)
    start = np.stack([row.start[:count] for row in rows]) + origins
    end = np.stack([row.end[:count] for row in rows]) + origins
    is_shared = bool(np.median(end.max(axis=0) - end.min(axis=0)) <= SAME_CLOCK_NS)
    # Without a common clock: all ranks leave a collective together, so that who stays shortest has come last.
    arrival = start - start.min() if is_shared else -(end - start)
    clock = "shared clock" if is_shared else "no shared clock: arrivals follow from how long each rank stayed"
    late, first = arrival.argmax(axis=0), arrival.argmin(axis=0)
    # When each rank's own record begins after the first one's: what it did before is not recorded.
    begun = [int(origin) - int(origins.min()) if is_shared else 0 for origin in origins[:, 0]]
    arrivals = []
    for i in range(count):
        one, other = int(late[i]), int(first[i])
        name = ranks[one].rank.names[int(rows[one].name[i])]
        skew = int(arrival[one, i] - arrival[other, i])
        stage = "none" if skew < MIN_SKEW_NS else _why_late([(ranks[n], rows[n], begun[n]) for n in (one, other)], i)
        arrivals.append(Arrival(i, name, ranks[one].rank.label, skew, stage))
    return Skew(tuple(arrivals), clock, tuple(notes))


def _collectives(device: Device) -> Activities:
    return device.work.of_kinds(COMMUNICATION)


def _why_late(pair: Sequence[tuple[Diagnosis, Activities, int]], index: int) -> str:
    """What the late rank spent more time on than the first one since the last collective (or its first entry)."""
    spent = []
    for diagnosis, row, unrecorded in pair:
        device, gaps = diagnosis.device, diagnosis.gaps
        if device is None or gaps is None:
            return "unknown"
        begin = int(row.end[index - 1]) if index else 0
        spent.append(_spent(diagnosis, device, gaps, begin, int(row.start[index])))
        spent[-1]["host_late.before_recording"] = 0 if index else unrecorded
    more = {name: spent[0][name] - spent[1].get(name, 0) for name in spent[0]}
    return max(more, key=lambda name: more[name])


def _spent(diagnosis: Diagnosis, device: Device, gaps: Gaps, begin: int, end: int) -> dict[str, int]:
    """Time in [begin, end) by what the device computed or why it idled."""
    lower, upper = np.array([begin]), np.array([max(begin, end)])
    work = device.work
    computing = work.of_kinds(KERNEL).covered()
    spent = {"compute": int(overlap_ns(computing, lower, upper)[0])}
    inside = (gaps.start >= begin) & (gaps.end <= end)
    spent |= {name: int(part[inside].sum()) for name, part in gaps.parts.items()}
    before = max(0, min(int(work.start[0]), end) - begin)
    if before:
        spent["host_late.framework"] = spent.get("host_late.framework", 0) + before
        _split_start(diagnosis, spent, begin, begin + before)
    return spent


def _split_start(diagnosis: Diagnosis, spent: dict[str, int], begin: int, end: int) -> None:
    """Takes out of the time before a device's first entry what named host stages explain."""
    host = diagnosis.rank.host
    for stage, cause in (("compile", "compile"), ("sync", "sync"), ("alloc", "host_late.alloc")):
        spans = host.of_stages(stage)
        bounds: tuple[Ints, Ints] = union(spans.start, spans.end)
        time = int(overlap_ns(bounds, np.array([begin]), np.array([end]))[0]) if total(bounds) else 0
        spent[cause] = spent.get(cause, 0) + time
        spent["host_late.framework"] -= time
