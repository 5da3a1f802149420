"""Traces are valid Chrome JSON: named tracks, spans to the nanosecond, an arrow per launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ascendsched.errors import WriteError
from ascendsched.profile import Profile, Recording, trace_events

from .profile_logs import host_mode_log, make_log, sink_mode_log


def events_of(log: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in trace_events(Recording.from_log(log)) if event["ph"] == phase]


def test_tracks_have_names() -> None:
    names = [e["args"]["name"] for e in events_of(sink_mode_log(), "M") if e["name"] == "thread_name"]
    assert names == ["host", "waits", "device: cpu"]


def test_spans_keep_nanoseconds_and_their_node() -> None:
    host = [(5_000, 5_123, 1, 2, 7, "tiling"), (5_123, 5_200, 1, 2, 7, "launch")]
    log = make_log(host, [(5_300, 5_777, 1, 2, 7, "kernel")], nodes=[("a", "Mul"), ("b", "Mul"), ("c", "Add")])
    tiling, launch, kernel = events_of(log, "X")
    assert (tiling["name"], tiling["ts"], tiling["dur"]) == ("tiling", 0.0, 0.123)
    assert launch["ts"] == 0.123
    assert (kernel["name"], kernel["ts"], kernel["dur"]) == ("Add", 0.3, 0.477)
    assert kernel["args"] == {"run": 1, "sequence": 7, "node": "c", "op": "Add"}
    assert kernel["tid"] != launch["tid"]


def test_each_launch_points_to_the_first_kernel_that_it_started() -> None:
    starts, ends = (events_of(sink_mode_log(runs=2), phase) for phase in "sf")
    assert [e["id"] for e in starts] == [e["id"] for e in ends] == [0, 1]
    assert [(s["ts"], f["ts"]) for s, f in zip(starts, ends, strict=True)] == [(0.0, 0.01), (1.61, 1.62)]
    assert all(e["bp"] == "e" for e in ends)


def test_a_launch_without_kernel_has_no_arrow() -> None:
    assert events_of(make_log([(0, 5, 1, 0, 0, "launch")], []), "s") == []


def test_waits_have_their_own_track() -> None:
    waits = [e for e in events_of(host_mode_log(tiling=10, launch=5), "X") if e["name"] == "wait"]
    assert {e["tid"] for e in waits} == {2}


def test_a_saved_trace_replaces_the_file_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("old")
    profile = Profile(host_mode_log(tiling=400, launch=30))
    assert profile.save_trace(path) == str(path)
    document = json.loads(path.read_text())
    assert document["schema"] == "ascendsched.trace/1"
    assert document["otherData"]["verdict"]["verdict"] == "host_bound"
    assert len(document["traceEvents"]) == 7 + 3 * 16 + 1 + 2 * 16
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(WriteError, match="cannot write"):
        Profile(sink_mode_log()).save_trace(target)
    with pytest.raises(WriteError, match="no folder"):
        Profile(sink_mode_log()).save_trace(tmp_path / "missing" / "trace.json")
    assert list(tmp_path.iterdir()) == [target]
