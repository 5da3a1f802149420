"""Collects what an importer reads, row by row, and makes a `Rank` of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.errors import AscendSchedError
from ascendsched.profile.importers.files import redact
from ascendsched.profile.importers.stages import is_graph_launch
from ascendsched.profile.spans import Ints
from ascendsched.profile.timeline import (
    HOST_STAGES,
    Activities,
    Device,
    HostSpans,
    Launches,
    Rank,
    Step,
)

# Beyond this, no file of a profiler is meant for this reader: the columns alone would not fit in memory.
MAX_ROWS = 50_000_000
# Start of a step in ns; a step's name ends with its number.
STEP_NAME = re.compile(r"ProfilerStep#(\d{1,15})\Z")


class RankBuilder:
    """Rows in the order of the file; `build` sorts them, links entries to launches and checks them."""

    def __init__(self, source: str, system: str) -> None:
        self.source, self.system = source, system
        self.number: int | None = None
        self.notes: list[str] = []
        self.recorded: set[str] = set()
        self.extra: dict[str, Any] = {}
        self.dropped = 0
        self.entries: list[tuple[int, int, int, int, int, int, int]] = []  # start, end, kind, device, stream, name, key
        self.launches: list[tuple[int, int, int, int, int, bool]] = []  # start, end, thread, name, key, is_graph
        self.spans: list[tuple[int, int, int, int, int, int]] = []  # start, end, thread, stage, name, stack
        self.model_tasks: list[int] = []  # rows of `entries` that belong to a loaded model and name no launch
        self.steps: dict[int, tuple[int, int]] = {}
        self._names: dict[str, int] = {}
        self._texts: list[str] = []
        self._keys: dict[Hashable, int] = {}
        self._threads: dict[Hashable, int] = {}
        self.thread_names: dict[Hashable, str] = {}

    def name(self, text: object) -> int:
        """Number of a text. The owners of home folders are left out here, so that no report can name them."""
        if not isinstance(text, str):
            text = str(text)
        number = self._names.get(text)
        if number is None:
            number = self._names[text] = len(self._names)
            self._texts.append(redact(text))
        return number

    def key(self, correlation: Hashable) -> int:
        """Number of whatever a profile correlates by; -1 for None."""
        if correlation is None:
            return -1
        return self._keys.setdefault(correlation, len(self._keys))

    def thread(self, thread: Hashable) -> int:
        """Number of a host thread."""
        return self._threads.setdefault(thread, len(self._threads))

    def step(self, name: str, start: int, end: int) -> None:
        """Takes a span as a step if it is named like one; several threads may mark the same step."""
        found = STEP_NAME.search(name)
        if found:
            number = int(found.group(1))
            first, last = self.steps.get(number, (start, end))
            self.steps[number] = (min(first, start), max(last, end))

    def _launch_models(self) -> None:
        """Links the tasks of loaded models to the call before them that executed a model: one call starts many."""
        names = self._texts
        graph = [span for span in self.spans if is_graph_launch(names[span[4]])] if self.model_tasks else []
        graph.sort()
        begins = [span[0] for span in graph]
        used: dict[int, int] = {}
        for row in self.model_tasks:
            place = bisect_right(begins, self.entries[row][0]) - 1
            if place < 0:
                continue
            if place not in used:
                start, end, thread, _, name, _ = graph[place]
                used[place] = self.key(("model", place))
                self.launches.append((start, end, thread, name, used[place], True))
            self.entries[row] = (*self.entries[row][:6], used[place])

    def build(self) -> Rank:
        """The rank; times become relative to its first row."""
        if len(self.entries) + len(self.launches) + len(self.spans) > MAX_ROWS:
            raise AscendSchedError(f"[diagnose] {self.source}: more than {MAX_ROWS} rows; profile fewer steps")
        self._launch_models()
        entries, launches = _table(self.entries, 7), _table(self.launches, 6)
        spans = _table(self.spans, 6)
        firsts = [int(t[:, 0].min()) for t in (entries, launches, spans) if len(t)]
        origin = min(firsts, default=0)
        for table in (entries, launches, spans):
            table[:, :2] -= origin
        launches, spans = _by_start(launches), _by_start(spans)
        if self.dropped:
            self.notes.append(f"{self.dropped} events dropped: they lack a valid time, duration or name")
        return Rank(
            source=self.source,
            system=self.system,
            number=self.number,
            origin_ns=origin,
            names=tuple(self._texts),
            threads=tuple(redact(self.thread_names.get(thread, str(thread))) for thread in self._threads),
            devices=tuple(_devices(entries, launches[:, 4])),
            launches=_launches(launches),
            host=HostSpans(*(spans[:, i] for i in range(6))),
            steps=tuple(Step(n, a - origin, b - origin) for n, (a, b) in sorted(self.steps.items())),
            notes=tuple(self.notes),
            recorded=frozenset(self.recorded | {HOST_STAGES[number] for number in np.unique(spans[:, 3]).tolist()}),
            extra=self.extra,
        )


def _table(rows: list[Any], width: int) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _launches(table: NDArray[np.int64]) -> Launches:
    start, end, thread, name, key, is_graph = (table[:, i] for i in range(6))
    return Launches(start, end, thread, name, key, is_graph.astype(bool))


def _by_start(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sorted by start; of those that start together the longer, which contains the other, comes first."""
    return table[np.lexsort((-table[:, 1], table[:, 0]))]


def _devices(entries: NDArray[np.int64], keys: Ints) -> list[Device]:
    order = np.argsort(keys, kind="stable")  # launches are sorted by start: the first of equal keys began first
    known = keys[order]
    devices = []
    for number in np.unique(entries[:, 3]).tolist():
        rows = entries[entries[:, 3] == number]
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        start, end, kind, _, stream, name, key = (rows[:, i] for i in range(7))
        launch = np.full(len(rows), -1, dtype=np.int64)
        if len(known):
            place = np.minimum(np.searchsorted(known, key), len(known) - 1)
            launch = np.where((known[place] == key) & (key >= 0), order[place], -1)
        devices.append(Device(number, Activities(start, end, kind, stream, name, key, launch)))
    return devices
