"""The dependency structure of a timeline: which host call and which device entry waited for which other one.

Everything in a `Program` is a distance to what was waited for, so that it can be replayed with some distances changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from ascendsched.profile.calls import Calls, find_calls
from ascendsched.profile.entries import Entries, find_entries, started_by_waiting
from ascendsched.profile.timeline import Device, Rank


@dataclass(frozen=True)
class Program:
    """What a device and the host calls that feed it wait for, and the typical distances between them in ns."""

    calls: Calls
    entries: Entries
    steps: int
    flight_ns: int
    handover_ns: int


def read_program(rank: Rank, device: Device) -> Program:
    """Finds what each entry of a device and each call behind it waited for."""
    work = device.work
    calls, row_of_launch = find_calls(rank, work)
    entries, flight, handover = find_entries(rank, work, row_of_launch)
    if rank.system == "ascendsched":
        entries = started_by_waiting(calls, entries)
    return Program(calls, entries, len(rank.steps), flight, handover)
