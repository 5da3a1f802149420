"""Everything that the HTML report shows, as plain data: diagnoses, predictions, and what its timeline draws."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched._version import __version__
from ascendsched.profile.advice import advise, stack_of
from ascendsched.profile.compare import Comparison
from ascendsched.profile.diagnosis import Diagnosis, diagnose, to_dict
from ascendsched.profile.job import Job
from ascendsched.profile.spans import Ints
from ascendsched.profile.timeline import (
    HOST_STAGES,
    KINDS,
    STAGE_NUMBER,
    Activities,
    HostSpans,
    Rank,
    select_step,
)
from ascendsched.profile.whatif import what_if

SCHEMA = "ascendsched.report/1"
# A browser draws so many events fluently; of more, the shortest are left out, of the host first.
MAX_EVENTS = 300_000
MAX_THREADS = 12
# Python stacks are deeper than a screen is high.
MAX_DEPTH = 8
MAX_STEPS, MIN_STEPS = 40, 4  # of all ranks together; of each
MIN_THREAD_SHARE = 0.01
TOP_GAPS = 12
MAX_NAME = 200
MAX_REUSE = 2_000
UNNAMED = re.compile(r"\(.*, '?(-?\w+)'?\)")


def make_report(
    job: Job, comparison: Comparison | None = None, experiment: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Collects a job's report.

    Parameters
    ----------
    job : Job
        The diagnosed ranks.
    comparison : Comparison, optional
        Of the job's main rank with a second profile.
    experiment : mapping, optional
        What `Experiment.to_dict` says, for a model that was run here.
    """
    count = max(1, len(job.ranks))
    budget, steps = MAX_EVENTS // count, max(MIN_STEPS, MAX_STEPS // count)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "kinds": list(KINDS),
        "stages": list(HOST_STAGES),
        "job": job.to_dict(),
        "main": job.ranks.index(job.main),
        "ranks": [_rank(diagnosis, budget, steps) for diagnosis in job.ranks],
        "comparison": comparison.to_dict() if comparison is not None else None,
        "experiment": dict(experiment) if experiment is not None else None,
    }


def _rank(diagnosis: Diagnosis, budget: int, most_steps: int) -> dict[str, Any]:
    found = what_if(diagnosis)
    recording = diagnosis.rank.extra.get("recording")
    steps = diagnosis.rank.steps[:most_steps] if len(diagnosis.rank.steps) > 1 else ()
    if recording is not None and recording.inline:
        steps = ()  # host and kernels take turns: a step has no idle time of its own
    return {
        "label": diagnosis.rank.label,
        "diagnosis": to_dict(diagnosis),
        "advice": [item.to_dict() for item in advise(diagnosis)],
        "by_step": [_step(diagnosis.rank, step.number) for step in steps],
        "steps_left_out": max(0, len(diagnosis.rank.steps) - most_steps),
        "what_if": found.to_dict() if found is not None else None,
        "top_gaps": top_gaps(diagnosis),
        "reuse": _reuse(diagnosis.rank),
        "timeline": _timeline(diagnosis, budget),
    }


def _step(rank: Rank, number: int) -> dict[str, Any]:
    chosen = diagnose(select_step(rank, number))
    return {"step": number, **to_dict(chosen), "top_gaps": top_gaps(chosen)}


def _reuse(rank: Rank) -> dict[str, Any] | None:
    """Of our own runs: the share of tasks whose shapes and tiling were known, run by run."""
    recording = rank.extra.get("recording")
    if recording is None:
        return None
    runs, shares = recording.reuse()
    return {"run": runs[:MAX_REUSE].tolist(), "pct": shares[:MAX_REUSE]}


