"""What became of schedules where a cache was full of foreseen ones: a pure function of when each is due."""

from __future__ import annotations

from collections.abc import Sequence

from ascendsched.native import core as _core
from ascendsched.tuning.event import Event

WHAT = "foreseen"


def decide_victim(due: Sequence[int], incoming: int) -> Event | None:
    """Which of several schedules goes for another one that is due in `incoming` runs; None: by the cache's own rule.

    Parameters
    ----------
    due
        Runs until each of those that are kept comes back, from 1; -1: not foreseen.
    incoming
        The same of the new one.
    """
    return victim_event(due, incoming, _core.choose_victim(due, incoming))


def victim_event(due: Sequence[int], incoming: int, victim: int | None) -> Event | None:
    """A decision in words; `victim`: an index, -1 for the new one. The event has when the new one and that are due."""
    if victim is None:
        return None
    when = "not foreseen" if incoming < 0 else f"due in {incoming} runs"
    if victim < 0:
        return Event(WHAT, incoming, incoming, f"a schedule {when} was not kept: all {len(due)} others come before")
    return Event(WHAT, incoming, due[victim], f"one due in {due[victim]} runs made room for one {when}")
