"""The host calls of a program: those that launch work or wait for it, and what each of them waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascendsched.profile.spans import STAGES, Ints, union
from ascendsched.profile.timeline import STAGE_NUMBER, Activities, HostSpans, Rank, overlap_ns

Bools = NDArray[np.bool_]

#: Stages of the host's time before a call that scenarios treat apart; the rest is "other".
LAG_STAGES = ("infer_shape", "tiling", "alloc", "compile")

# A synchronising call that does not have to wait still takes about this.
SYNC_CALL_NS = 1_000
# A launch call is held back by a full queue where it takes so many times the median, with so many entries queued.
BLOCKED_RATIO, BLOCKED_NS, BLOCKED_QUEUED = 10, 20_000, 64
# A pause of this length in which nothing was recorded is not the interpreter between two operators.
PAUSE_NS = 1_000_000
LOADING = ("dataloader", "data_loader", "next_batch")


@dataclass(frozen=True)
class Calls:
    """Host calls that launch work or wait for it, sorted by start; times in ns.

    Attributes
    ----------
    start, end : array
        As recorded.
    before : array
        Row of the call, of any thread, that ended last before this one began, or -1; `lag` is the host time since.
    before_on_thread : array
        Row of the call before it on its own thread, or -1.
    parts : dict
        Of `lag`, the time in each of `LAG_STAGES`, and "pause": nothing was recorded, or data was loaded.
    own : array
        The call's own time, without waiting for the device.
    anchor : array
        Row of the device entry that the call waits for, or -1; it returns `anchor_lag` after that entry has ended.
    is_sync, is_launch : array
        What the call does; both for a copy that waits.
    step : array
        Place of the call's step in the rank's steps; 0 where there are none.
    """

    start: Ints
    end: Ints
    before: Ints
    lag: Ints
    before_on_thread: Ints
    parts: dict[str, Ints]
    own: Ints
    anchor: Ints
    anchor_lag: Ints
    is_sync: Bools
    is_launch: Bools
    step: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def begin_ns(self) -> int:
        """What the first call's `lag` counts from."""
        return int(self.start[0] - self.lag[0]) if len(self.start) else 0


def find_calls(rank: Rank, work: Activities) -> tuple[Calls, Ints]:
    """The calls, and for each row of the rank's launches its row in them (-1: it launched none of this work)."""
    start, end, thread, is_launch, is_sync, row_of_launch = _collect(rank, work)
    before = ended_last(np.maximum(end, start + 1), start)
    # A run of ours begins with its first span; of other programs, what precedes the first call is not known.
    begin = _first(rank.host.start) if rank.system == "ascendsched" and len(rank.host) else _first(start)
    since = np.where(before >= 0, end[before], begin) if len(start) else start
    blocked = _held_back(rank, work, start, end, is_launch & ~is_sync)
    own, anchor, anchor_lag = _waits(rank, work, start, end, is_sync, blocked)
    bounds = np.array([step.start for step in rank.steps], dtype=np.int64)
    step = np.maximum(np.searchsorted(bounds, start, side="right") - 1, 0)
    before_on_thread = np.full(len(start), -1, dtype=np.int64)
    for number in np.unique(thread).tolist():
        rows = np.flatnonzero(thread == number)
        over = np.maximum(end[rows[:-1]], start[rows[:-1]] + 1) <= start[rows[1:]]
        before_on_thread[rows[1:][over]] = rows[:-1][over]
    calls = Calls(
        start,
        end,
        before,
        start - since,
        before_on_thread,
        _lag_parts(rank, since, start),
        own,
        anchor,
        anchor_lag,
        is_sync,
        is_launch,
        step,
    )
    return calls, row_of_launch


def _collect(rank: Rank, work: Activities) -> tuple[Ints, Ints, Ints, Bools, Bools, Ints]:
    """Start, end, thread and kind of every call, sorted by start; and the row of each of the rank's launches."""
    launches, host = rank.launches, rank.host
    used = np.unique(work.launch[work.launch >= 0])
    threads = np.unique(launches.thread[used])
    is_wait = host.stage == STAGE_NUMBER["sync"]
    if rank.system != "ascendsched":  # of other threads it is unknown whether anybody waits for them
        is_wait &= np.isin(host.thread, threads)
    is_wait &= (host.end > _first(launches.start[used])) & (host.start < int(work.end.max(initial=0)))
    waits = _outermost(host.take(is_wait))
    # A call may be recorded as a launch and, since it waits, as a synchronising span.
    launching = list(zip(launches.start[used].tolist(), launches.thread[used].tolist(), strict=True))
    waiting = list(zip(waits.start.tolist(), waits.thread.tolist(), strict=True))
    both = _are_in(launching, waiting)
    alone = waits.take(~_are_in(waiting, launching))
    start = np.concatenate([launches.start[used], alone.start])
    end = np.maximum(np.concatenate([launches.end[used], alone.end]), start)
    thread = np.concatenate([launches.thread[used], alone.thread])
    is_launch = np.arange(len(start)) < len(used)
    is_sync = np.concatenate([both, np.ones(len(alone), dtype=bool)])
    order = np.argsort(start, kind="stable")
    row_of_launch = np.full(len(launches), -1, dtype=np.int64)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    row_of_launch[used] = place[: len(used)]
    return start[order], end[order], thread[order], is_launch[order], is_sync[order], row_of_launch


