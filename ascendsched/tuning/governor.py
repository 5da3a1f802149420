"""Sizes the caches of an executable while it runs, within a bound; every decision is logged and can be replayed."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascendsched.errors import GraphError, PlanError

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


@dataclass(frozen=True)
class Event:
    """A bound that was changed, and why."""

    cache: str
    before: int
    after: int
    why: str


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


@dataclass
class Governor:
    """Sizes the tiling cache and the schedule caches of an executable.

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
    """

    exe: Executable
    max_bytes: int
    tiling_bytes: int = 4 << 20
    schedule_bytes: int = 4 << 20
    log: str | os.PathLike[str] | None = None
    events: list[Event] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        for name in ("max_bytes", "tiling_bytes", "schedule_bytes"):
            value = getattr(self, name)
            if type(value) is not int or not MIN_BYTES <= value < 1 << 62:
                raise PlanError(f"[governor] {name}: {value!r}; expected {MIN_BYTES} bytes or more")
        if self.tiling_bytes + self.schedule_bytes > self.max_bytes:
            raise PlanError(f"[governor] the caches start above max_bytes {self.max_bytes}; start smaller")
        self._states = {"tiling": CacheState(self.tiling_bytes), "schedule": CacheState(self.schedule_bytes)}
        self.exe.resize_caches(self.tiling_bytes, self.schedule_bytes)
        self._before = self.exe.stats()

    def step(self) -> list[Event]:
        """Decides on what happened since the last step; the changes that were made."""
        now = self.exe.stats()
        windows = {cache: _window(cache, self._before, now) for cache in CACHES}
        entry = {
            "schema": "ascendsched.governor/1",
            "runs": now["runs"],
            "max_bytes": self.max_bytes,
            "states": {cache: asdict(state) for cache, state in self._states.items()},
            "windows": {cache: asdict(window) for cache, window in windows.items()},
        }
        self._states, events = _decide_all(self._states, windows, self.max_bytes)
        self._before = now
        if events:
            self.exe.resize_caches(self._states["tiling"].limit_bytes, self._states["schedule"].limit_bytes)
        for event in events:
            _LOG.info("[governor] %s cache: %d to %d bytes: %s", event.cache, event.before, event.after, event.why)
        self.events += events
        if self.log is not None:
            self._append(entry | {"events": [asdict(event) for event in events]})
        return events

    def _append(self, entry: Mapping[str, Any]) -> None:
        try:
            with Path(self.log or "").open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise PlanError(f"[governor] cannot write '{self.log}': {error.strerror}; choose another log") from None

    def explain(self) -> str:
        """The bounds of now, and every change with its reason."""
        bounds = ", ".join(f"{cache} {state.limit_bytes} bytes" for cache, state in self._states.items())
        lines = [f"caches: {bounds}, {len(self.events)} changes"]
        lines += [f"  {event.cache}: {event.before} to {event.after}: {event.why}" for event in self.events]
        return "\n".join(lines) + "\n"


def _window(cache: str, before: Mapping[str, int], now: Mapping[str, int]) -> Window:
    hits, misses, evictions = (now[f"{cache}_{what}"] - before[f"{cache}_{what}"] for what in _COUNTED)
    return Window(hits, misses, evictions, now[f"{cache}_bytes"])


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
        lines: Iterable[str] = Path(log).read_text(encoding="utf-8").splitlines()
        return [_replay_one(json.loads(line)) for line in lines if line.strip()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise GraphError(f"[governor] '{os.fspath(log)}' is no log of decisions: {error}") from None


def _replay_one(entry: Mapping[str, Any]) -> tuple[list[Event], list[Event]]:
    states = {cache: CacheState(**entry["states"][cache]) for cache in CACHES}
    windows = {cache: Window(**entry["windows"][cache]) for cache in CACHES}
    made = [Event(**event) for event in entry["events"]]
    return made, _decide_all(states, windows, int(entry["max_bytes"]))[1]
