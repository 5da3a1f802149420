"""Sizes caches and workers of an executable while it runs, within bounds; decisions are logged and can be replayed."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascendsched.bounded import TABLE_BYTES, read_text
from ascendsched.errors import GraphError, PlanError
from ascendsched.native import core as _core
from ascendsched.options import MAX_WORKERS, default_threads
from ascendsched.tuning.event import Event
from ascendsched.tuning.retention import WHAT as FORESEEN
from ascendsched.tuning.retention import decide_victim, victim_event
from ascendsched.tuning.workers import WorkerState, WorkerWindow, decide_workers
from ascendsched.whole_files import write_error

if TYPE_CHECKING:
    from ascendsched.executable import Executable

_LOG = logging.getLogger("ascendsched")

CACHES = ("tiling", "schedule")
MIN_BYTES = 1 << 20  # of a cache
MIN_LOOKUPS = 64  # in a window; with fewer nothing is decided
PRESSURE = 0.02  # evictions per look-up from which a cache is too small
GAIN = 0.01  # of the hit rate that growing must bring
REST = 16  # windows after growing in vain


@dataclass(frozen=True)
class CacheState:
    """One cache: its bound, and what became of growing it."""

    limit_bytes: int
    rate_before: float | None = None  # hit rate before it grew last; None: it did not, or that has been judged
    rest: int = 0  # windows in which it does not grow


@dataclass(frozen=True)
class Window:
    """What one cache did since the last decision."""

    hits: int
    misses: int
    evictions: int
    used_bytes: int

    @property
    def rate(self) -> float:
        """Hits per look-up."""
        return self.hits / max(1, self.hits + self.misses)


def decide(cache: str, state: CacheState, window: Window, room_bytes: int) -> tuple[CacheState, Event | None]:
    """The next bound of a cache: a pure function.

    A cache that evicts grows twofold, while `room_bytes` allows it; where that brought no hits, as with shapes that
    never come back, it returns to its former size and rests. One that uses less than a quarter shrinks to half.
    """
    if window.hits + window.misses < MIN_LOOKUPS:
        return state, None
    limit = state.limit_bytes
    if state.rate_before is not None and window.rate < state.rate_before + GAIN:
        smaller = max(MIN_BYTES, limit // 2)
        why = f"growing brought no hits: {state.rate_before:.1%} before, {window.rate:.1%} now"
        return _changed(cache, CacheState(smaller, None, REST), limit, why)
    state = replace(state, rate_before=None, rest=max(0, state.rest - 1))
    pressure = window.evictions / (window.hits + window.misses)
    if pressure > PRESSURE and state.rest == 0 and room_bytes >= limit:
        why = f"{pressure:.1%} of the look-ups evict something, {window.rate:.1%} hit"
        return _changed(cache, CacheState(max(MIN_BYTES, limit * 2), window.rate, 0), limit, why)
    if window.evictions == 0 and window.used_bytes * 4 < limit and limit > MIN_BYTES:
        smaller = max(MIN_BYTES, limit // 2)
        return _changed(cache, replace(state, limit_bytes=smaller), limit, f"only {window.used_bytes} bytes are used")
    return state, None


def _changed(cache: str, state: CacheState, before: int, why: str) -> tuple[CacheState, Event | None]:
    return state, None if state.limit_bytes == before else Event(cache, before, state.limit_bytes, why)


class Clock:
    """How much of the CPUs that it may use this process used since it was asked last."""

    def __init__(self) -> None:
        self._cpus = default_threads()
        self._wall_ns, self._cpu_ns = time.monotonic_ns(), time.process_time_ns()

    def cpu_share(self) -> float:
        """From 0 to 1."""
        wall_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()
        share = (cpu_ns - self._cpu_ns) / max(1, (wall_ns - self._wall_ns) * self._cpus)
        self._wall_ns, self._cpu_ns = wall_ns, cpu_ns
        return min(1.0, share)


@dataclass
class Governor:
    """Sizes the tiling cache and the schedule caches of an executable, and the number of its workers.

    Call `step` now and then, such as every few hundred runs: it reads the counters, decides, and resizes.

    Parameters
    ----------
    exe
        The executable.
    max_bytes
        Bound of both caches together; the schedule cache counts once, though each segment of a plan has one.
    tiling_bytes, schedule_bytes
        Where the bounds start.
    log
        A file to which each decision is appended, for `replay`.
    max_workers
        Bound of the threads that make tilings where host mode is pipelined, see `Options.pipeline_workers`; None:
        their number is left as it is.
    """

    exe: Executable
    max_bytes: int
    tiling_bytes: int = 4 << 20
    schedule_bytes: int = 4 << 20
    log: str | os.PathLike[str] | None = None
    max_workers: int | None = None
    events: list[Event] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        for name in ("max_bytes", "tiling_bytes", "schedule_bytes"):
            value = getattr(self, name)
            if type(value) is not int or not MIN_BYTES <= value < 1 << 62:
                raise PlanError(f"[governor] {name}: {value!r}; expected {MIN_BYTES} bytes or more")
        if self.tiling_bytes + self.schedule_bytes > self.max_bytes:
            raise PlanError(f"[governor] the caches start above max_bytes {self.max_bytes}; start smaller")
        most = self.max_workers
        if most is not None and (type(most) is not int or not 1 <= most <= MAX_WORKERS):
            raise PlanError(f"[governor] max_workers: {most!r}; expected 1 to {MAX_WORKERS}, or None")
        self._states = {"tiling": CacheState(self.tiling_bytes), "schedule": CacheState(self.schedule_bytes)}
        self.exe.resize_caches(self.tiling_bytes, self.schedule_bytes)
        self._before = self.exe.stats()
        self._clock = Clock()
        self._workers = WorkerState(self._before["pipeline_workers"])
        if most is not None and self._workers.count > most:
            self._workers = WorkerState(most)
            self.exe.resize_workers(most)

    def step(self) -> list[Event]:
        """Decides on what happened since the last step; the changes that were made.

        Among them is what the schedule caches kept since then because of what is foreseen, the latest 64 decisions.

        Raises
        ------
        WriteError
            Where the log cannot be written.
        """
        now = self.exe.stats()
        windows = {cache: _window(cache, self._before, now) for cache in CACHES}
        entry: dict[str, Any] = {
            "schema": "ascendsched.governor/2",
            "runs": now["runs"],
            "max_bytes": self.max_bytes,
            "states": {cache: asdict(state) for cache, state in self._states.items()},
            "windows": {cache: asdict(window) for cache, window in windows.items()},
        }
        self._states, events = _decide_all(self._states, windows, self.max_bytes)
        if events:
            self.exe.resize_caches(self._states["tiling"].limit_bytes, self._states["schedule"].limit_bytes)
        if self.max_workers is not None:
            window = _worker_window(self._before, now, self._clock.cpu_share())
            entry["workers"] = {"state": asdict(self._workers), "window": asdict(window), "most": self.max_workers}
            self._workers, event = decide_workers(self._workers, window, self.max_workers)
            if event is not None:
                self.exe.resize_workers(event.after)
                events.append(event)
        decisions = _core.take_decisions(self.exe._core)
        if decisions:
            entry["retention"] = decisions
            events += [event for decision in decisions if (event := victim_event(*decision)) is not None]
        self._before = now
        for event in events:
            _LOG.info("[governor] %s: %d to %d: %s", event.what, event.before, event.after, event.why)
        self.events += events
        if self.log is not None:
            self._append(entry | {"events": [asdict(event) for event in events]})
        return events

    def _append(self, entry: Mapping[str, Any]) -> None:
        try:
            with Path(self.log or "").open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise write_error("governor", self.log or "", error) from None

    def explain(self) -> str:
        """The bounds of now, and every change with its reason."""
        bounds = ", ".join(f"{cache} {state.limit_bytes} bytes" for cache, state in self._states.items())
        workers = "" if self.max_workers is None else f", {self._workers.count} workers"
        changes = [event for event in self.events if event.what != FORESEEN]
        lines = [f"caches: {bounds}{workers}, {len(changes)} changes"]
        lines += [f"  {event.what}: {event.before} to {event.after}: {event.why}" for event in changes]
        if foreseen := [event.why for event in self.events if event.what == FORESEEN]:
            lines.append(f"  {len(foreseen)} decisions by what is foreseen, the last: {foreseen[-1]}")
        return "\n".join(lines) + "\n"


def _window(cache: str, before: Mapping[str, int], now: Mapping[str, int]) -> Window:
    hits, misses, evictions = (now[f"{cache}_{what}"] - before[f"{cache}_{what}"] for what in _COUNTED)
    return Window(hits, misses, evictions, now[f"{cache}_bytes"])


def _worker_window(before: Mapping[str, int], now: Mapping[str, int], cpu_share: float) -> WorkerWindow:
    since = {name: now[name] - before[name] for name in ("pipelined", "first_segments", "first_segment_ns")}
    first_ns = since["first_segment_ns"] / since["first_segments"] if since["first_segments"] else None
    hits, misses, _ = (now[f"tiling_{what}"] - before[f"tiling_{what}"] for what in _COUNTED)
    return WorkerWindow(since["pipelined"], hits, misses, first_ns, cpu_share)


_COUNTED = ("hits", "misses", "evictions")


def _decide_all(
    states: Mapping[str, CacheState], windows: Mapping[str, Window], max_bytes: int
) -> tuple[dict[str, CacheState], list[Event]]:
    states, events = dict(states), []
    for cache in CACHES:
        room = max_bytes - sum(state.limit_bytes for state in states.values())
        states[cache], event = decide(cache, states[cache], windows[cache], room)
        if event is not None:
            events.append(event)
    return states, events


def replay(log: str | os.PathLike[str]) -> list[tuple[list[Event], list[Event]]]:
    """For each entry of a log the changes that were made, and those that the rules of now would make.

    Raises
    ------
    GraphError
        For a file that is no log.
    """
    try:
        lines = read_text(log, TABLE_BYTES).splitlines()
        return [_replay_one(json.loads(line)) for line in lines if line.strip()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise GraphError(f"[governor] '{os.fspath(log)}' is no log of decisions: {error}") from None


def _replay_one(entry: Mapping[str, Any]) -> tuple[list[Event], list[Event]]:
    states = {cache: CacheState(**entry["states"][cache]) for cache in CACHES}
    windows = {cache: Window(**entry["windows"][cache]) for cache in CACHES}
    made = [Event(**event) for event in entry["events"]]
    again = _decide_all(states, windows, int(entry["max_bytes"]))[1]
    if (workers := entry.get("workers")) is not None:
        state, window = WorkerState(**workers["state"]), WorkerWindow(**workers["window"])
        event = decide_workers(state, window, int(workers["most"]))[1]
        again += [] if event is None else [event]
    for due, incoming, _ in entry.get("retention", ()):
        event = decide_victim([int(runs) for runs in due], int(incoming))
        again += [] if event is None else [event]
    return made, again
