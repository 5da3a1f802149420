"""Recorded spans as NumPy columns in nanoseconds, and the arithmetic on intervals that reports need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.errors import AscendSchedError

Ints = NDArray[np.int64]

#: Stages in the order of the recorder's stage numbers.
STAGES = (
    "infer_shape",
    "tiling",
    "alloc",
    "launch",
    "submit",
    "load",
    "framework",
    "sync",
    "queue_full",
    "wait",
    "kernel",
)
KERNEL = STAGES.index("kernel")
WAITING = frozenset(STAGES.index(s) for s in ("sync", "queue_full", "wait"))
LAUNCHING = (STAGES.index("launch"), STAGES.index("submit"))

#: One recorded span; `start` and `end` are ticks.
SPAN_DTYPE = np.dtype(
    [
        ("start", "u8"),
        ("end", "u8"),
        ("run", "u4"),
        ("node", "i4"),
        ("sequence", "u4"),
        ("stage", "u1"),
        ("worker", "u1"),
        ("pad", "u1", 2),
    ]
)

# Ends that step back by more than this are a clock that jumped, not two stamps taken close together.
CLOCK_JUMP_NS = 1_000


@dataclass(frozen=True)
class Spans:
    """Columns of spans, sorted by start; times in nanoseconds since the recording's first span."""

    start: Ints
    end: Ints
    run: Ints
    node: Ints
    sequence: Ints
    stage: Ints
    # Of host mode's pipeline: 1 places memory, 2 launches, 3 and on make tilings; 0: the launching thread. Of device
    # spans: the stream.
    worker: Ints

    def __len__(self) -> int:
        return len(self.start)

    def take(self, which: Any) -> Spans:
        """The spans selected by a NumPy index or mask."""
        return Spans(*(getattr(self, name)[which] for name in _COLUMNS))

    def of_run(self, run: int) -> Spans:
        """The spans of one run."""
        return self.take(self.run == run)

    def entry_keys(self) -> Ints:
        """(run, sequence) as one number: equal for a launch and the kernels that it started."""
        return (self.run << 32) | self.sequence

    def run_windows(self) -> tuple[Ints, Ints, Ints]:
        """(run numbers, first starts, last ends), in order of the first start."""
        spans = self.take(np.flatnonzero(self.run > 0))
        spans = spans.take(np.argsort(spans.run, kind="stable"))
        if not len(spans):
            return spans.run, spans.start, spans.end
        numbers, heads = np.unique(spans.run, return_index=True)
        first = np.minimum.reduceat(spans.start, heads)
        last = np.maximum.reduceat(spans.end, heads)
        order = np.argsort(first, kind="stable")
        return numbers[order], first[order], last[order]

    @staticmethod
    def concatenate(first: Spans, second: Spans) -> Spans:
        """The spans of both, sorted by start."""
        joined = Spans(*(np.concatenate([getattr(first, c), getattr(second, c)]) for c in _COLUMNS))
        return joined.take(np.argsort(joined.start, kind="stable"))


_COLUMNS = ("start", "end", "run", "node", "sequence", "stage", "worker")


