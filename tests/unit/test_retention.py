"""What is foreseen stays in the schedule caches, whatever else comes, and does no harm where nothing has a rule."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.native import core
from ascendsched.tuning.governor import Governor, replay
from ascendsched.tuning.retention import decide_victim

from . import onnx_models as models

NEVER, TRUSTED, OFF = -1, 0.5, 2.0


def hits(sequence: list[list[int]], entries: int, confidence: float) -> float:
    return core.measure_retention(sequence, entries, confidence) / len(sequence)


def test_what_comes_last_goes() -> None:
    assert core.choose_victim([3, 9, 1], 2) == 1
    event = decide_victim([3, 9, 1], 2)
    assert event is not None
    assert (event.before, event.after) == (2, 9)


def test_the_new_one_is_not_kept_where_all_others_come_before() -> None:
    assert core.choose_victim([3, 9, 1], 10) == -1
    assert core.choose_victim([3, 9, 1], 9) == -1
    assert core.choose_victim([3, 9, 1], NEVER) == -1
    event = decide_victim([3, 9, 1], NEVER)
    assert event is not None
    assert "not kept" in event.why


def test_the_usual_rule_decides_among_what_is_not_foreseen() -> None:
    assert core.choose_victim([3, NEVER, 1], 2) is None
    assert core.choose_victim([3, NEVER, 1], NEVER) is None
    assert decide_victim([NEVER], 2) is None


@pytest.mark.parametrize("due", [[-2], [1 << 32], [1 << 40]])
def test_times_that_are_none_are_refused(due: list[int]) -> None:
    with pytest.raises(asc.PlanError, match="retention"):
        core.choose_victim(due, 1)


@pytest.mark.parametrize(("count", "entries"), [(12, 8), (100, 16), (100, 64), (50, 8), (200, 100)])
def test_a_period_beyond_the_cache_hits_nearly_as_often_as_can_be(count: int, entries: int) -> None:
    sequence = [[4, n % count] for n in range(40 * count)]
    best = entries / count
    assert hits(sequence, entries, TRUSTED) > 0.9 * best
    assert hits(sequence, entries, OFF) < hits(sequence, entries, TRUSTED)


def test_two_working_sets_in_turn_hit_more_often() -> None:
    period = [[n] for n in range(12)] + [[100 + n] for n in range(12)]
    assert hits(period * 100, 8, OFF) < 0.05
    assert hits(period * 100, 8, TRUSTED) > 0.3


def test_sequences_without_a_rule_hit_as_often_as_before() -> None:
    chance = random.Random(0)
    skewed = [[int(chance.paretovariate(1))] for _ in range(4000)]
    mixed = [[7, chance.randrange(6)] if n % 3 == 0 else [1, n] for n in range(3000)]
    for sequence in (skewed, mixed):
        for entries in (4, 16, 64):
            assert hits(sequence, entries, TRUSTED) >= hits(sequence, entries, OFF) - 0.002


@pytest.mark.parametrize("seed", range(20))
def test_sequences_that_change_their_rule_come_to_an_end(seed: int) -> None:
    chance, sequence = random.Random(seed), []
    while len(sequence) < 3000:
        start, count, times = chance.randrange(300), chance.randrange(1, 40), chance.randrange(1, 90)
        sequence += [[start + n % count] for n in range(times)]
        sequence += [[chance.randrange(400)] for _ in range(chance.randrange(4))]
    for entries in (1, 2, 3, 7, 20):
        assert 0 <= hits(sequence, entries, TRUSTED) <= 1
        assert hits(sequence, entries, 0.0) <= 1


# --- schedules of executables ----------------------------------------------------------------------------------------


def rows(count: int) -> Any:
    return np.ones((count, 8), np.float32)


def predicting(schedules: float, mode: str, **settings: Any) -> asc.Executable:
    """An executable whose cache has room for so many schedules."""
    one = asc.compile(models.mlp(width=8, layers=2), mode="sink", threads=1)
    one(rows(1))
    room = int(schedules * one.stats()["schedule_bytes"])
    options = asc.Options(predict=True, schedule_cache_bytes=room, **settings)
    return asc.compile(models.mlp(width=8, layers=2), mode=mode, threads=1, options=options)


@pytest.mark.parametrize("mode", ["host", "auto", "sink"])
def test_schedules_stay_in_turn(mode: str) -> None:
    exe, plain = predicting(5.5, mode), asc.compile(models.mlp(width=8, layers=2), mode="host", threads=1)
    counts = [1 + n % 12 for n in range(240)]
    for count in counts:
        np.testing.assert_array_equal(exe(rows(count)), plain(rows(count)))
    for count in counts * 20:  # when "auto" begins to load follows the times that it measures
        if exe.stats()["schedule_refused"]:
            break
        exe(rows(count))
    stats = exe.stats()
    assert stats["schedule_hits"] > 0
    assert stats["schedule_refused"] > 0
    assert f"{stats['schedule_refused']} times one was not kept" in exe.explain()


def test_decisions_are_events_and_can_be_replayed(tmp_path: Path) -> None:
    exe = predicting(5.5, "sink")
    governor = Governor(exe, 8 << 20, 1 << 20, 1 << 20, log=tmp_path / "log")
    exe.resize_caches(1 << 20, 5 * exe.stats()["schedule_bytes"] or 12_000)
    for n in range(300):
        exe(rows(1 + n % 40))
        if n % 60 == 59:
            governor.step()
    decisions = replay(tmp_path / "log")
    made = [event for events, _ in decisions for event in events if event.what == "foreseen"]
    assert made
    assert all(events == again for events, again in decisions)
    assert f"{len(made)} decisions by what is foreseen" in governor.explain()


def test_without_prediction_nothing_is_decided() -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), mode="sink", options=asc.Options(schedule_cache_bytes=12_000))
    for n in range(100):
        exe(rows(1 + n % 40))
    assert exe.stats()["schedule_refused"] == exe.stats()["schedule_spared"] == 0
    assert core.take_decisions(exe._core) == []


def test_the_pipeline_is_chosen_for_new_and_known_signatures_apart() -> None:
    """In an executable whose schedules find no room."""
    settings = asc.Options(predict=True, schedule_cache_bytes=1)
    exe = asc.compile(models.mlp(layers=9), "timed:us=1", mode="host", threads=2, options=settings)
    for n in (1, 2, 1, 2, 3, 4, 3):
        exe.run_async({"x": np.ones((n, 16), np.float32)}).wait()
    assert "new signatures " in exe.explain()
    assert "those that come back " in exe.explain()
    assert "not measured yet" not in exe.explain()
