"""One model for every profile: ranks, their devices' activities, the launches, and what the host's threads did.

Times are whole nanoseconds since the rank's `origin_ns`, in columns; names are kept once per rank and numbered.
`docs/design/profile.md` describes the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.profile.spans import Ints, Recording, covered_before, total, union

#: What a device entry is. The kinds in `WORK` make a device busy; a waiting entry does not.
KINDS = ("kernel", "copy", "memset", "communication", "wait")
KERNEL, COPY, MEMSET, COMMUNICATION, WAIT = range(len(KINDS))
WORK = (KERNEL, COPY, MEMSET, COMMUNICATION)

#: What a host span is. "framework" is an operator or another function of the program, "python" a Python function,
#: "annotation" a region the user named, "profiler" the recording itself.
HOST_STAGES = (
    "framework",
    "python",
    "annotation",
    "profiler",
    "infer_shape",
    "tiling",
    "alloc",
    "launch",
    "compile",
    "sync",
    "queue_full",
)
STAGE_NUMBER = {name: number for number, name in enumerate(HOST_STAGES)}

#: Systems that a profile can come from.
SYSTEMS = ("cuda", "rocm", "ascend", "ascendsched", "unknown")

Interval = tuple[Ints, Ints]


def _take(columns: Any, which: Any) -> Any:
    return replace(columns, **{name: getattr(columns, name)[which] for name in columns.__dataclass_fields__})


@dataclass(frozen=True)
class Activities:
    """Entries of one device, sorted by start. `launch` is the row of the rank's launches, -1 where none is recorded."""

    start: Ints
    end: Ints
    kind: Ints
    stream: Ints
    name: Ints
    correlation: Ints
    launch: Ints

    def __len__(self) -> int:
        return len(self.start)

    def take(self, which: Any) -> Activities:
        """The entries selected by a NumPy index or mask."""
        taken: Activities = _take(self, which)
        return taken

    def of_kinds(self, *kinds: int) -> Activities:
        """The entries of these kinds."""
        return self.take(np.isin(self.kind, kinds))

    def covered(self) -> Interval:
        """Disjoint intervals in which at least one entry ran."""
        return union(self.start, self.end)


@dataclass(frozen=True)
class Launches:
    """Host calls that start device work, sorted by start. `is_graph`: one call starts a captured graph or chain."""

    start: Ints
    end: Ints
    thread: Ints
    name: Ints
    correlation: Ints
    is_graph: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class HostSpans:
    """What the host's threads did, sorted by start; spans of one thread nest. `stack` is a name number or -1."""

    start: Ints
    end: Ints
    thread: Ints
    stage: Ints
    name: Ints
    stack: Ints

    def __len__(self) -> int:
        return len(self.start)

    def take(self, which: Any) -> HostSpans:
        """The spans selected by a NumPy index or mask."""
        taken: HostSpans = _take(self, which)
        return taken

    def of_stages(self, *stages: str) -> HostSpans:
        """The spans of these stages."""
        return self.take(np.isin(self.stage, [STAGE_NUMBER[name] for name in stages]))


@dataclass(frozen=True)
class Step:
    """One step of the program as its profiler marked it on the host."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Device:
    """One device of a rank."""

    number: int
    activities: Activities

    @property
    def work(self) -> Activities:
        """The entries that make the device busy."""
        return self.activities.of_kinds(*WORK)

    def busy_ns(self) -> int:
        """Time in which at least one entry of work ran."""
        return total(self.work.covered())


@dataclass(frozen=True)
class Rank:
    """One process of a job, as one profile recorded it.

    Attributes
    ----------
    source : str
        Where it was read from, without the reader's home folder.
    system : str
        One of `SYSTEMS`.
    number : int or None
        The rank in its job, where the profile says so.
    origin_ns : int
        What every time is relative to, on the profile's own clock.
    names, threads : tuple of str
        Texts by number.
    devices : tuple of Device
        Devices that have entries.
    notes : tuple of str
        What limits the trust in the data, as found while reading.
    recorded : frozenset of str
        Stages of `HOST_STAGES` that this kind of profile was set to record.
    extra : dict
        Whatever one importer knows and one report wants; plain data.
    """

    source: str
    system: str
    number: int | None
    origin_ns: int
    names: tuple[str, ...]
    threads: tuple[str, ...]
    devices: tuple[Device, ...]
    launches: Launches
    host: HostSpans
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    recorded: frozenset[str] = frozenset()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """ "rank 3", or the source where the profile names no rank."""
        return f"rank {self.number}" if self.number is not None else self.source

    def busiest(self) -> Device | None:
        """The device with the most busy time."""
        return max(self.devices, key=lambda device: (device.busy_ns(), -device.number), default=None)


@dataclass(frozen=True)
class Timeline:
    """The ranks of one job, in order of their number."""

    ranks: tuple[Rank, ...]


def exposed_ns(work: Activities, kind: int) -> int:
    """Time in which nothing but entries of this kind ran."""
    return total(work.covered()) - total(work.take(work.kind != kind).covered())


def overlap_ns(intervals: Interval, start: Ints, end: Ints) -> Ints:
    """How much of each [start, end) lies in the disjoint, sorted intervals."""
    return np.asarray(covered_before(intervals, end) - covered_before(intervals, start), dtype=np.int64)


def select_step(rank: Rank, number: int) -> Rank:
    """The rank with only what its devices did for one step.

    A step's last entries run after it has ended on the host, so the launch decides: a device's window reaches from the
    first to the last entry that was launched within the step (or, without a launch record, started within it).
    Entries of other steps in that window stay, because the device was not idle then.

    Raises
    ------
    KeyError
        Where the rank has no such step.
    """
    step = next((s for s in rank.steps if s.number == number), None)
    if step is None:
        raise KeyError(number)
    devices, extra = [], dict(rank.extra)
    for device in rank.devices:
        entries = device.activities
        begun = entries.start.copy()
        linked = entries.launch >= 0
        begun[linked] = rank.launches.start[entries.launch[linked]]
        own = entries.take((begun >= step.start) & (begun < step.end) & (entries.kind != WAIT))
        if len(own):
            first, last = int(own.start[0]), int(own.end.max())
            window = (entries.start >= first) & (entries.end <= last)
            devices.append(Device(device.number, entries.take(window)))
            if isinstance(extra.get("recording"), Recording):  # the steps of our own recordings are runs
                extra["recording"] = extra["recording"].between(step.start, first, last)
    inside = (rank.host.end > step.start) & (rank.host.start < step.end)
    return replace(rank, devices=tuple(devices), host=rank.host.take(inside), steps=(step,), extra=extra)


def common_steps(ranks: Sequence[Rank]) -> list[int]:
    """Numbers of the steps that any of the ranks recorded."""
    return sorted({step.number for rank in ranks for step in rank.steps})
