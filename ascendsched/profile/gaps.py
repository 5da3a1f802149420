"""Why an imported device idled: each gap between its entries, with the share of every cause in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascendsched.profile.idle import CAUSES as OWN_CAUSES
from ascendsched.profile.spans import Ints, Spans, innermost, total, union
from ascendsched.profile.timeline import (
    HOST_STAGES,
    STAGE_NUMBER,
    Activities,
    Device,
    HostSpans,
    Interval,
    Launches,
    Rank,
    overlap_ns,
)

#: The causes of a recording, and the way of a launch that came late to its device, which counts as the host's too.
CAUSES = (*OWN_CAUSES[:5], "host_late.in_flight", *OWN_CAUSES[5:])

#: Causes in which the launch call began only after the device had drained.
HOST_CAUSES = (*(name for name in CAUSES if name.startswith("host_late")), "sync", "compile", "no_work")

# A profiler matches host and device clocks to about this: a launch this close to the drain is not earlier than it.
CLOCK_TOLERANCE_NS = 150
# A gap before work that was already queued: up to this long, hand-overs between entries of any system explain it.
QUEUED_SHORT_NS = 30_000

CAUSE_OF_STAGE = {
    "infer_shape": "host_late.infer_shape",
    "tiling": "host_late.tiling",
    "alloc": "host_late.alloc",
    "launch": "host_late.launch",
    "compile": "compile",
    "sync": "sync",
    "queue_full": "queue_full",
}


@dataclass(frozen=True)
class Gaps:
    """The device's idle intervals, in order.

    Attributes
    ----------
    start, end : array
        In ns.
    before, after : array
        Rows of `device.work`: the entry that ran last, and the one that ends the gap.
    parts : dict
        Cause to ns in each gap; over the causes they sum to the gaps' lengths.
    blocking : array
        Row of the rank's host spans: the synchronising call that let the device drain, or -1.
    window_ns : int
        From the start of the device's first entry to the end of its last.
    early_starts : int
        Entries that began before their launch call did: clocks disagree.
    unlaunched : int
        Entries without a launch record.
    """

    start: Ints
    end: Ints
    before: Ints
    after: Ints
    parts: dict[str, Ints]
    blocking: Ints
    window_ns: int
    early_starts: int
    unlaunched: int

    @property
    def length(self) -> Ints:
        """Length of each gap in ns."""
        return self.end - self.start

    def causes(self) -> dict[str, int]:
        """Idle time in ns by cause, over all gaps."""
        return {name: int(part.sum()) for name, part in self.parts.items()}

    def main_causes(self) -> list[str]:
        """The largest cause of each gap."""
        names = list(self.parts)
        table = np.stack([self.parts[name] for name in names])
        return [names[i] for i in np.argmax(table, axis=0).tolist()]


def find_gaps(rank: Rank, device: Device) -> Gaps:
    """Splits a device's idle time by cause.

    A gap ends with an entry. The launch call of that entry decides: begun after the device had drained, the host was
    late, and the time until the call is split by what the launching thread did; still going on, the launch was in
    flight; over, the entry was queued: inside a captured graph, after a short hand-over, or behind a dependency.
    """
    work, launches = device.work, rank.launches
    busy = work.covered()
    start, end = busy[1][:-1], busy[0][1:]
    after = np.searchsorted(work.start, end, side="left")
    before = _reached_furthest(work)[after - 1] if len(after) else after
    row = work.launch[after]
    has_launch = row >= 0
    call_start, call_end, is_graph = _calls(launches, row)
    late = has_launch & (call_start >= start - CLOCK_TOLERANCE_NS)
    flying = has_launch & ~late & (call_end > start)
    queued = has_launch & ~late & ~flying
    length = end - start

    parts = {name: np.zeros(len(start), dtype=np.int64) for name in CAUSES}
    parts["unattributed"][~has_launch] = length[~has_launch]
    parts["launch_in_flight"][flying] = length[flying]
    parts["graph_internal"][queued & is_graph] = length[queued & is_graph]
    short = queued & ~is_graph & (length <= QUEUED_SHORT_NS)
    parts["queued_short"][short] = length[short]
    waiting = queued & ~is_graph & ~short
    parts["dependency"][waiting] = length[waiting]

    called = np.clip(call_start, start, end)
    returned = np.clip(call_end, called, end)
    parts["host_late.launch"][late] = (returned - called)[late]
    parts["host_late.in_flight"][late] = (end - returned)[late]
    blocking = np.full(len(start), -1, dtype=np.int64)
    if late.any():
        threads = launches.thread[row[late]]
        _add_host_parts(parts, rank.host, np.flatnonzero(late), threads, start[late], called[late])
        blocking[late] = _blocking_calls(rank.host, threads, start[late], called[late])
    linked = work.launch >= 0
    early = int(np.count_nonzero(linked & (_calls(launches, work.launch)[0] > work.start + CLOCK_TOLERANCE_NS)))
    window = int(busy[1][-1] - busy[0][0]) if len(work) else 0
    return Gaps(start, end, before, after, parts, blocking, window, early, int(np.count_nonzero(~linked)))


def _reached_furthest(work: Activities) -> Ints:
    """For each row, the row at or before it that ends last."""
    record = work.end >= np.maximum.accumulate(work.end) if len(work) else np.empty(0, dtype=bool)
    return np.asarray(np.maximum.accumulate(np.where(record, np.arange(len(work)), 0)), dtype=np.int64)


def _calls(launches: Launches, row: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Start, end and kind of each row's launch call; -1 where there is none."""
    if not len(launches):
        none = np.full(len(row), -1, dtype=np.int64)
        return none, none, np.zeros(len(row), dtype=bool)
    has = row >= 0
    return (
        np.where(has, launches.start[row], -1),
        np.where(has, launches.end[row], -1),
        has & launches.is_graph[row],
    )


