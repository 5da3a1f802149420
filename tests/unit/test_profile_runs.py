"""Profiles of our own runs: what-if, report, counters, causes; read off recorded spans, never off a clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import ascendsched as asc
from ascendsched.cli import main
from ascendsched.errors import AscendSchedError
from ascendsched.profile import Profile, Recording, judge
from ascendsched.profile.experiment import Estimate, run_rounds, run_times

from . import onnx_models
from .profile_logs import Row, make_log, sink_mode_log

X = {"x": np.ones((1, 16), np.float32)}
LAYERS = 30
MS = 1_000_000


def compiled(device: str, mode: str) -> asc.Executable:
    return asc.compile(onnx_models.mlp(layers=LAYERS), device=device, mode=mode, threads=1)


def profiled(device: str, mode: str, runs: int = 8) -> Profile:
    """Four runs in flight: the device stays fed even where this process is held up for a while."""
    executable = compiled(device, mode)
    run_times(executable, X, 3, 4)
    with executable.profile() as profile:
        run_times(executable, X, runs, 4)
    return profile


def test_a_chain_of_tiny_tasks_is_host_bound_in_host_mode_and_not_in_sink_mode():
    # A launch takes longer than the task; one submit takes no longer than one launch.
    host, sink = (profiled("timed:us=100,launch=200", mode) for mode in ("host", "sink"))
    assert host.verdict.verdict == "host_bound"
    assert max(host.causes, key=lambda name: host.causes[name]) == "host_late.launch"
    assert sink.verdict.verdict in {"device_bound", "balanced"}


def test_long_tasks_are_device_bound_in_host_mode():
    assert profiled("timed:us=400", "host", runs=4).verdict.verdict == "device_bound"


def test_sink_mode_is_predicted_from_host_mode():
    # Many runs: where this process is held up, some of them end together, and the time from end to end is a median.
    found = profiled("timed:us=100,launch=200", "host", runs=24).what_if()
    assert (found.unit, found.replay_error_pct) == ("run", 0)
    sink = found.prediction("sink")
    assert sink is not None
    kernels_us = 2 * LAYERS * 100
    assert kernels_us * 0.7 <= sink.us < found.measured_us
    assert sink.idle_pct < found.idle_pct


def test_counters_are_those_of_the_block():
    executable = compiled("null", "host")
    executable.run(X)
    with executable.profile() as profile:
        for _ in range(3):
            executable.run(X)
    assert profile.counters["runs"] == 3
    assert profile.counters["launches"] == 3 * 2 * LAYERS
    assert profile.counters["tiling_bytes"] > 0, "bytes are levels, not rises"


def test_queue_depth_counts_what_was_launched_and_not_done():
    host: list[Row] = [(i * 10, i * 10 + 5, 1, i, i, "launch") for i in range(4)]
    device: list[Row] = [(20 + i * 100, 100 + i * 100, 1, i, i, "kernel") for i in range(4)]
    assert Recording.from_log(make_log(host, device)).queue_depth().tolist() == [0, 1, 2, 3]


def test_reuse_is_the_share_of_tasks_that_were_not_resolved():
    host: list[Row] = [(i, i + 1, 1, i, i, "tiling") for i in range(4)] + [(10, 11, 2, 0, 9, "tiling")]
    device: list[Row] = [
        (20 + 10 * r + i, 21 + 10 * r + i, r, i, 10 * r + i, "kernel") for r in (1, 2) for i in range(4)
    ]
    runs, shares = Recording.from_log(make_log(host, device)).reuse()
    assert runs.tolist() == [1, 2]
    assert shares == [0, 75]


def _with_pause(stage: str | None) -> Profile:
    """Thirty tasks of one run each, 20 us long and launched in time, and 5 ms before the twentieth."""
    host: list[Row] = []
    device: list[Row] = []
    now = 0
    for i in range(30):
        pause = 5 * MS if i == 20 else 0
        if pause and stage is not None:
            host.append((now, now + pause, i + 1, i, i, stage))
        now += pause
        host.append((now, now + 1_000, i + 1, i, i, "launch"))
        device.append((now + 1_000, now + 21_000, i + 1, i, i, "kernel"))
        now += 21_000
    return Profile(make_log(host, device))


@pytest.mark.parametrize(
    ("stage", "cause"),
    [(None, "no_work"), ("sync", "sync"), ("alloc", "host_late.alloc"), ("tiling", "host_late.tiling")],
)
def test_whatever_holds_the_device_up_is_named(stage: str | None, cause: str):
    profile = _with_pause(stage)
    assert max(profile.causes, key=lambda name: profile.causes[name]) == cause
    assert profile.causes[cause] == pytest.approx(5 * MS, rel=0.01)
    assert cause in profile.summary()


def test_a_pause_of_the_caller_is_part_of_the_sentence():
    assert _with_pause(None).verdict.sentence.endswith("% of the recording no run was in flight (no_work).")
    assert "no_work" not in _with_pause("sync").verdict.sentence


def test_the_report_names_the_cause_at_the_gap(tmp_path: Path):
    html = Path(_with_pause("sync").save_html(tmp_path / "report.html")).read_text(encoding="utf-8")
    data = json.loads(html.partition('id="data">')[2].partition("</script>")[0])
    longest = data["ranks"][0]["top_gaps"][0]
    assert (longest["cause"], longest["parts_us"]["sync"]) == ("sync", 5_000)


def test_one_run_can_be_judged_alone(tmp_path: Path):
    path = tmp_path / "trace.json"
    Profile(sink_mode_log(runs=3, count=16, pause_ns=500)).save_trace(path)
    result = CliRunner().invoke(main, ["diagnose", str(path), "--step", "2", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert (told["steps"], told["device_activities"], told["idle_us"]) == ([2], 16, 0)


def test_lost_spans_are_counted_and_noted():
    executable = compiled("null", "host")
    with executable.profile(capacity_bytes=4096) as profile:
        executable.run(X)
    assert profile.recording.lost > 0
    assert any("spans lost" in note for note in profile.verdict.notes)


def test_what_if_of_an_empty_profile_says_what_to_do():
    with pytest.raises(AscendSchedError, match="run the executable inside it"):
        Profile(make_log([], [])).what_if()


def test_an_estimate_lies_within_its_interval():
    few, many = Estimate.of([3.0, 1.0, 2.0]), Estimate.of([float(i) for i in range(101)])
    assert (few.low, few.value, few.high) == (1, 2, 3)
    assert (many.low, many.value, many.high) == (40, 50, 60)


def test_rounds_predict_and_measure_in_turn():
    experiment = run_rounds(compiled("null", "host"), compiled("null", "sink"), X, rounds=3, in_flight=2)
    assert [len(column) for column in (experiment.host_us, experiment.predicted_us, experiment.sink_us)] == [3, 3, 3]
    assert set(experiment.replay_error_pct) == {0}
    assert judge(experiment.profile.recording).figures["runs"] == experiment.runs + 1


def test_rounds_on_a_device_of_virtual_time_are_measured_in_that_time():
    experiment = run_rounds(compiled("sim", "host"), compiled("sim", "sink"), X, rounds=3, in_flight=1)
    assert experiment.is_virtual
    assert experiment.host_us == []  # what the caller's clock says is no time of this device
    assert experiment.recorded_us == [experiment.profile.what_if().measured_us]
    assert len(experiment.sink_us) == 1
    assert 0.5 < experiment.ratio().value < 2


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save_model(onnx_models.mlp(layers=LAYERS), path)
    return path


def command(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(main, ["profile", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_command_writes_report_and_trace(model: Path, tmp_path: Path):
    html, trace = tmp_path / "report.html", tmp_path / "trace.json"
    options = ["--device", "null", "--shape", "x=1,16", "--rounds", "3", "--what-if", "--html", html, "--trace", trace]
    told = command(model, *options)
    assert told["schema"] == "ascendsched.profile/1"
    assert {"sink_predicted_us", "sink_measured_us", "predicted_by_measured"} <= set(told["experiment"])
    assert told["experiment"]["sink_predicted_us"]["low"] <= told["experiment"]["sink_predicted_us"]["value"]
    held = json.loads(html.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0])
    assert held["experiment"] == told["experiment"]
    assert held["ranks"][0]["what_if"] == told["what_if"]
    assert held["counters"] == told["counters"]
    assert json.loads(trace.read_text(encoding="utf-8"))["schema"] == "ascendsched.trace/1"


def test_without_what_if_only_the_recording_is_told(model: Path):
    told = command(model, "--device", "null", "--shape", "x=1,16", "--rounds", "1")
    assert "what_if" not in told
    assert "sink_measured_us" not in told["experiment"]
    assert told["verdict"]["verdict"] in {"host_bound", "balanced", "device_bound", "dependency_bound"} | {
        "insufficient_evidence"
    }


def test_the_text_shows_prediction_and_measurement(model: Path):
    options = ["--device", "null", "--shape", "x=1,16", "--rounds", "2", "--what-if"]
    result = CliRunner().invoke(main, ["profile", str(model), *options])
    assert result.exit_code == 0, result.output
    for text in ("sink mode, predicted", "sink mode, measured", "The prediction is off by", "launch calls 4 × faster"):
        assert text in result.output
