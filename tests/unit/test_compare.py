"""Two profiles side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascendsched.errors import AscendSchedError
from ascendsched.profile.compare import Comparison, compare
from ascendsched.profile.diagnosis import Diagnosis, diagnose
from ascendsched.profile.importers.read import read_profiles

from . import profile_files as files


def diagnosis(path: Path, events: list[Any]) -> Diagnosis:
    return diagnose(read_profiles([files.kineto(path, events)]).ranks[0])


def value(comparison: Comparison, key: str) -> tuple[float | None, float | None]:
    row = next(row for row in comparison.rows if row.key == key)
    return row.before, row.after


def test_a_faster_profile_is_named_with_the_cause_that_went(tmp_path: Path) -> None:
    slow = diagnosis(tmp_path / "a.json", files.late_launches(period=100))
    fast = diagnosis(tmp_path / "b.json", files.late_launches(period=50))
    found = compare(slow, fast)
    assert found.sentence.startswith(
        "Faster: 49.7 % less time per profile; host_bound before, host_bound after; idle: "
    )
    assert value(found, "window_us") == (1910, 960)
    assert value(found, "device_activities") == (20, 20)


def test_a_profile_compared_with_itself_has_not_changed(tmp_path: Path) -> None:
    same = diagnosis(tmp_path / "a.json", files.late_launches())
    found = compare(same, same)
    assert found.sentence.startswith("No change")
    assert all(row.change_pct in {None, 0} for row in found.rows)


def test_profiles_with_steps_are_compared_by_step(tmp_path: Path) -> None:
    steps = [files.span(i * 1000, 1000, f"ProfilerStep#{i}", "user_annotation") for i in range(2)]
    both = diagnosis(tmp_path / "a.json", [*files.late_launches(20), *steps])
    one = diagnosis(tmp_path / "b.json", [*files.late_launches(10), steps[0]])
    found = compare(both, one)
    assert found.unit == "step"
    assert value(found, "launch_calls") == (10, 10)


def test_work_that_only_one_profile_holds_counts_as_nothing_in_the_other(tmp_path: Path) -> None:
    gemm = diagnosis(tmp_path / "a.json", files.late_launches())
    other = [{**event, "name": "softmax"} if event["cat"] == "kernel" else event for event in files.late_launches()]
    found = compare(gemm, diagnosis(tmp_path / "b.json", other))
    assert value(found, "work.gemm") == (200, 0)
    assert value(found, "work.softmax") == (0, 200)


def test_a_profile_without_a_device_cannot_be_compared(tmp_path: Path) -> None:
    good = diagnosis(tmp_path / "a.json", files.late_launches())
    bad = diagnosis(tmp_path / "b.json", [files.span(0, 10, "aten::mm")])
    with pytest.raises(AscendSchedError, match="the second profile holds no device activity"):
        compare(good, bad)