def top_gaps(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The longest idle intervals with their causes, neighbours, and where the host was blocked."""
    gaps, device, rank = diagnosis.gaps, diagnosis.device, diagnosis.rank
    if gaps is None or device is None or not len(gaps.start):
        return []
    work, causes = device.work, gaps.main_causes()
    found = []
    for i in np.argsort(-gaps.length, kind="stable")[:TOP_GAPS].tolist():
        blocking = int(gaps.blocking[i])
        found.append(
            {
                "start_ns": int(gaps.start[i]),
                "us": int(gaps.length[i]) / 1e3,
                "cause": causes[i],
                "parts_us": {name: int(part[i]) / 1e3 for name, part in gaps.parts.items() if part[i]},
                "before": rank.names[int(work.name[gaps.before[i]])][:MAX_NAME],
                "after": rank.names[int(work.name[gaps.after[i]])][:MAX_NAME],
                "call": rank.names[int(rank.host.name[blocking])][:MAX_NAME] if blocking >= 0 else None,
                "stack": [frame[:MAX_NAME] for frame in stack_of(rank, blocking)] if blocking >= 0 else [],
            }
        )
    return found


def _timeline(diagnosis: Diagnosis, budget: int) -> dict[str, Any] | None:
    device, gaps, rank = diagnosis.device, diagnosis.gaps, diagnosis.rank
    if device is None or gaps is None:
        return None
    entries = device.activities
    shown = _longest(entries.end - entries.start, budget)
    left_out = len(entries) - int(shown.sum())
    entries = entries.take(shown)
    host, deep = _visible(rank, entries)
    kept = _longest(host.end - host.start, max(0, budget - len(entries)))
    left_out += deep + len(host) - int(kept.sum())
    depth = _depths(host)[kept]
    host = host.take(kept)
    names = _Names(rank)
    threads = list(dict.fromkeys(host.thread.tolist()))
    launch = entries.launch
    has = launch >= 0
    causes = sorted({*gaps.main_causes()})
    return {
        "left_out": left_out,
        "threads": [{"number": n, "name": _thread_name(rank, n)} for n in threads],
        "streams": sorted(set(entries.stream.tolist())),
        "host": {
            **_times(host.start, host.end),
            "thread": host.thread.tolist(),
            "depth": depth.tolist(),
            "stage": host.stage.tolist(),
            "name": names.numbers(host.name),
        },
        "device": {
            **_times(entries.start, entries.end),
            "stream": entries.stream.tolist(),
            "kind": entries.kind.tolist(),
            "name": names.numbers(entries.name),
            "call_ns": np.where(has, rank.launches.start[launch] if len(rank.launches) else -1, -1).tolist(),
            "call_thread": np.where(has, rank.launches.thread[launch] if len(rank.launches) else -1, -1).tolist(),
        },
        "gaps": {
            **_times(gaps.start, gaps.end),
            "cause": [causes.index(name) for name in gaps.main_causes()],
            "causes": causes,
        },
        "steps": [[step.number, step.start, step.end] for step in rank.steps],
        "names": names.texts,
    }


def _thread_name(rank: Rank, number: int) -> str:
    name = rank.threads[number]
    found = UNNAMED.fullmatch(name)  # a process and a thread
    return f"thread {found.group(1)}" if found else name or f"thread {number}"


class _Names:
    """The names that are shown, numbered anew."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._numbers: dict[int, int] = {}
        self.texts: list[str] = []

    def numbers(self, column: Ints) -> list[int]:
        """Numbers of a column of the rank's names."""
        for name in np.unique(column).tolist():
            if name not in self._numbers:
                self._numbers[name] = len(self.texts)
                self.texts.append(self._rank.names[name][:MAX_NAME])
        return [self._numbers[name] for name in column.tolist()]


def _times(start: Ints, end: Ints) -> dict[str, list[int]]:
    return {"start_ns": start.tolist(), "length_ns": (end - start).tolist()}


def _longest(length: Ints, count: int) -> NDArray[np.bool_]:
    """Mask of the `count` longest."""
    mask = np.ones(len(length), dtype=bool)
    if len(length) > count:
        mask[np.argsort(-length, kind="stable")[count:]] = False
    return mask


def _visible(rank: Rank, entries: Activities) -> tuple[HostSpans, int]:
    """The spans worth drawing, and how many are left out.

    Drawn are threads that launch, then those with most spans; not Python functions that were active all the time, and
    none where their stacks are deeper than a screen is high.
    """
    first, last = int(entries.start.min()), int(entries.end.max())
    is_python = rank.host.stage == STAGE_NUMBER["python"]
    host = rank.host.take((rank.host.end > rank.host.start) & ~(is_python & _covers(rank.host, first, last)))
    if len(host) and int(_depths(host).max()) >= MAX_DEPTH:
        host = host.take(host.stage != STAGE_NUMBER["python"])
    counts = np.bincount(host.thread, minlength=len(rank.threads))
    launching = set(rank.launches.thread[entries.launch[entries.launch >= 0]].tolist())
    time = np.bincount(host.thread, weights=host.end - host.start, minlength=len(rank.threads))
    seen = [n for n in range(len(counts)) if n in launching or time[n] >= MIN_THREAD_SHARE * (last - first)]
    order = sorted(seen, key=lambda n: (n not in launching, -int(counts[n])))[:MAX_THREADS]
    shown = host.take(np.isin(host.thread, order))
    shown = shown.take(_depths(shown) < MAX_DEPTH)
    return shown, len(rank.host) - len(shown)


def _covers(host: HostSpans, first: int, last: int) -> NDArray[np.bool_]:
    """Spans that lasted for all of the device's time but a hundredth."""
    slack = (last - first) // 100
    return np.asarray((host.start <= first + slack) & (host.end >= last - slack))


def _depths(host: HostSpans) -> Ints:
    """How many spans of its thread each span lies in."""
    depth = np.zeros(len(host), dtype=np.int64)
    for thread in np.unique(host.thread).tolist():
        rows = np.flatnonzero(host.thread == thread)
        ends = host.end[rows].tolist()
        around: list[int] = []
        depths = []
        for start, end in zip(host.start[rows].tolist(), ends, strict=True):
            while around and around[-1] <= start:
                around.pop()
            depths.append(len(around))
            around.append(end)
        depth[rows] = depths
    return depth
