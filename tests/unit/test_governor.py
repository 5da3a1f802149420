"""Cache sizes follow what the caches do, within a bound, and every decision can be replayed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.tuning.governor import MIN_BYTES, REST, CacheState, Governor, Window, decide, replay

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
    "settings", [{"max_bytes": 0}, {"max_bytes": 2.5}, {"max_bytes": 2 << 20, "tiling_bytes": 4 << 20}]
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
