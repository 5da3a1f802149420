"""`Profile`: what `Executable.profile()` hands out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.profile.diagnosis import diagnose
from ascendsched.profile.spans import Recording
from ascendsched.profile.timeline import Rank
from ascendsched.profile.trace import write_trace
from ascendsched.profile.verdict import Verdict, judge

if TYPE_CHECKING:
    from ascendsched.profile.whatif import WhatIf

# Bounds both span logs together: about 200,000 spans, a few thousand runs of a small model.
DEFAULT_CAPACITY_BYTES = 8 << 20
TOP_NODES = 5
NAME_WIDTH = 80  # of tables


class Profile:
    """The record of the runs inside one `with exe.profile() as p:` block; readable once the block has ended.

    Attributes
    ----------
    counters : dict
        Of `Executable.stats`: how much each count rose inside the block; bytes and entries as they were at its end.

    Examples
    --------
    >>> with exe.profile() as p:
    ...     exe(x)
    >>> print(p.verdict)
    >>> p.save_trace("trace.json")
    """

    def __init__(self, log: Mapping[str, Any] | None = None) -> None:
        self._log = log
        self.counters: dict[str, int] = {}

    def finish(self, log: Mapping[str, Any], counters: Mapping[str, int] | None = None) -> None:
        """Takes the core's recording (see `Recording.from_log`), and what its counters did meanwhile."""
        self._log = log
        self.counters = dict(counters or {})

    @cached_property
    def recording(self) -> Recording:
        """The spans, in nanoseconds.

        Raises
        ------
        AscendSchedError
            While the profile block is still open.
        """
        if self._log is None:
            raise AscendSchedError("[profile] still recording: read the profile after its with block")
        return Recording.from_log(self._log)

    @cached_property
    def verdict(self) -> Verdict:
        """What bounds the recorded runs, and why."""
        return judge(self.recording)

    @property
    def causes(self) -> dict[str, int]:
        """The device's idle time in ns by cause."""
        return self.verdict.causes

    def summary(self) -> str:
        """Verdict, causes, host stages and the nodes whose kernels took longest, as text."""
        verdict, figures = self.verdict, self.verdict.figures
        lines = [str(verdict), f"runs {figures['runs']:.0f}, kernels {figures['kernels']:.0f}"]
        if verdict.causes and not verdict.inline:
            lines += ["device idle by cause:", *_table(verdict.causes, figures["idle_ns"])]
        if verdict.stages:
            lines += ["host time by stage:", *_table(verdict.stages, sum(verdict.stages.values()))]
        times = self.node_times()
        if times:
            top = dict(sorted(times.items(), key=lambda item: -item[1])[:TOP_NODES])
            lines += ["longest kernels:", *_table(top, figures["busy_ns"])]
        queued = self.recording.queue_depth()
        if len(queued):
            mean, most = float(queued.mean()), int(queued.max())
            lines.append(f"queue: {mean:.1f} tasks or chains on average when one more was launched, at most {most}")
        return "\n".join(lines + [f"note: {note}" for note in verdict.notes])

    def node_times(self) -> dict[str, int]:
        """Summed kernel time in ns by "name (operator)"."""
        device = self.recording.device
        times: dict[str, int] = {}
        numbers, index = np.unique(device.node, return_inverse=True)
        sums = np.bincount(index, weights=device.end - device.start, minlength=len(numbers))
        for node, ns in zip(numbers.tolist(), sums.tolist(), strict=True):
            name = self.recording.node_name(node) or f"node {node}"
            times[f"{name} ({self.recording.node_op(node) or 'unknown'})"] = int(ns)
        return times

    @cached_property
    def rank(self) -> Rank:
        """The recording as a timeline, the form that imported profiles have; its runs are the steps."""
        from ascendsched.profile.importers.own import rank_of  # readers need msgspec, recordings do not

        return rank_of(self.recording, self.recording.device_name)

    def what_if(self) -> WhatIf:
        """What the runs would take with sink scheduling, a pipeline, cached tilings or faster launches.

        Raises
        ------
        AscendSchedError
            Where no task was recorded.
        """
        from ascendsched.profile.whatif import what_if

        found = what_if(diagnose(self.rank))
        if found is None:
            raise AscendSchedError("[profile] no task was launched in this profile: run the executable inside it")
        return found

    def save_html(self, path: str | os.PathLike[str], experiment: Mapping[str, Any] | None = None) -> str:
        """Writes a report that a browser shows offline, and returns its path; an existing file is replaced as a whole.

        Parameters
        ----------
        path : path
            The file to write or to replace.
        experiment : mapping, optional
            What was measured beside the recording (`Experiment.to_dict`).

        Raises
        ------
        WriteError
            Where the file cannot be written.
        """
        from ascendsched.profile.html import write_html
        from ascendsched.profile.job import Job
        from ascendsched.profile.report import make_report

        report = make_report(Job((diagnose(self.rank),), (), None), experiment=experiment)
        return write_html({**report, "counters": self.counters}, path)

    def save_trace(self, path: str | os.PathLike[str]) -> str:
        """Writes a Chrome/Perfetto trace and returns its path; an existing file is replaced as a whole.

        Raises
        ------
        WriteError
            Where the file cannot be written.
        """
        return write_trace(self.recording, path, verdict=self.verdict.to_dict())


def _shorten(name: str) -> str:
    """The beginning of a long name, and its end: the operator."""
    return name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 24]} ... {name[-19:]}"


def _table(times: Mapping[str, int], whole: float) -> list[str]:
    width = min(NAME_WIDTH, max(len(name) for name in times))
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return [
        f"  {_shorten(name):<{width}}  {ns / 1e3:10.1f} us  {100 * ns / max(1.0, whole):5.1f} %" for name, ns in ordered
    ]
