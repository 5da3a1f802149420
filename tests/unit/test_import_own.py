"""Our own traces read back to what they were written from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendsched.profile import Recording, judge, write_trace
from ascendsched.profile.diagnosis import diagnose
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.timeline import Rank

from .profile_logs import host_mode_log, make_log, sink_mode_log

LOGS = {
    "host": host_mode_log(infer_shape=50, tiling=400, launch=20),
    "sink": sink_mode_log(runs=3, pause_ns=700),
    "inline": {**host_mode_log(tiling=300, launch=20), "inline": True},
    "lossy": {**host_mode_log(tiling=300, launch=20), "lost": 7},
}


def read_back(path: Path, log: dict[str, Any]) -> Rank:
    recording = Recording.from_log(log)
    write_trace(recording, path, verdict=judge(recording).to_dict())
    return read_profiles([path]).ranks[0]


@pytest.mark.parametrize("name", LOGS)
def test_a_saved_trace_gets_the_verdict_that_its_run_got(tmp_path: Path, name: str) -> None:
    diagnosis = diagnose(read_back(tmp_path / "trace.json", LOGS[name]))
    verdict = judge(Recording.from_log(LOGS[name]))
    assert (diagnosis.verdict, diagnosis.sentence) == (verdict.verdict, verdict.sentence)
    if not verdict.inline:
        assert {cause: ns for cause, ns in diagnosis.causes.items() if ns} == verdict.causes


@pytest.mark.parametrize("name", LOGS)
def test_spans_survive_the_file_to_the_nanosecond(tmp_path: Path, name: str) -> None:
    before = Recording.from_log(LOGS[name])
    after: Recording = read_back(tmp_path / "trace.json", LOGS[name]).extra["recording"]
    for side in ("host", "device"):
        for column in ("start", "end", "run", "sequence", "stage"):
            assert np.array_equal(getattr(getattr(before, side), column), getattr(getattr(after, side), column))
    assert (before.inline, before.lost, before.notes) == (after.inline, after.lost, after.notes)


def test_launches_of_the_timeline_are_linked(tmp_path: Path) -> None:
    rank = read_back(tmp_path / "trace.json", LOGS["sink"])
    work = rank.devices[0].work
    assert rank.system == "ascendsched"
    assert (work.launch >= 0).all()
    assert rank.launches.is_graph.all()


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        (("first", "MatMul"), "MatMul"),
        (("product + tanh", "Fused"), "product + tanh"),
        (("a" * 50 + "b" * 50, "Fused"), "a" * 29 + "…" + "b" * 30),
    ],
)
def test_fused_work_is_called_by_its_operators(tmp_path: Path, node: tuple[str, str], shown: str) -> None:
    log = {**make_log([(0, 5, 1, 3, 0, "launch")], [(5, 9, 1, 3, 0, "kernel")]), "nodes": [node] * 4}
    rank = read_back(tmp_path / "trace.json", log)
    assert [rank.names[i] for i in rank.devices[0].work.name] == [shown]


def test_nodes_keep_their_names(tmp_path: Path) -> None:
    log = make_log([(0, 5, 1, 3, 0, "launch")], [(5, 9, 1, 3, 0, "kernel")])
    recording: Recording = read_back(tmp_path / "trace.json", log).extra["recording"]
    assert recording.node_name(int(recording.device.node[0])) == "node_3"
    assert recording.node_op(int(recording.device.node[0])) == "Add"
