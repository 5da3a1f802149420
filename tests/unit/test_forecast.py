"""Forecasts of shapes: sequences with a rule are foreseen, others do no harm; schedules are resolved ahead."""

from __future__ import annotations

import gc
import itertools
import random
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.tuning import ahead as ahead_module
from ascendsched.tuning.batching import decode_steps
from ascendsched.tuning.forecast import Forecast
from ascendsched.tuning.predictors import MAX_CONTEXTS, Frequent, Last, Markov, Periodic, Signature, Steps
from ascendsched.tuning.requests import Request

from . import onnx_models as models

WAIT_S = 60.0


def accuracy(sequence: list[Signature]) -> float:
    forecast = Forecast()
    for signature in sequence:
        forecast.observe(signature)
    assert forecast.observed == len(sequence)
    return forecast.right / len(sequence)


@pytest.mark.parametrize(
    "sequence",
    [
        [(4, 8)] * 200,
        [(1, n) for n in range(300)],
        [(1, 1000 - 3 * n) for n in range(300)],
        [((3, 100), (9, 5))[n % 2] for n in range(300)],
        [(n * 7 % 13, n % 13) for n in range(600)],
        [((8, 32, 32, 64)[n % 4], n) for n in range(400)],
        [(1, 20 + n % 50) for n in range(1200)],
    ],
    ids=["same", "growing", "shrinking", "alternating", "periodic", "periodic and growing", "decode again and again"],
)
def test_sequences_with_a_rule_are_foreseen(sequence: list[Signature]) -> None:
    assert accuracy(sequence) > 0.9


