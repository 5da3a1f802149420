"""The device entries of a program, and what held each of them back: its launch, its stream, or another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ascendsched.profile.calls import Bools, Calls, ended_last
from ascendsched.profile.gaps import QUEUED_SHORT_NS
from ascendsched.profile.spans import Ints
from ascendsched.profile.timeline import Activities, Rank

# Hand-over from one entry to the next of its stream, and flight of a launch to an idle device, where a profile shows
# too few to take the median.
HANDOVER_NS = 1_000
FLIGHT_NS = 5_000
FEW = 8


@dataclass(frozen=True)
class Entries:
    """Device entries, sorted by start; times in ns.

    Attributes
    ----------
    length : array
        Device time.
    call : array
        Row of the launching call, or -1; `flight` is the least time from its return (from its begin, where the entry
        started before it had returned: `from_begin`) to the entry's start.
    before, handover : array
        Entry before it on its stream, or -1, and the least time from its end.
    other, other_lag : array
        Entry of another stream that it follows, or -1, and the least time from its end.
    is_launched_late : array
        Whether the launch, and not the stream, held the entry back.
    """

    start: Ints
    length: Ints
    call: Ints
    flight: Ints
    from_begin: Bools
    before: Ints
    handover: Ints
    other: Ints
    other_lag: Ints
    is_launched_late: Bools

    def __len__(self) -> int:
        return len(self.start)


def find_entries(rank: Rank, work: Activities, row_of_launch: Ints) -> tuple[Entries, int, int]:
    launches, start, end = rank.launches, work.start, work.end
    linked = work.launch >= 0
    call = np.where(linked, row_of_launch[work.launch], -1) if len(launches) else np.full(len(work), -1)
    called = np.where(linked, launches.start[work.launch], 0) if len(launches) else np.zeros(len(work), np.int64)
    returned = np.where(linked, launches.end[work.launch], 0) if len(launches) else called
    from_begin = linked & (start < returned)
    flight = start - np.where(from_begin, called, returned)
    before = _before_on_stream(work)
    since = np.where(before >= 0, end[before], 0) if len(work) else start
    handover = np.where(before >= 0, start - since, 0)  # below zero where entries of a stream overlap

    drained = linked & ((before < 0) | (since <= called))
    usual_flight = _usual(flight[drained], FLIGHT_NS)
    ready = np.where(from_begin, called, returned) + usual_flight
    queued = (before >= 0) & (~linked | (ready <= since))
    otherwise = 0 if rank.system == "ascendsched" else HANDOVER_NS  # our streams go on with the next entry at once
    usual_handover = min(_usual(handover[queued], otherwise), QUEUED_SHORT_NS)
    is_late = linked & ((before < 0) | (ready > since + usual_handover))
    unexplained = ~is_late & (handover > 2 * HANDOVER_NS)
    other, other_lag, explains = _across_streams(work, start, np.maximum(since, ready), unexplained, usual_handover)
    handover = np.where(is_late | explains, np.minimum(handover, usual_handover), handover)
    flight = np.where(is_late, flight, np.minimum(flight, usual_flight))
    entries = Entries(start, end - start, call, flight, from_begin, before, handover, other, other_lag, is_late)
    return entries, usual_flight, usual_handover


def started_by_waiting(calls: Calls, entries: Entries) -> Entries:
    """Links entries that no launch but the wait after it set going to that wait.

    Where CPUs are busy, the thread that executes tasks gets one only when the thread that launched them waits.
    """
    waits = np.flatnonzero(calls.is_sync & ~calls.is_launch)
    if not len(waits) or not len(entries):
        return entries
    place = np.searchsorted(waits, entries.call, side="right")
    wait = waits[np.minimum(place, len(waits) - 1)]
    linked = (
        entries.is_launched_late & (entries.call >= 0) & (place < len(waits)) & (calls.start[wait] <= entries.start)
    )
    return replace(
        entries,
        call=np.where(linked, wait, entries.call),
        flight=np.where(linked, entries.start - calls.start[wait], entries.flight),
        from_begin=entries.from_begin | linked,
    )


def _usual(values: Ints, otherwise: int) -> int:
    return max(0, int(np.median(values))) if len(values) >= FEW else otherwise


def _before_on_stream(work: Activities) -> Ints:
    before = np.full(len(work), -1, dtype=np.int64)
    order = np.lexsort((np.arange(len(work)), work.stream))
    same = work.stream[order][1:] == work.stream[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def _across_streams(
    work: Activities, start: Ints, ready: Ints, asked: Bools, handover: int
) -> tuple[Ints, Ints, Bools]:
    """The entry of another stream that ended last before each one started, and how long after it that one starts.

    Nothing says whether the one waited for the other. Where it was ready earlier and nothing else explains the time,
    it did; else the two keep their order, since a replay must not let streams overlap more than they did.
    """
    found = ended_last(work.end, start)
    lag = np.where(found >= 0, start - work.end[found], 0) if len(work) else start
    is_other = (found >= 0) & (work.stream[found] != work.stream) if len(work) else asked
    explains = asked & is_other & (lag <= QUEUED_SHORT_NS)
    explains &= work.end[found] > ready
    return np.where(is_other, found, -1), np.where(explains, lag, np.minimum(lag, handover)), explains
