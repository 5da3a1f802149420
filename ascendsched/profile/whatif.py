"""What a program would gain: its recording replayed with sink scheduling, a pipeline or faster launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.profile.calls import Bools
from ascendsched.profile.diagnosis import Diagnosis
from ascendsched.profile.program import Program, read_program
from ascendsched.profile.replay import Change, Times, recorded_times, replay
from ascendsched.profile.spans import Ints
from ascendsched.profile.timeline import Rank

FASTER = (2, 4, 10)
NAMES = ("sink", "pipeline", "cached_tiling", "no_sync", *(f"launch_{k}x" for k in FASTER))
# Launching a captured graph costs about this on GPUs and Ascend devices, where a profile shows none.
GRAPH_LAUNCH_NS = 10_000
# Below this share of the window, waits for the device and tilings are not worth a scenario.
MIN_SHARE_PCT = 2.0
# A replay that misses the recorded time by more than this has not understood the program.
TRUSTED_ERROR_PCT = 5.0

# Stamps of clocks that jumped can sum to more than a 64-bit integer holds: nothing can be said of such a profile.
MAX_SPAN_NS = 2.0**61

ALWAYS = "device work takes as long as recorded, in the recorded order; streams overlap no more than they did"


@dataclass(frozen=True)
class Prediction:
    """One scenario.

    Attributes
    ----------
    name, title : str
        For programs and for people.
    us : float
        Predicted time of a step or run, in us.
    gain_pct : float
        Share of the measured time that it saves; below zero where it costs.
    idle_pct : float
        Share of the device's window in which it would still idle.
    assumptions : tuple of str
        What the figure holds under.
    """

    name: str
    title: str
    us: float
    gain_pct: float
    idle_pct: float
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**self.__dict__, "assumptions": list(self.assumptions)}


@dataclass(frozen=True)
class WhatIf:
    """Predictions beside what was recorded, per `unit`: "run", "step", or "window" for all that was recorded.

    `replay_error_pct` is by how much the replay with nothing changed misses the recorded time.
    """

    unit: str
    count: int
    measured_us: float
    idle_pct: float
    replay_error_pct: float
    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...]

    def prediction(self, name: str) -> Prediction | None:
        """The scenario of that name, or None where it does not apply: "sink" where runs are sunk already.

        Raises
        ------
        AscendSchedError
            For a name that no scenario has.
        """
        if name not in NAMES:
            raise AscendSchedError(f"[profile] no scenario '{name}'; there are {', '.join(NAMES)}")
        return next((p for p in self.predictions if p.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        predictions = [prediction.to_dict() for prediction in self.predictions]
        return {**self.__dict__, "predictions": predictions, "notes": list(self.notes)}


@dataclass(frozen=True)
class _Scenario:
    name: str
    title: str
    change: Change
    assumptions: tuple[str, ...]
    keeps_waits: bool = True


def what_if(diagnosis: Diagnosis) -> WhatIf | None:
    """Replays a rank's busiest device with every scenario that applies; None without device work that was launched."""
    device, rank = diagnosis.device, diagnosis.rank
    if device is None or not (device.work.launch >= 0).any():
        return None
    program = read_program(rank, device)
    if _span_ns(program) > MAX_SPAN_NS:
        return None
    recorded, base = recorded_times(program), replay(program, Change())
    is_own = rank.system == "ascendsched"
    measure = _Measure(program, is_own)
    measured = measure.unit_ns(recorded)
    error = 100 * (measure.unit_ns(base) - measured) / measured if measured else 0.0
    predictions = []
    for scenario in _scenarios(diagnosis, program):
        times = replay(program, scenario.change)
        ns = measured * measure.ratio(times, base, scenario.keeps_waits)
        gain = 100 * (1 - ns / measured) if measured else 0.0
        texts = (*scenario.assumptions, ALWAYS)
        predictions.append(Prediction(scenario.name, scenario.title, ns / 1e3, gain, times.idle_pct, texts))
    notes = []
    if abs(error) > TRUSTED_ERROR_PCT:
        notes.append(f"the replay misses the recorded time by {error:+.1f} %: read the predictions as rough")
    unlaunched = int(np.count_nonzero(program.entries.call < 0))
    if unlaunched:
        notes.append(f"{unlaunched} device activities without launch record follow those before them as recorded")
    unit = "window" if not program.steps else "run" if is_own else "step"
    count = max(1, program.steps)
    return WhatIf(unit, count, measured / 1e3, recorded.idle_pct, error, tuple(predictions), tuple(notes))


