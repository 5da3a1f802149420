"""Synthetic recordings in the core's form, for the tests of profile readers. One tick is one nanosecond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ascendsched.profile import SPAN_DTYPE, STAGES

Row = tuple[int, int, int, int, int, str]  # start, end, run, node, sequence, stage


def spans(rows: Sequence[Row]) -> np.ndarray[Any, Any]:
    """Rows as the core's span array."""
    data = [
        (start, end, run, node, sequence, STAGES.index(stage), 0) for start, end, run, node, sequence, stage in rows
    ]
    return np.array([(*row[:6], 0, [0, 0]) for row in data], dtype=SPAN_DTYPE)


def make_log(host: Sequence[Row], device: Sequence[Row], **extra: Any) -> dict[str, Any]:
    """A log of one-tick nanoseconds."""
    log = {"host": spans(host), "device": spans(device), "ns_per_tick": 1.0, "lost": 0, "inline": False}
    return {**log, "device_name": "cpu", "nodes": [(f"node_{i}", "Add") for i in range(64)], **extra}


def host_mode_log(count: int = 16, kernel_ns: int = 100, **stages: int) -> dict[str, Any]:
    """One run, node by node: each node passes through `stages` (name=ns, in order), then its kernel runs."""
    host: list[Row] = []
    device: list[Row] = []
    now = free = 1_000
    for node in range(count):
        for stage, length in stages.items():
            host.append((now, now + length, 1, node, node, stage))
            now += length
        begin = max(now, free)
        free = begin + kernel_ns
        device.append((begin, free, 1, node, node, "kernel"))
    host.append((now, free, 1, -1, 0, "wait"))
    return make_log(host, device)


def sink_mode_log(runs: int = 2, count: int = 16, kernel_ns: int = 100, pause_ns: int = 0) -> dict[str, Any]:
    """Runs of one submitted chain each, with a pause of the caller between them."""
    host: list[Row] = []
    device: list[Row] = []
    now = 1_000
    for run in range(1, runs + 1):
        host.append((now, now + 10, run, -1, run, "submit"))
        begin = now + 10
        for node in range(count):
            device.append((begin, begin + kernel_ns, run, node, run, "kernel"))
            begin += kernel_ns
        host.append((now + 10, begin, run, -1, 0, "wait"))
        now = begin + pause_ns
    return make_log(host, device)
