"""Replays: with nothing changed they give the recorded time; with something changed, what a hand calculation gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendsched.profile import Recording
from ascendsched.profile.diagnosis import Diagnosis, diagnose
from ascendsched.profile.importers.own import rank_of
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.program import read_program
from ascendsched.profile.replay import Change, recorded_times, replay
from ascendsched.profile.whatif import Prediction, WhatIf, what_if

from . import profile_files as files
from .profile_logs import host_mode_log, make_log, sink_mode_log

COUNT = 20


def imported(path: Path, events: list[Any]) -> Diagnosis:
    return diagnose(read_profiles([files.kineto(path / "trace.json", events)]).ranks[0])


def recorded(log: dict[str, Any]) -> Diagnosis:
    return diagnose(rank_of(Recording.from_log(log), "cpu"))


def predict(diagnosis: Diagnosis) -> WhatIf:
    found = what_if(diagnosis)
    assert found is not None
    return found


def scenario(diagnosis: Diagnosis, name: str) -> Prediction:
    found = predict(diagnosis).prediction(name)
    assert found is not None, f"no scenario {name}"
    return found


def waiting_program(count: int = COUNT) -> list[files.Event]:
    """Every kernel takes 40 us; the host waits for it for 50 us, then needs 30 us until the next launch."""
    events = [files.span(0, count * 100, "step", "user_annotation")]
    for i in range(count):
        at = 100 * i
        events += [files.call(at + 10, 5, i + 1), files.kernel(at + 20, 40, i + 1)]
        events.append(files.span(at + 16, 49, "cudaStreamSynchronize", "cuda_runtime"))
    return events


def two_streams() -> list[files.Event]:
    """Kernels that alternate between two streams and never overlap, launched one by one."""
    events = [files.span(0, 2000, "step", "user_annotation")]
    for i in range(COUNT):
        events += [files.call(i * 100 + 70, 5, i + 1), files.kernel(i * 100 + 80, 10, i + 1, stream=7 + i % 2)]
    return events


@pytest.mark.parametrize(
    "events",
    [files.late_launches(), files.late_launches(period=4, length=30), waiting_program(), two_streams()],
    ids=["late", "queued", "waiting", "two streams"],
)
def test_a_replay_with_nothing_changed_repeats_the_recording(tmp_path: Path, events: list[Any]) -> None:
    diagnosis = imported(tmp_path, events)
    assert diagnosis.device is not None
    program = read_program(diagnosis.rank, diagnosis.device)
    before, after = recorded_times(program), replay(program, Change())
    for column in ("call_start", "call_end", "start", "end"):
        assert np.array_equal(getattr(before, column), getattr(after, column)), column
    assert predict(diagnosis).replay_error_pct == 0


@pytest.mark.parametrize(
    "log",
    [
        host_mode_log(infer_shape=50, tiling=400, launch=20),
        host_mode_log(kernel_ns=5_000, tiling=400, launch=20),
        sink_mode_log(runs=5, pause_ns=700),
    ],
    ids=["host bound", "device bound", "sink"],
)
def test_recordings_of_ours_repeat_too(log: dict[str, Any]) -> None:
    assert predict(recorded(log)).replay_error_pct == 0


def test_sink_scheduling_leaves_one_launch_and_the_kernels(tmp_path: Path) -> None:
    found = scenario(imported(tmp_path, files.late_launches(COUNT, period=100, length=10)), "sink")
    assert 200 <= found.us <= 200 + COUNT, "20 kernels of 10 us, each handed over in at most 1 us"
    assert found.idle_pct < 10
    assert any("1 launches instead of 20" in text for text in found.assumptions)


def test_a_wait_cuts_the_graph(tmp_path: Path) -> None:
    found = scenario(imported(tmp_path, [*waiting_program(), *_more_launches()]), "sink")
    assert any(f"{COUNT} launches instead of {2 * COUNT}" in text for text in found.assumptions)


def _more_launches() -> list[files.Event]:
    """A second, short kernel before each wait."""
    events: list[files.Event] = []
    for i in range(COUNT):
        events += [files.call(100 * i + 15.2, 0.5, 100 + i), files.kernel(100 * i + 61, 2, 100 + i)]
    return events


def test_without_waits_launches_run_ahead(tmp_path: Path) -> None:
    diagnosis = imported(tmp_path, waiting_program())
    found = scenario(diagnosis, "no_sync")
    assert found.us < predict(diagnosis).measured_us * 0.7
    assert found.idle_pct < predict(diagnosis).idle_pct


def test_a_faster_launch_saves_its_share_of_the_call(tmp_path: Path) -> None:
    diagnosis = imported(tmp_path, files.late_launches(COUNT, period=100))
    saved = predict(diagnosis).measured_us - scenario(diagnosis, "launch_10x").us
    assert saved == pytest.approx((COUNT - 1) * 5 * 0.9, abs=0.1), "each of 19 gaps holds one call of 5 us"


def test_streams_overlap_no_more_than_they_did(tmp_path: Path) -> None:
    found = scenario(imported(tmp_path, two_streams()), "sink")
    assert found.us >= COUNT * 10


def test_cached_tilings_take_their_time_away() -> None:
    diagnosis = recorded(host_mode_log(count=16, kernel_ns=10, tiling=400, launch=100))
    found = predict(diagnosis)
    assert found.measured_us - scenario(diagnosis, "cached_tiling").us == pytest.approx(16 * 0.4)


def test_a_pipeline_takes_as_long_as_its_longest_stage() -> None:
    diagnosis = recorded(host_mode_log(count=64, kernel_ns=10, tiling=400, alloc=400, launch=400))
    found = predict(diagnosis)
    assert scenario(diagnosis, "pipeline").us == pytest.approx(found.measured_us / 3, rel=0.05)


def test_sink_mode_has_no_sink_scenario() -> None:
    assert predict(recorded(sink_mode_log(runs=5))).prediction("sink") is None


def test_inline_runs_are_replayed_kernel_inside_launch() -> None:
    host, device = [], []
    for i in range(20):
        at = i * 1_000
        host.append((at, at + 200, 1, i, i, "tiling"))
        host.append((at + 200, at + 900, 1, i, i, "launch"))
        device.append((at + 250, at + 850, 1, i, i, "kernel"))
    diagnosis = recorded({**make_log(host, device), "inline": True})
    found = predict(diagnosis)
    assert found.replay_error_pct == 0
    assert scenario(diagnosis, "sink").us == pytest.approx(20 * 0.6, rel=0.1)
    assert found.prediction("pipeline") is None
    assert found.prediction("no_sync") is None


def test_runs_are_the_unit_of_our_recordings() -> None:
    found = predict(recorded(sink_mode_log(runs=5, count=16, kernel_ns=100)))
    assert (found.unit, found.count) == ("run", 5)
    assert found.measured_us == pytest.approx(1.61)


def test_a_profile_without_launches_cannot_be_replayed(tmp_path: Path) -> None:
    events = [files.kernel(i * 20, 10, None) for i in range(20)]
    assert what_if(imported(tmp_path, events)) is None


def test_unlaunched_work_is_noted(tmp_path: Path) -> None:
    events = [*files.late_launches(), *(files.kernel(3000 + i * 20, 10, None) for i in range(5))]
    assert any(
        "5 device activities without launch record" in note for note in predict(imported(tmp_path, events)).notes
    )


def test_ascend_profiles_are_replayed(tmp_path: Path) -> None:
    path = files.write(tmp_path / "trace_view.json", files.ascend_trace(level=1, collective=50))
    found = predict(diagnose(read_profiles([path]).ranks[0]))
    assert found.replay_error_pct == 0
    sink, tiling = found.prediction("sink"), found.prediction("cached_tiling")
    assert sink is not None
    assert tiling is not None
    assert sink.us < tiling.us < found.measured_us