def _are_in(places: list[tuple[int, int]], others: list[tuple[int, int]]) -> Bools:
    known = set(others)
    return np.array([place in known for place in places], dtype=bool)


def _first(times: Ints) -> int:
    return int(times.min()) if len(times) else 0


def _outermost(spans: HostSpans) -> HostSpans:
    """Without the spans inside another of their thread."""
    keep = np.zeros(len(spans), dtype=bool)
    for thread in np.unique(spans.thread).tolist():
        rows = np.flatnonzero(spans.thread == thread)
        reach = np.maximum.accumulate(spans.end[rows])
        keep[rows] = np.concatenate([[True], spans.start[rows][1:] >= reach[:-1]])
    return spans.take(keep)


def ended_last(end: Ints, times: Ints) -> Ints:
    """For each time, the row that ended last at or before it, or -1."""
    order = np.argsort(end, kind="stable")
    place = np.searchsorted(end[order], times, side="right") - 1
    return np.asarray(np.where(place >= 0, order[place], -1) if len(order) else place, dtype=np.int64)


def _held_back(rank: Rank, work: Activities, start: Ints, end: Ints, is_launch: Bools) -> Bools:
    """Launches that had to wait for room in the device's queue."""
    recording = rank.extra.get("recording")
    if recording is not None and recording.inline:
        return is_launch  # the kernel runs inside the call
    full = rank.host.of_stages("queue_full")
    if len(full):
        inside = np.searchsorted(full.start, end, side="left") > np.searchsorted(full.start, start, side="left")
        return np.asarray(is_launch & inside)
    length = end - start
    usual = int(np.median(length[is_launch])) if is_launch.any() else 0
    linked = work.launch >= 0
    launched = np.sort(rank.launches.start[work.launch[linked]])
    queued = np.searchsorted(launched, start) - np.searchsorted(np.sort(work.end[linked]), start)
    is_long = length > max(BLOCKED_RATIO * usual, BLOCKED_NS)
    return np.asarray(is_launch & is_long & (queued >= BLOCKED_QUEUED))


def _waits(
    rank: Rank, work: Activities, start: Ints, end: Ints, is_sync: Bools, blocked: Bools
) -> tuple[Ints, Ints, Ints]:
    """Own time of each call, the entry that it waits for, and how long after that entry it returns."""
    own, anchor_lag = end - start, np.zeros(len(start), dtype=np.int64)
    waiting = is_sync | blocked
    anchor = np.where(waiting, ended_last(work.end, end), -1)
    _anchor_runs(rank, anchor, start, is_sync)
    rows = np.flatnonzero(anchor >= 0)
    done = work.end[anchor[rows]]
    did_wait = done > start[rows]
    lag = end[rows] - done
    usual = int(np.median(lag[did_wait])) if did_wait.any() else SYNC_CALL_NS
    anchor_lag[rows] = np.where(did_wait, lag, np.minimum(lag, usual))
    own[rows] = np.where(did_wait, np.minimum(own[rows], SYNC_CALL_NS), own[rows])
    return own, anchor, anchor_lag


def _anchor_runs(rank: Rank, anchor: Ints, start: Ints, is_sync: Bools) -> None:
    """In a recording of ours, a wait names its run: others in flight may have ended tasks since."""
    recording = rank.extra.get("recording")
    if recording is None or not rank.devices or len(recording.device) != len(rank.devices[0].work):
        return
    last: dict[int, int] = {}
    for row, run in enumerate(recording.device.run.tolist()):
        if recording.device.end[row] >= recording.device.end[last.get(run, row)]:
            last[run] = row
    waits = recording.host.take(recording.host.stage == STAGES.index("wait"))
    run_at = dict(zip(waits.start.tolist(), waits.run.tolist(), strict=True))
    for row in np.flatnonzero(is_sync).tolist():
        run = run_at.get(int(start[row]))
        if run is not None:
            anchor[row] = last.get(run, -1)


def _lag_parts(rank: Rank, begin: Ints, end: Ints) -> dict[str, Ints]:
    host = rank.host
    parts = {}
    for stage in LAG_STAGES:
        spans = host.of_stages(stage)
        parts[stage] = overlap_ns(union(spans.start, spans.end), begin, end)
    seen = host.take(host.stage != STAGE_NUMBER["profiler"])
    silent = end - begin - overlap_ns(union(seen.start, seen.end), begin, end)
    numbers = [n for n, name in enumerate(rank.names) if any(word in name.lower() for word in LOADING)]
    loads = host.take(np.isin(host.name, numbers))
    parts["pause"] = np.where(silent >= PAUSE_NS, silent, 0) + overlap_ns(union(loads.start, loads.end), begin, end)
    return parts