def test_decode_steps_are_foreseen_better_than_by_the_stride_rule() -> None:
    chance = random.Random(0)
    arrivals = sorted(chance.uniform(0, 200) for _ in range(300))
    requests = [Request(at, chance.randrange(1, 2000), chance.randrange(2, 80)) for at in arrivals]
    steps: list[Signature] = [tuple(step) for step in decode_steps(requests)]
    strides = [tuple(2 * b - a for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(steps)]
    stride_rule = sum(a == b for a, b in zip(strides, steps[2:], strict=False)) / len(steps)
    assert accuracy(steps) > stride_rule


def test_noise_is_not_foreseen_with_confidence() -> None:
    chance = random.Random(1)
    forecast = Forecast()
    for _ in range(500):
        forecast.observe((chance.randrange(10**6),))
    assert forecast.confidence < 0.05


def test_nothing_below_zero_is_foreseen() -> None:
    stride = Steps("stride", Last())
    for signature in ((9,), (2,)):
        stride.observe(signature)
    assert stride.predict() is None


def test_tables_are_bounded() -> None:
    markov, periodic, frequent = Markov(1), Periodic(), Frequent()
    for n in range(3 * MAX_CONTEXTS):
        for predictor in (markov, periodic, frequent):
            predictor.observe((n,))
    assert len(markov._table) <= MAX_CONTEXTS
    assert len(periodic._where) <= 256
    assert len(frequent._counts) <= 256


# --- schedules resolved ahead ----------------------------------------------------------------------------------------


def rows(count: int) -> dict[str, Any]:
    return {"x": np.ones((count, 8), np.float32)}


def predicting(mode: str = "auto", **options: Any) -> Any:
    return asc.compile(
        models.mlp(width=8, layers=2), mode=mode, threads=1, options=asc.Options(predict=True, **options)
    )


def run_growing(exe: Any, count: int, pause_ns: float = 1e12) -> None:
    for n in range(1, count + 1):
        exe._ahead._slack_ns = pause_ns
        exe.run(rows(n))
        assert exe._ahead.wait_idle(WAIT_S)


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_foreseen_shapes_are_resolved_before_they_come(mode: str) -> None:
    exe, plain = predicting(mode), asc.compile(models.mlp(width=8, layers=2), mode=mode, threads=1)
    run_growing(exe, 40)
    stats = exe.stats()
    assert stats["ahead_used"] >= 25
    assert stats["ahead_wasted"] == 0
    assert stats["predict_right"] >= 35
    assert stats["submits" if mode != "host" else "replays"] >= 25
    np.testing.assert_array_equal(exe(rows(41)["x"]), plain(rows(41)["x"]))
    assert "prediction: " in exe.explain()


def test_nothing_is_resolved_ahead_without_slack() -> None:
    exe = predicting()
    run_growing(exe, 12)
    before = exe.stats()["ahead_resolved"]
    for n in range(13, 40):
        exe._ahead._cost_ns, exe._ahead._end_ns = 1e15, 0
        exe.run(rows(n))
        exe._ahead.wait_idle(WAIT_S)
    assert exe.stats()["ahead_resolved"] == before
    assert exe.stats()["ahead_no_slack"] > 20


def test_shapes_without_a_rule_are_not_resolved_ahead() -> None:
    exe, chance = predicting(), random.Random(2)
    for _ in range(60):
        exe._ahead._slack_ns = 1e12
        exe.run(rows(chance.randrange(1, 5000)))
        exe._ahead.wait_idle(WAIT_S)
    assert exe.stats()["ahead_resolved"] <= 2


def test_wrong_forecasts_are_counted_as_wasted() -> None:
    exe = predicting()
    run_growing(exe, 20)
    for _ in range(2 * ahead_module.PATIENCE):
        exe.run(rows(3))
        exe._ahead.wait_idle(WAIT_S)
    assert exe.stats()["ahead_wasted"] >= 1
    assert exe.stats()["ahead_wasted_ns"] > 0


def test_what_is_resolved_ahead_stays_within_the_cache_bound() -> None:
    exe = predicting(schedule_cache_bytes=20_000)
    run_growing(exe, 60)
    assert exe.stats()["schedule_bytes"] <= 20_000


def test_prediction_is_off_where_contents_decide() -> None:
    exe = asc.compile(models.branches(), threads=1, options=asc.Options(predict=True))
    for n in range(1, 30):
        exe._ahead._slack_ns = 1e12  # type: ignore[attr-defined]
        exe.run({"x": np.ones((n, 3), np.float32)})
        exe._ahead.wait_idle(WAIT_S)  # type: ignore[attr-defined]
    assert exe.stats()["ahead_resolved"] == 0


def test_the_thread_ends_with_the_executable() -> None:
    exe = predicting()
    exe.run(rows(1))
    thread, gone = exe._ahead._thread, weakref.ref(exe)
    del exe
    gc.collect()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert gone() is None


def test_runs_of_several_threads_are_watched_together() -> None:
    exe = predicting()
    threads = [
        threading.Thread(target=lambda start=start: [exe.run(rows(start + n)) for n in range(50)])
        for start in (1, 2, 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert exe._ahead.wait_idle(WAIT_S)
    stats = exe.stats()
    assert stats["predict_runs"] + stats["ahead_unseen"] == 150


@pytest.mark.parametrize("shapes", [[], [[1, 7]], [[-1, 8]], [[1, 8], [1]], [[2**60, 8]], [[1] * 9]])
def test_shapes_that_do_not_fit_are_not_resolved_ahead(shapes: list[list[int]]) -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), threads=1)
    with pytest.raises(asc.AscendSchedError):
        exe._core.resolve_ahead(shapes)
    exe.run(rows(2))


def test_resolving_ahead_says_what_it_did() -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), threads=1)
    assert [exe._core.resolve_ahead([[4, 8]]) for _ in range(2)] == [True, False]
    assert asc.compile(models.branches(), threads=1)._core.resolve_ahead([[1, 3]]) is None
    off = asc.compile(models.mlp(width=8, layers=2), threads=1, options=asc.Options(schedule_cache_bytes=0))
    assert off._core.resolve_ahead([[4, 8]]) is None
    runs = exe.run_async(rows(6)), exe._core.resolve_ahead([[7, 8]]), exe.run_async(rows(7))
    assert runs[2].wait()["y"].shape[0] == 7
    assert runs[0].wait()["y"].shape[0] == 6
