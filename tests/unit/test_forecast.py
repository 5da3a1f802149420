"""Forecasts of shapes: sequences with a rule are foreseen, others do no harm; schedules are resolved ahead."""

from __future__ import annotations

import gc
import itertools
import random
import threading
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from ascendsched.native import core
from ascendsched.tuning import foresight
from ascendsched.tuning.batching import decode_steps
from ascendsched.tuning.requests import Request

from . import onnx_models as models

WAIT_S = 60.0
Signature = tuple[int, ...]


def accuracy(sequence: list[Signature]) -> float:
    forecast = core.Forecast()
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
        [((1, 100 + n), (4, 1000 + 3 * n))[n % 2] for n in range(300)],
        [((1, n), (2, 5000 + 2 * n), (3, 9000 - n))[n % 3] for n in range(300)],
    ],
    ids=[
        *("same", "growing", "shrinking", "alternating", "periodic", "periodic and growing", "decode again and again"),
        *("two that take turns", "three that take turns"),
    ],
)
def test_sequences_with_a_rule_are_foreseen(sequence: list[Signature]) -> None:
    assert accuracy(sequence) > 0.9


@pytest.mark.parametrize("period", [5, 7, 11, 16, 23, 40])
def test_a_period_in_which_signatures_come_several_times_is_foreseen_to_the_last(period: int) -> None:
    chance = random.Random(period)
    for _ in range(5):
        once = [(chance.randrange(max(2, period // 3)), 8) for _ in range(period)]
        forecast = core.Forecast()
        for signature in once * (300 // period + 12):
            forecast.observe(signature)
        before = forecast.right
        for signature in once * 5:
            forecast.observe(signature)
        assert forecast.right - before == 5 * period


def test_decode_steps_are_foreseen_better_than_by_the_stride_rule() -> None:
    chance = random.Random(0)
    arrivals = sorted(chance.uniform(0, 200) for _ in range(300))
    requests = [Request(at, chance.randrange(1, 2000), chance.randrange(2, 80)) for at in arrivals]
    steps: list[Signature] = [tuple(step) for step in decode_steps(requests)]
    strides = [tuple(2 * b - a for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(steps)]
    stride_rule = sum(a == b for a, b in zip(strides, steps[2:], strict=False)) / len(steps)
    one_more = sum(b == (a[0], a[1] + 1) for a, b in itertools.pairwise(steps)) / len(steps)
    assert accuracy(steps) > max(stride_rule, one_more - 0.01)  # who comes and goes, nobody knows


def test_what_followed_once_does_not_outvote_what_usually_follows() -> None:
    chance, level, sequence = random.Random(3), 0, []
    for n in range(4000):
        level += 0 if chance.random() < 0.8 else chance.randrange(1, 9)
        sequence.append((level, n))
    usual = sum(a[0] == b[0] for a, b in itertools.pairwise(sequence)) / len(sequence)
    assert accuracy(sequence) > usual - 0.01


def test_noise_is_not_foreseen_with_confidence() -> None:
    chance = random.Random(1)
    forecast = core.Forecast()
    for _ in range(500):
        forecast.observe((chance.randrange(10**6),))
    assert forecast.confidence < 0.05


@pytest.mark.parametrize("start", [(9,), (2**63 - 3,)], ids=["below zero", "too large"])
def test_what_is_no_dim_is_not_foreseen(start: Signature) -> None:
    forecast, step = core.Forecast(), -4 if start == (9,) else 1
    for n in range(3):
        foreseen = forecast.observe([start[0] + n * step])
    assert foreseen in (None, [start[0] + 2 * step])


def test_a_signature_of_another_length_begins_a_new_sequence_of_steps() -> None:
    forecast = core.Forecast()
    for n in range(50):
        forecast.observe([n, 8])
        forecast.observe([n])
    assert forecast.observed == 100
    assert [forecast.observe([]) for _ in range(9)][-1] == []


def test_what_came_long_ago_is_forgotten_but_forecasts_go_on() -> None:
    forecast, chance = core.Forecast(), random.Random(3)
    for _ in range(20_000):
        forecast.observe([chance.randrange(10**9), chance.randrange(10**9)])
    right = forecast.right
    for n in range(300):
        forecast.observe([4, n])
    assert forecast.right - right > 250


# --- schedules resolved ahead ----------------------------------------------------------------------------------------


def rows(count: int) -> dict[str, Any]:
    return {"x": np.ones((count, 8), np.float32)}


def predicting(model: Any = None, mode: str = "auto", **options: Any) -> asc.Executable:
    model = models.mlp(width=8, layers=2) if model is None else model
    return asc.compile(model, mode=mode, threads=1, options=asc.Options(predict=True, **options))


def run_all(exe: asc.Executable, counts: Any) -> None:
    for n in counts:
        exe.run(rows(n))
        assert core.wait_foreseen(exe._core, WAIT_S)


@pytest.fixture(autouse=True)
def no_pause_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor any share of the time: what happens does not depend on how fast the machine is."""
    set_policy(monkeypatch, min_pause=0.0, free_ns=1e15)


def set_policy(monkeypatch: pytest.MonkeyPatch, **changes: float) -> None:
    monkeypatch.setattr(foresight, "POLICY", replace(foresight.POLICY, **changes))


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_foreseen_shapes_are_resolved_before_they_come(mode: str) -> None:
    exe, plain = predicting(mode=mode), asc.compile(models.mlp(width=8, layers=2), mode=mode, threads=1)
    run_all(exe, range(1, 41))
    stats = exe.stats()
    assert stats["ahead_used"] >= 25
    assert stats["ahead_wasted"] == 0
    assert stats["predict_right"] >= 35
    assert stats["submits" if mode != "host" else "replays"] >= 25
    np.testing.assert_array_equal(exe(rows(41)["x"]), plain(rows(41)["x"]))
    assert "prediction: " in exe.explain()


def test_nothing_is_resolved_ahead_without_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    set_policy(monkeypatch, min_pause=1e12)
    exe = predicting()
    run_all(exe, range(1, 41))
    assert exe.stats()["ahead_resolved"] <= 1  # the first, before it is known what one takes
    assert exe.stats()["ahead_no_slack"] > 20


def test_nothing_is_resolved_ahead_beyond_the_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    set_policy(monkeypatch, free_ns=0.0, cpu_share=0.0)
    exe = predicting()
    run_all(exe, range(1, 41))
    assert exe.stats()["ahead_resolved"] <= 1
    assert exe.stats()["ahead_no_slack"] > 20


def test_shapes_without_a_rule_are_not_resolved_ahead() -> None:
    exe, chance = predicting(), random.Random(2)
    run_all(exe, (chance.randrange(1, 5000) for _ in range(60)))
    assert exe.stats()["ahead_resolved"] <= 2


def test_wrong_forecasts_are_counted_as_wasted() -> None:
    exe = predicting()
    run_all(exe, range(1, 21))
    run_all(exe, [3] * 2 * foresight.POLICY.patience)
    assert exe.stats()["ahead_wasted"] >= 1
    assert exe.stats()["ahead_wasted_ns"] > 0


def test_what_is_resolved_ahead_stays_within_the_cache_bound() -> None:
    exe = predicting(schedule_cache_bytes=20_000)
    run_all(exe, range(1, 61))
    assert exe.stats()["schedule_bytes"] <= 20_000


def test_what_was_dropped_is_resolved_ahead_again() -> None:
    exe = predicting()
    run_all(exe, [n for _ in range(6) for n in range(1, 11)])
    before = exe.stats()["ahead_resolved"]
    for _ in range(10):
        exe._core.drop_cache_entries(0)
    run_all(exe, [n for _ in range(4) for n in range(1, 11)])
    assert exe.stats()["ahead_resolved"] > before


def test_prediction_goes_on_when_the_schedule_cache_is_on_again() -> None:
    exe = predicting()
    run_all(exe, range(1, 21))
    exe.resize_caches(1 << 20, 0)
    run_all(exe, range(21, 41))
    assert "prediction is off: " in exe.explain()
    exe.resize_caches(1 << 20, 1 << 20)
    before = exe.stats()["ahead_used"]
    run_all(exe, range(41, 61))
    assert exe.stats()["ahead_used"] >= before + 15


def test_prediction_is_off_where_contents_decide() -> None:
    exe = predicting(models.branches())
    for n in range(1, 30):
        exe.run({"x": np.ones((n, 3), np.float32)})
        core.wait_foreseen(exe._core, WAIT_S)
    assert exe.stats()["ahead_resolved"] == 0
    assert "prediction is off: " in exe.explain()


def test_inputs_of_an_open_rank_are_foreseen_too() -> None:
    exe = predicting(models.model([h.make_node("Neg", ["x"], ["y"])], [models.info("x")], [models.info("y")]))
    for dims in (1, 2, 3):
        for n in range(1, 30):
            exe.run({"x": np.ones((2,) * (dims - 1) + (n,), np.float32)})
            assert core.wait_foreseen(exe._core, WAIT_S)
    assert exe.stats()["predict_runs"] == 29
    assert exe.stats()["ahead_used"] >= 45


def test_bound_and_asynchronous_runs_are_foreseen_too() -> None:
    exe = predicting()
    for n in range(1, 41):
        exe.bind(rows(n)).run() if n % 2 else exe.run_async(rows(n)).wait()
        assert core.wait_foreseen(exe._core, WAIT_S)
    assert exe.stats()["ahead_used"] >= 25


def test_an_executable_that_foresees_can_go_at_any_time() -> None:
    for n in range(1, 30):
        exe = predicting()
        for count in range(1, n):
            exe.run(rows(count))
        gone = weakref.ref(exe)
        del exe
        gc.collect()
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
    assert core.wait_foreseen(exe._core, WAIT_S)
    assert exe.stats()["predict_runs"] == 150


@pytest.mark.parametrize("shapes", [[], [[1, 7]], [[-1, 8]], [[1, 8], [1]], [[2**60, 8]], [[1] * 9]])
def test_shapes_that_do_not_fit_are_not_resolved_ahead(shapes: list[list[int]]) -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), threads=1)
    with pytest.raises(asc.AscendSchedError):
        core.resolve_ahead(exe._core, shapes)
    exe.run(rows(2))


def test_resolving_ahead_says_what_it_did() -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), threads=1)
    assert [core.resolve_ahead(exe._core, [[4, 8]]) for _ in range(2)] == [True, False]
    assert core.resolve_ahead(asc.compile(models.branches(), threads=1)._core, [[1, 3]]) is None
    off = asc.compile(models.mlp(width=8, layers=2), threads=1, options=asc.Options(schedule_cache_bytes=0))
    assert core.resolve_ahead(off._core, [[4, 8]]) is None
    runs = exe.run_async(rows(6)), core.resolve_ahead(exe._core, [[7, 8]]), exe.run_async(rows(7))
    assert runs[2].wait()["y"].shape[0] == 7
    assert runs[0].wait()["y"].shape[0] == 6