def _add_host_parts(parts: dict[str, Ints], host: HostSpans, rows: Ints, threads: Ints, begin: Ints, end: Ints) -> None:
    """Splits [begin, end) of each late gap by the stage that its launching thread was in, innermost span first."""
    rest = end - begin
    numbers = {STAGE_NUMBER[stage]: cause for stage, cause in CAUSE_OF_STAGE.items()}
    staged = host.take(np.isin(host.stage, list(numbers)))
    for thread in np.unique(threads).tolist():
        mine = threads == thread
        for number, pieces in _pieces(staged.take(staged.thread == thread)).items():
            time = overlap_ns(pieces, begin[mine], end[mine])
            parts[numbers[number]][rows[mine]] += time
            rest[mine] -= time
    # What no stage explains is the program's own time while any thread recorded something, and else nobody's.
    seen = host.take(host.stage != STAGE_NUMBER["profiler"])
    active = overlap_ns(union(seen.start, seen.end), begin, end)
    framework = np.clip(active - (end - begin - rest), 0, rest)
    parts["host_late.framework"][rows] += framework
    parts["no_work"][rows] += rest - framework


def _pieces(spans: HostSpans) -> dict[int, Interval]:
    """Disjoint intervals by stage number; nested spans belong to the innermost."""
    unused = np.zeros(len(spans), dtype=np.int64)
    start, end, owner = innermost(Spans(spans.start, spans.end, unused, unused, unused, spans.stage, unused))
    stage = spans.stage[owner]
    return {int(n): (start[stage == n], end[stage == n]) for n in np.unique(stage)}


def _blocking_calls(host: HostSpans, threads: Ints, begin: Ints, end: Ints) -> Ints:
    """The synchronising call of the launching thread that ended between a gap's begin and its launch, or -1."""
    found = np.full(len(begin), -1, dtype=np.int64)
    is_sync = host.stage == HOST_STAGES.index("sync")
    for thread in np.unique(threads).tolist():
        rows = np.flatnonzero(is_sync & (host.thread == thread))
        if not len(rows):
            continue
        rows = rows[np.argsort(host.end[rows], kind="stable")]
        mine = np.flatnonzero(threads == thread)
        place = np.searchsorted(host.end[rows], begin[mine], side="left")
        candidate = rows[np.minimum(place, len(rows) - 1)]
        fits = (place < len(rows)) & (host.start[candidate] < end[mine])
        found[mine[fits]] = candidate[fits]
    return found


def idle_ns(gaps: Gaps) -> int:
    """Summed idle time."""
    return total((gaps.start, gaps.end))
