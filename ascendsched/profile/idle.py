"""Why the device idled: each gap between kernels is split by what the host was doing meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascendsched.profile.spans import (
    LAUNCHING,
    STAGES,
    Ints,
    Recording,
    Spans,
    covered_before,
    innermost,
    total,
    union,
)

#: Every cause of idle time, in the order of reports.
CAUSES = (
    "host_late.infer_shape",
    "host_late.tiling",
    "host_late.alloc",
    "host_late.launch",
    "host_late.framework",
    "launch_in_flight",
    "queue_full",
    "dependency",
    "graph_internal",
    "queued_short",
    "sync",
    "compile",
    "no_work",
    "unattributed",
)

# A gap before a task that was already queued: up to this long it is the device's own hand-over between tasks, longer
# it must have waited for something.
QUEUED_SHORT_NS = 2_000

# What the host was doing -> why the device had nothing to do. A caller that waits for a result has not called again:
# until it wakes, the device waits with it.
CAUSE_OF_STAGE = {
    "infer_shape": "host_late.infer_shape",
    "tiling": "host_late.tiling",
    "alloc": "host_late.alloc",
    "launch": "host_late.launch",
    "submit": "host_late.launch",
    "framework": "host_late.framework",
    "load": "compile",
    "sync": "sync",
    "wait": "sync",
    "queue_full": "queue_full",
}


@dataclass(frozen=True)
class IdleTime:
    """Busy and idle time of the device between its first and its last activity, in ns; causes sum to idle.

    Attributes
    ----------
    window_ns, busy_ns : int
        From the first activity to the end of the last, and how much of it some kernel ran.
    parts : dict
        Cause to ns in each gap between kernels, in order; over the causes they sum to the gaps' lengths.
    early_starts : int
        Kernels that began before their launch did: clocks disagree.
    """

    window_ns: int
    busy_ns: int
    parts: dict[str, Ints]
    early_starts: int

    @property
    def idle_ns(self) -> int:
        """Window less busy time."""
        return self.window_ns - self.busy_ns

    @property
    def causes(self) -> dict[str, int]:
        """Idle time in ns by cause."""
        return {name: int(part.sum()) for name, part in self.parts.items()}


def explain_idle(recording: Recording) -> IdleTime:
    """Splits the device's idle time by cause.

    A gap ends with a kernel. If that kernel was launched before the gap began, the device idled with work queued
    (graph_internal within one chain, else queued_short or dependency). Otherwise the time up to the launch belongs to
    whatever the host did, innermost span first, and the rest is the launch's flight.
    """
    device = recording.device
    if not len(device):
        return IdleTime(0, 0, {name: np.zeros(0, dtype=np.int64) for name in CAUSES}, 0)
    busy = union(device.start, device.end)
    window = int(busy[1][-1] - busy[0][0])
    launch_start, launch_end = _launches_of(device, recording.host)
    early = int(np.count_nonzero((launch_start >= 0) & (device.start < launch_start)))

    after = np.searchsorted(device.start, busy[0][1:], side="left")  # the kernel that ends each gap
    gap_start, gap_end = busy[1][:-1], busy[0][1:]
    length = gap_end - gap_start
    launched = launch_end[after]
    keys = device.entry_keys()
    same_chain = keys[after] == keys[after - 1]
    unknown = (launched < 0) & ~same_chain
    queued = (launched <= gap_start) & ~unknown & ~same_chain
    late = ~(same_chain | unknown | queued)

    parts = {name: np.zeros(len(length), dtype=np.int64) for name in CAUSES}
    parts["graph_internal"][same_chain] = length[same_chain]
    parts["queued_short"][queued] = np.where(length <= QUEUED_SHORT_NS, length, 0)[queued]
    parts["dependency"][queued] = np.where(length > QUEUED_SHORT_NS, length, 0)[queued]
    parts["unattributed"][unknown] = length[unknown]
    handed_over = np.minimum(launched, gap_end)[late]
    parts["launch_in_flight"][late] = gap_end[late] - handed_over
    _add_host_part(parts, recording, late, gap_start[late], handed_over)
    return IdleTime(window, total(busy), parts, early)


def _launches_of(device: Spans, host: Spans) -> tuple[Ints, Ints]:
    """Start and end of each kernel's launch or submit; -1 where none was recorded."""
    launches = host.take(np.isin(host.stage, LAUNCHING))
    keys = launches.entry_keys()
    order = np.argsort(keys, kind="stable")
    wanted = device.entry_keys()
    if not len(order):
        missing = np.full(len(device), -1, dtype=np.int64)
        return missing, missing
    place = np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)
    found: NDArray[np.bool_] = keys[order][place] == wanted
    start = np.where(found, launches.start[order][place], -1)
    end = np.where(found, launches.end[order][place], -1)
    return start, end


def _add_host_part(
    parts: dict[str, Ints], recording: Recording, late: NDArray[np.bool_], begin: Ints, end: Ints
) -> None:
    """Splits [begin, end) of the late gaps by what the host did."""
    host = recording.host
    piece_start, piece_end, owner = innermost(host)
    stage = host.stage[owner]
    covered = np.zeros(len(begin), dtype=np.int64)
    for number, name in enumerate(STAGES):
        if name not in CAUSE_OF_STAGE:
            continue
        mine = (piece_start[stage == number], piece_end[stage == number])
        time = covered_before(mine, end) - covered_before(mine, begin)
        parts[CAUSE_OF_STAGE[name]][late] += time
        covered += time
    _, first, last = host.run_windows()
    order = np.argsort(np.concatenate([first, piece_start]), kind="stable")
    active = union(np.concatenate([first, piece_start])[order], np.concatenate([last, piece_end])[order])
    within_runs = covered_before(active, end) - covered_before(active, begin)
    parts["unattributed"][late] += within_runs - covered
    parts["no_work"][late] += end - begin - within_runs