def _span_ns(program: Program) -> float:
    """What a replay takes at most, if everything waits for everything."""
    calls, entries = program.calls, program.entries
    columns = (calls.lag, calls.own, calls.anchor_lag, entries.length, entries.handover, entries.flight)
    return sum(float(np.abs(column.astype(np.float64)).sum()) for column in columns)


class _Measure:
    """The time of a step or run in a replay."""

    def __init__(self, program: Program, is_own: bool) -> None:
        calls = program.calls
        self._count = max(1, program.steps)
        # Where runs are waited for one by one, the median is robust against one that something disturbed.
        ends_run = np.diff(calls.step, append=calls.step[-1:] + 1) > 0
        self._waits = np.flatnonzero(ends_run & (calls.anchor >= 0))
        self._is_serial = is_own and len(self._waits) >= max(3, self._count // 2)
        self._is_own = is_own
        self._begin = calls.begin_ns

    def unit_ns(self, times: Times, is_serial: bool = True) -> float:
        """Time per unit in ns; the mean unless runs are waited for one by one."""
        if self._is_serial and is_serial:
            return float(np.median(np.diff(times.call_end[self._waits])))
        if self._is_own:
            return (max(int(times.call_end.max()), int(times.end.max())) - self._begin) / self._count
        return times.window_ns / self._count

    def ratio(self, times: Times, base: Times, is_serial: bool) -> float:
        """Time per unit relative to another replay's."""
        whole = self.unit_ns(base, is_serial)
        return self.unit_ns(times, is_serial) / whole if whole else 1.0


def _scenarios(diagnosis: Diagnosis, program: Program) -> Iterator[_Scenario]:
    rank, calls = diagnosis.rank, program.calls
    window = max(1.0, diagnosis.figures["window_us"] * 1e3)
    single = calls.is_launch & ~calls.is_sync
    sink = _sink(rank, program)
    if sink is not None:
        yield sink
    if single.sum() > 1 and not _is_pipelined(rank):
        stages = [stage for stage in ("infer_shape", "tiling", "alloc") if calls.parts[stage].any()]
        split = "recorded stages" if stages else "no stages recorded: the time before a launch, and the launch,"
        text = f"{split} run on workers of their own, hand-over costs nothing, and CPUs are free for them"
        yield _Scenario("pipeline", "host stages pipelined", Change(is_pipelined=True), (text,))
    tiling = calls.parts["tiling"]
    if "tiling" in rank.recorded and 100 * int(tiling.sum()) >= MIN_SHARE_PCT * window:
        text = "every tiling is found in the cache, at no cost"
        yield _Scenario("cached_tiling", "tilings cached", Change(lag=calls.lag - tiling), (text,))
    if _waits_matter(diagnosis, window):
        anchor = np.where(calls.is_sync, -1, calls.anchor)
        anchor[-1] = calls.anchor[-1]
        own_text = "several runs are in flight: no run waits for the one before to be read"
        text = own_text if rank.system == "ascendsched" else "no call waits for the device; results are read later"
        yield _Scenario("no_sync", "without waiting for the device", Change(anchor=anchor), (text,), keeps_waits=False)
    if calls.own[single].any():  # some levels of recording know no length of calls
        for k in FASTER:
            own = np.where(single, calls.own // k, calls.own)
            text = "a faster launch is the call alone; what precedes it stays"
            yield _Scenario(f"launch_{k}x", f"launch calls {k} × faster", Change(own=own), (text,))


def _is_pipelined(rank: Rank) -> bool:
    recording = rank.extra.get("recording")
    has_workers = recording is not None and (bool(recording.host.worker.any()) or recording.inline)
    return has_workers or any(name.startswith("Dequeue") for name in rank.names)


def _waits_matter(diagnosis: Diagnosis, window: float) -> bool:
    recording = diagnosis.rank.extra.get("recording")
    if recording is not None and recording.inline:
        return False
    gaps = diagnosis.gaps
    behind = int(gaps.length[gaps.blocking >= 0].sum()) if gaps is not None else 0
    return 100 * max(behind, diagnosis.causes.get("sync", 0)) >= MIN_SHARE_PCT * window


def _sink(rank: Rank, program: Program) -> _Scenario | None:
    """One launch for all that lies between calls that wait, pauses and steps; None where that is so already."""
    calls, entries = program.calls, program.entries
    is_own = rank.system == "ascendsched"
    single = calls.is_launch & ~calls.is_sync
    stays = calls.parts["pause"] if is_own else calls.parts["pause"] + calls.parts["compile"]
    cut = np.ones(len(calls), dtype=bool)
    cut[1:] = calls.is_sync[:-1] | (calls.step[1:] != calls.step[:-1]) | (stays[1:] > 0)
    section = np.cumsum(cut)
    head = _first_of_section(section, single)
    is_head = head == np.arange(len(calls))
    merged = single & ~is_head
    if not merged.any():
        return None
    if is_own:
        resolving = sum((calls.parts[stage] for stage in ("infer_shape", "tiling", "alloc", "compile")), 0 * calls.lag)
        lag = np.where(is_head | calls.is_sync, calls.lag - resolving, 0)
        own = np.where(merged, 0, calls.own)
        handover = np.where(_same_head(entries.call, entries.before, entries.call, head), 0, entries.handover)
    else:
        lag = np.where(calls.is_sync, np.minimum(calls.lag, stays), stays)
        own = np.where(merged, 0, np.where(single, np.maximum(calls.own, GRAPH_LAUNCH_NS), calls.own))
        handover = np.minimum(entries.handover, program.handover_ns)
        handover = np.where(entries.is_launched_late, handover, entries.handover)
    flight = np.where((entries.call >= 0) & merged[entries.call], np.minimum(entries.flight, 0), entries.flight)
    change = Change(
        lag=lag, own=own, head=head, handover=handover, flight=flight, anchor=_sink_anchors(program, section)
    )
    launches = int(is_head[single].sum())
    texts = [f"{launches} launches instead of {int(single.sum())}: one between waits, pauses and steps"]
    if is_own:
        texts.append("a submit costs what the first launch of its run cost; shapes come back, so nothing is resolved")
    else:
        cost = f"{GRAPH_LAUNCH_NS / 1e3:.0f} us or what its first launch took"
        texts.append(f"the whole program can be captured; launching a graph takes {cost}, and the program does no more")
    return _Scenario("sink", "sink scheduling: one launch for all", change, tuple(texts))


def _first_of_section(section: Ints, single: Bools) -> Ints:
    """For each launch the first one of its section; other calls stay for themselves."""
    head = np.arange(len(section))
    rows = np.flatnonzero(single)
    _, first, inverse = np.unique(section[rows], return_index=True, return_inverse=True)
    head[rows] = rows[first][inverse]
    return head


def _same_head(call: Ints, before: Ints, calls: Ints, head: Ints) -> Ints:
    """Whether an entry and the one before it belong to one chain."""
    ahead = np.where(before >= 0, calls[before], -1)
    both = (call >= 0) & (ahead >= 0)
    return np.asarray(both & (head[call] == head[ahead]))


def _sink_anchors(program: Program, section: Ints) -> Ints:
    """Calls that wait still do. Launches held back by a full queue, or by their own kernel, wait at most once."""
    calls = program.calls
    last = np.flatnonzero(np.diff(section, append=section[-1:] + 1))
    keep = calls.is_sync.copy()
    keep[last] = True
    return np.where(keep, calls.anchor, -1)