@dataclass(frozen=True)
class Recording:
    """What one profiled stretch recorded: host spans, device spans, and how far they can be trusted."""

    host: Spans
    device: Spans
    nodes: tuple[tuple[str, str], ...] = ()
    device_name: str = "device"
    inline: bool = False
    lost: int = 0
    notes: tuple[str, ...] = field(default=())

    @staticmethod
    def from_log(log: Mapping[str, Any]) -> Recording:
        """Reads the core's recording.

        Parameters
        ----------
        log : mapping
            `host` and `device` (arrays of `SPAN_DTYPE`), `ns_per_tick`, `lost`, `inline`, `device_name`, `nodes`
            (name and operator by node number).

        Raises
        ------
        AscendSchedError
            Where an entry is missing or malformed.
        """
        host, device = _span_array(log, "host"), _span_array(log, "device")
        scale = float(log.get("ns_per_tick", 1.0))
        if not np.isfinite(scale) or scale <= 0:
            raise AscendSchedError(f"[profile] ns_per_tick must be positive: {scale}; record again")
        starts = [a["start"].min() for a in (host, device) if len(a)]
        origin = np.uint64(min(starts)) if starts else np.uint64(0)
        notes: list[str] = []
        columns = [_columns(a, origin, scale, name, notes) for a, name in ((host, "host"), (device, "device"))]
        lost = int(log.get("lost", 0))
        if lost:
            notes.append(f"{lost} spans lost: the recorder was full; profile fewer runs or give it more bytes")
        nodes = tuple((str(name), str(op)) for name, op in log.get("nodes", ()))
        return Recording(
            columns[0],
            columns[1],
            nodes,
            str(log.get("device_name", "device")),
            bool(log.get("inline", False)),
            lost,
            tuple(notes),
        )

    def run_windows(self) -> tuple[Ints, Ints, Ints]:
        """Numbers of the recorded runs in order of their start, with the first start and last end of each."""
        return Spans.concatenate(self.host, self.device).run_windows()

    def node_name(self, node: int) -> str:
        """Name of a node, or "" for spans of a whole run."""
        return self.nodes[node][0] if 0 <= node < len(self.nodes) else ""

    def node_op(self, node: int) -> str:
        """Operator of a node, or "" for spans of a whole run."""
        return self.nodes[node][1] if 0 <= node < len(self.nodes) else ""

    def window_of(self, run: int) -> tuple[int, int]:
        """First start and last end of a run on either side, in ns."""
        numbers, first, last = self.run_windows()
        found = np.flatnonzero(numbers == run)
        if not len(found):
            raise AscendSchedError(f"[profile] run {run} has no spans: recorded are {numbers.tolist()[:8]}")
        return int(first[found[0]]), int(last[found[0]])

    def queue_depth(self) -> Ints:
        """At each launch, how many tasks or chains were launched before it and had not ended."""
        launched = np.sort(self.host.start[np.isin(self.host.stage, LAUNCHING)])
        keys = self.device.entry_keys()
        order = np.lexsort((self.device.end, keys))
        is_last = np.append(keys[order][1:] != keys[order][:-1], True) if len(keys) else np.empty(0, dtype=bool)
        ended = np.sort(self.device.end[order][is_last])
        return np.asarray(np.arange(len(launched)) - np.searchsorted(ended, launched), dtype=np.int64).clip(0)

    def reuse(self) -> tuple[Ints, list[float]]:
        """Run numbers, and of each run's tasks the share in percent whose shapes and tiling were known."""
        resolving = np.isin(self.host.stage, [STAGES.index("infer_shape"), STAGES.index("tiling")])
        tasks = np.unique((self.device.run << 32) | self.device.node)
        resolved = (self.host.run << 32 | self.host.node)[resolving]
        runs, place = np.unique(tasks >> 32, return_inverse=True)
        known = np.bincount(place, weights=~np.isin(tasks, resolved), minlength=len(runs))
        shares: list[float] = (100 * known / np.bincount(place, minlength=len(runs))).tolist()
        return runs, shares

    def between(self, begin: int, first: int, last: int) -> Recording:
        """What the device executed from `first` to `last`, and what the host did from `begin` on until then."""
        device = self.device.take((self.device.start >= first) & (self.device.end <= last))
        return replace(self, host=self.host.take((self.host.end > begin) & (self.host.start < last)), device=device)

    def typical_run(self) -> int:
        """The run of median length: what a report draws when it draws one."""
        numbers, first, last = self.run_windows()
        if not len(numbers):
            raise AscendSchedError("[profile] no run was recorded: call the executable inside the profile block")
        return int(numbers[np.argsort(last - first, kind="stable")[len(numbers) // 2]])


def _span_array(log: Mapping[str, Any], key: str) -> NDArray[Any]:
    array = np.asarray(log.get(key, np.empty(0, SPAN_DTYPE)))
    missing = set(_COLUMNS) - set(array.dtype.names or ())
    if missing or array.ndim != 1:
        raise AscendSchedError(f"[profile] '{key}' is no array of spans: lacks {sorted(missing)}; use SPAN_DTYPE")
    return array


def _columns(array: NDArray[Any], origin: np.uint64, scale: float, side: str, notes: list[str]) -> Spans:
    # Differences modulo 2^64, read as signed, survive an end that lies before the origin.
    start = np.rint((array["start"] - origin).view(np.int64) * scale).astype(np.int64)
    end = np.rint((array["end"] - origin).view(np.int64) * scale).astype(np.int64)
    same_thread = np.diff(array["worker"].astype(np.int64)) == 0  # each writes a log of its own
    jumps = int(np.count_nonzero((np.diff(end) < -CLOCK_JUMP_NS) & same_thread))
    if jumps:
        notes.append(f"{side} clock jumped back {jumps} times: times around the jumps are wrong")
    good = (end >= start) & (array["stage"] < len(STAGES))
    if not good.all():
        notes.append(f"{int((~good).sum())} {side} spans dropped: they end before they start or have no stage")
    rest = (array[c].astype(np.int64) for c in _COLUMNS[2:])
    spans = Spans(start, end, *rest).take(good)
    return spans.take(np.argsort(spans.start, kind="stable"))


def union(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Disjoint, sorted intervals that cover the same time as the given ones (sorted by start)."""
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    opens = np.concatenate([[True], start[1:] > reach[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return start[opens], reach[closes]


def total(intervals: tuple[Ints, Ints]) -> int:
    """Summed length of disjoint intervals."""
    return int((intervals[1] - intervals[0]).sum())


def covered_before(intervals: tuple[Ints, Ints], times: Ints) -> Ints:
    """For each time, how much of the disjoint sorted intervals lies before it."""
    start, end = intervals
    if not len(start):
        return np.zeros(len(times), dtype=np.int64)
    done = np.concatenate([[0], np.cumsum(end - start)])
    index = np.searchsorted(start, times, side="right")
    inside = np.where(index > 0, np.maximum(0, end[np.maximum(index - 1, 0)] - times), 0)
    return np.asarray(done[index] - inside, dtype=np.int64)


def innermost(spans: Spans) -> tuple[Ints, Ints, Ints]:
    """Flattens nested spans: (start, end, index) of disjoint pieces, each owned by the span that began last."""
    pieces: list[tuple[int, int, int]] = []
    order = np.lexsort((-spans.end, spans.start))
    start, end = spans.start.tolist(), spans.end.tolist()
    open_spans: list[int] = []
    cursor = 0

    def close_until(time: int) -> None:
        nonlocal cursor
        while open_spans and end[open_spans[-1]] <= time:
            owner = open_spans.pop()
            if end[owner] > cursor:
                pieces.append((cursor, end[owner], owner))
                cursor = end[owner]

    for i in order.tolist():
        close_until(start[i])
        if open_spans and start[i] > cursor:
            pieces.append((cursor, start[i], open_spans[-1]))
        cursor = max(cursor, start[i])
        open_spans.append(i)
    close_until(max(end, default=0))
    table = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]
