"""Replays a program: when each host call and device entry would have begun, with some distances changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ascendsched.profile.program import Program
from ascendsched.profile.spans import Ints, total, union

FINISH, BEGIN, RUN = range(3)  # what happens to a call or entry, in order where times are equal


@dataclass(frozen=True)
class Change:
    """What a scenario changes. Columns by call, in ns; None leaves what was recorded.

    Attributes
    ----------
    lag, own, anchor : array or None
        Instead of the program's columns of calls.
    head : array or None
        Row of the call that launches a call's work: one call for a whole graph.
    handover, flight : array or None
        Instead of the program's columns of entries.
    is_pipelined : bool
        Whether what precedes a launch, memory and the launch itself run on three workers.
    """

    lag: Ints | None = None
    own: Ints | None = None
    anchor: Ints | None = None
    head: Ints | None = None
    handover: Ints | None = None
    flight: Ints | None = None
    is_pipelined: bool = False


@dataclass(frozen=True)
class Times:
    """When everything begins and ends: calls, then entries; in ns."""

    call_start: Ints
    call_end: Ints
    start: Ints
    end: Ints

    @property
    def window_ns(self) -> int:
        """From the device's first entry to the end of its last."""
        return int(self.end.max() - self.start.min()) if len(self.end) else 0

    @property
    def busy_ns(self) -> int:
        """Time in which an entry ran."""
        order = np.argsort(self.start, kind="stable")
        return total(union(self.start[order], self.end[order]))

    @property
    def idle_pct(self) -> float:
        """Share of the window in which no entry ran."""
        return 100 * (1 - self.busy_ns / self.window_ns) if self.window_ns else 0.0


def recorded_times(program: Program) -> Times:
    """What the profile says."""
    calls, entries = program.calls, program.entries
    return Times(calls.start, calls.end, entries.start, entries.start + entries.length)


def replay(program: Program, change: Change) -> Times:
    """Goes through calls and entries in the order of the recording; each begins when what it waits for is over."""
    calls, entries = program.calls, program.entries
    times = recorded_times(program)
    begin, finish = times.call_start.tolist(), times.call_end.tolist()
    start, end = times.start.tolist(), times.end.tolist()
    lag = _or(change.lag, calls.lag)
    own = _or(change.own, calls.own)
    anchor = _or(change.anchor, calls.anchor)
    handover = _or(change.handover, entries.handover)
    flight = _or(change.flight, entries.flight)
    call = entries.call if change.head is None else np.where(entries.call >= 0, change.head[entries.call], -1)
    launcher = call.tolist()
    from_begin = (entries.from_begin & (call == entries.call)).tolist()
    anchor_lag, before, beside = calls.anchor_lag.tolist(), calls.before.tolist(), calls.before_on_thread.tolist()
    length, ahead = entries.length.tolist(), entries.before.tolist()
    other, other_lag = entries.other.tolist(), entries.other_lag.tolist()
    alloc = calls.parts["alloc"].tolist() if change.is_pipelined else []
    is_sync = calls.is_sync.tolist()
    first = calls.begin_ns
    ready = list(finish)  # when the thread goes on to what follows a call
    memory_free = launch_free = first

    for what, i in _order(program):
        if what == RUN:
            at = start[i]
            if launcher[i] >= 0:
                source = begin if from_begin[i] else finish
                at = source[launcher[i]] + flight[i]
                if ahead[i] >= 0:
                    at = max(at, end[ahead[i]] + handover[i])
            elif ahead[i] >= 0:
                at = end[ahead[i]] + handover[i]
            if other[i] >= 0:
                at = max(at, end[other[i]] + other_lag[i])
            start[i], end[i] = at, at + length[i]
        elif what == BEGIN:
            at = (ready[before[i]] if before[i] >= 0 else first) + lag[i]
            if beside[i] >= 0:
                at = max(at, ready[beside[i]])
            if change.is_pipelined and not is_sync[i]:
                ready[i] = at - alloc[i]
                memory_free = max(memory_free, ready[i]) + alloc[i]
                at = launch_free = max(memory_free, launch_free)
                launch_free += own[i]
            begin[i], finish[i] = at, at + own[i]
        else:
            if anchor[i] >= 0:
                finish[i] = max(finish[i], end[anchor[i]] + anchor_lag[i])
            if not change.is_pipelined or is_sync[i]:
                ready[i] = finish[i]
    return Times(*(np.array(column, dtype=np.int64) for column in (begin, finish, start, end)))


def _or(changed: Ints | None, recorded: Ints) -> list[int]:
    values: list[int] = (recorded if changed is None else changed).tolist()
    return values


def _order(program: Program) -> list[tuple[int, int]]:
    """Everything that happens, in an order in which whatever is waited for comes first."""
    calls, entries = program.calls, program.entries
    called = np.where(entries.call >= 0, calls.start[entries.call], 0) if len(calls) else entries.start
    count = len(calls)
    time = np.concatenate([np.maximum(calls.end, calls.start + 1), calls.start, np.maximum(entries.start, called)])
    what = np.repeat([FINISH, BEGIN, RUN], [count, count, len(entries)])
    row = np.concatenate([np.arange(count), np.arange(count), np.arange(len(entries))])
    order = np.lexsort((row, what, time))
    return list(zip(what[order].tolist(), row[order].tolist(), strict=True))
