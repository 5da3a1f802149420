"""Cache sizes follow what the caches do, within a bound, and every decision can be replayed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.tuning import governor as governor_module
from ascendsched.tuning import workers as workers_module
from ascendsched.tuning.governor import MIN_BYTES, REST, CacheState, Governor, Window, decide, replay
from ascendsched.tuning.workers import WorkerState, WorkerWindow, decide_workers

from . import onnx_models as models

BUSY = Window(hits=500, misses=500, evictions=200, used_bytes=8 << 20)


def test_a_cache_under_pressure_grows_while_there_is_room() -> None:
    state, event = decide("tiling", CacheState(8 << 20), BUSY, 100 << 20)
    assert state.limit_bytes == 16 << 20
    assert event is not None
    assert "evict" in event.why
    assert decide("tiling", CacheState(8 << 20), BUSY, 1 << 20)[1] is None


def test_a_cache_that_grew_in_vain_returns_and_rests() -> None:
    state, _ = decide("tiling", CacheState(8 << 20), BUSY, 100 << 20)
    state, event = decide("tiling", state, BUSY, 100 << 20)
    assert event is not None
    assert state == CacheState(8 << 20, None, REST)
    for _ in range(REST - 1):
        state, event = decide("tiling", state, BUSY, 100 << 20)
        assert event is None
    assert decide("tiling", state, BUSY, 100 << 20)[1] is not None


def test_a_cache_that_grew_to_good_effect_stays() -> None:
    state, _ = decide("tiling", CacheState(8 << 20), BUSY, 100 << 20)
    state, event = decide("tiling", state, Window(900, 100, 0, 15 << 20), 100 << 20)
    assert event is None
    assert state == CacheState(16 << 20)


def test_a_cache_that_is_nearly_empty_shrinks_to_its_least_size() -> None:
    state = CacheState(8 << 20)
    for _ in range(10):
        state, _ = decide("tiling", state, Window(1000, 0, 0, 1000), 0)
    assert state.limit_bytes == MIN_BYTES


def test_few_look_ups_decide_nothing() -> None:
    assert decide("tiling", CacheState(8 << 20), Window(1, 1, 1, 0), 100 << 20) == (CacheState(8 << 20), None)


def run_and_step(governor: Governor, lengths: list[int]) -> None:
    for i, length in enumerate(lengths):
        governor.exe.run({"x": np.ones((length, 8), np.float32)})
        if i % 100 == 99:
            governor.step()


def test_caches_stay_within_the_bound_whatever_comes(tmp_path: Path) -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), threads=1)
    governor = Governor(exe, 6 << 20, 1 << 20, 1 << 20, log=tmp_path / "log")
    chance = random.Random(0)
    working_set = [chance.randrange(1, 3000) for _ in range(600)]
    run_and_step(governor, working_set * 4 + list(range(3000, 4000)))
    assert sum(state.limit_bytes for state in governor._states.values()) <= 6 << 20
    decisions = replay(tmp_path / "log")
    assert len(decisions) == 34
    assert all(made == again for made, again in decisions)
    assert [event for made, _ in decisions for event in made] == governor.events
    assert f"{len(governor.events)} changes" in governor.explain()


@pytest.mark.parametrize(
    "settings",
    [
        {"max_bytes": 0},
        {"max_bytes": 2.5},
        {"max_bytes": 2 << 20, "tiling_bytes": 4 << 20},
        {"max_bytes": 64 << 20, "max_workers": 0},
        {"max_bytes": 64 << 20, "max_workers": 15},
        {"max_bytes": 64 << 20, "max_workers": True},
    ],
)
def test_bounds_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(asc.PlanError, match=r"\[governor\]"):
        Governor(asc.compile(models.mlp(width=8, layers=1), threads=1), **settings)


@pytest.mark.parametrize("text", ["x", "[]", "{}", '{"states": 3}', "[" * 100_000])
def test_files_that_are_no_log_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text, encoding="utf-8")
    with pytest.raises(asc.GraphError, match="no log"):
        replay(tmp_path / "log")
    with pytest.raises(asc.GraphError):
        replay(tmp_path)


def test_a_log_that_was_cut_or_edited_is_refused_with_the_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    governor = Governor(asc.compile(models.mlp(width=8, layers=1), threads=1), 64 << 20, log=log)
    run_and_step(governor, list(range(1, 301)))
    first, second, last = log.read_text(encoding="utf-8").splitlines()
    for broken in (last[:-20], last.replace('"max_bytes": ', '"max_bytes": Infinity, "was": ', 1)):
        log.write_text("\n".join([first, second, broken]), encoding="utf-8")
        with pytest.raises(asc.GraphError, match="no log of decisions from line 3"):
            replay(log)


# --- workers -----------------------------------------------------------------------------------------------------

MISSING = WorkerWindow(pipelined=100, hits=800, misses=200, first_ns=9e5, cpu_share=0.5)


def test_a_worker_is_added_where_tilings_are_missing_and_cpus_are_free_up_to_the_bound() -> None:
    state, event = decide_workers(WorkerState(1), MISSING, 3)
    assert (state.count, event and event.what) == (2, "workers")
    state, event = decide_workers(state, WorkerWindow(100, 800, 200, 6e5, 0.6), 3)
    assert state.count == 3
    assert decide_workers(state, WorkerWindow(100, 800, 200, 4e5, 0.6), 3) == (WorkerState(3), None)


def test_a_worker_that_saves_nothing_goes_and_none_is_added_for_a_while() -> None:
    state, _ = decide_workers(WorkerState(2), MISSING, 4)
    state, event = decide_workers(state, MISSING, 4)
    assert state == WorkerState(2, None, workers_module.REST)
    assert "saved nothing" in (event.why if event else "")
    for _ in range(workers_module.REST - 1):
        state, event = decide_workers(state, MISSING, 4)
        assert event is None
    assert decide_workers(state, MISSING, 4)[0].count == 3


@pytest.mark.parametrize(
    ("window", "why"),
    [
        (WorkerWindow(100, 1000, 0, None, 0.5), "0.00 tilings made a run"),
        (WorkerWindow(100, 800, 200, 9e5, 0.95), "95% of the CPUs in use"),
    ],
)
def test_workers_go_one_by_one_where_nothing_is_missing_or_no_cpu_is_free(window: WorkerWindow, why: str) -> None:
    state, counts = WorkerState(4), []
    for _ in range(5):
        state, event = decide_workers(state, window, 4)
        counts.append(state.count)
        assert event is None or why in event.why
    assert counts == [3, 2, 1, 1, 1]


def test_few_pipelined_runs_decide_nothing_about_workers() -> None:
    assert decide_workers(WorkerState(2), WorkerWindow(1, 0, 1, 1.0, 0.0), 4) == (WorkerState(2), None)


def _layers_of_different_widths() -> asc.Graph:
    """Widths of no other test, since executables share tilings; and no two alike, since like layers share one, too."""
    graph = asc.Graph()
    x = graph.input("x", "float32", (None, 13))
    for before, after in ((13, 11), (11, 17), (17, 19)):
        weights = np.full((before, after), 1 / before, np.float32)
        x = graph.op("Tanh", graph.op("MatMul", x, graph.constant(weights)))
    graph.output(x, "y")
    return graph


def test_workers_change_while_running_and_every_change_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = asc.Options(pipeline_workers=2)
    exe = asc.compile(_layers_of_different_widths(), mode="host", threads=2, options=options)
    monkeypatch.setattr(governor_module.Clock, "cpu_share", lambda _: 0.5)
    governor = Governor(exe, 64 << 20, log=tmp_path / "log", max_workers=4)
    assert exe.stats()["pipeline_workers"] == 2
    for lengths in (range(1, 41), range(41, 81), range(81, 121), [7] * 40):
        for n in lengths:
            x = np.full((n, 13), 0.5, np.float32)
            np.testing.assert_array_equal(exe.run_async({"x": x}).wait()["y"], exe.run({"x": x})["y"])
        governor.step()
        assert exe.stats()["pipeline_workers"] == governor._workers.count <= 4
    events = [event for event in governor.events if event.what == "workers"]
    assert (events[0].before, events[0].after) == (2, 3)
    decisions = replay(tmp_path / "log")
    assert all(made == again for made, again in decisions)
    assert [event for made, _ in decisions for event in made] == governor.events
    assert "workers" in governor.explain()


@pytest.mark.parametrize("workers", [0, 15, True, 2.0, "3"])
def test_numbers_of_workers_that_make_no_sense_are_refused(workers: Any) -> None:
    with pytest.raises(asc.GraphError, match="expected 1 to 14"):
        asc.compile(models.mlp(width=8, layers=1), threads=1).resize_workers(workers)


def test_more_workers_than_the_bound_are_ended_at_once() -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), mode="host", threads=2, options=asc.Options(pipeline_workers=9))
    x = np.ones((3, 8), np.float32)
    before = exe.run_async({"x": x}).wait()["y"]
    Governor(exe, 64 << 20, max_workers=2)
    assert exe.stats()["pipeline_workers"] == 2
    for workers in (1, 5, 14, 1):
        exe.resize_workers(workers)
        np.testing.assert_array_equal(exe.run_async({"x": x}).wait()["y"], before)
        exe.run_async({"x": np.ones((workers + 3, 8), np.float32)}).wait()
