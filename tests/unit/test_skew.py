"""Ranks of one job side by side: who comes last to a collective, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.job import Job, diagnose_job

from .profile_files import Event, call, kernel, kineto, span

ALL_REDUCE = "ncclDevKernel_AllReduce"


def rank_events(late_by: float, reason: str, clock: float = 0.0) -> list[Event]:
    """Two rounds of ten kernels and an all-reduce, which end at 3000 and 6000; in the second, `reason` costs time."""
    events = [span(clock, 6000, "train", "user_annotation")]
    key = 0
    for begin in (0.0, 3000.0):
        shift = clock + begin
        wait = late_by if begin else 0.0
        if wait and reason == "compute":
            key += 1
            events += [call(shift + 10, 5, key), kernel(shift + 20, wait, key, name="slow")]
        elif wait:
            events.append(call(shift + 15, wait - 10, 1000, reason))
        for i in range(10):
            key += 1
            at = shift + wait + 20 + i * 100
            events += [call(at, 5, key), kernel(at + 10, 80, key)]
        key += 1
        at = shift + wait + 1100
        events += [call(at, 5, key), kernel(at + 10, clock + begin + 3000 - at - 10, key, name=ALL_REDUCE, stream=20)]
    return events


def job(folder: Path, *ranks: list[Event]) -> Job:
    paths = [kineto(folder / f"r{i}.json", events, distributedInfo={"rank": i}) for i, events in enumerate(ranks)]
    return diagnose_job(read_profiles(paths))


@pytest.mark.parametrize(
    ("reason", "stage"),
    [
        ("cudaMalloc", "host_late.alloc"),
        ("cudaDeviceSynchronize", "sync"),
        ("compute", "compute"),
        ("cudaEventRecord", "host_late.framework"),
    ],
)
@pytest.mark.parametrize("clock", [0.0, 5e9])
def test_the_late_rank_and_its_stage_are_named(tmp_path: Path, reason: str, stage: str, clock: float) -> None:
    found = job(tmp_path, rank_events(0, ""), rank_events(800, reason, clock))
    assert found.skew is not None
    assert [a.skew_ns for a in found.skew.arrivals] == [0, 800_000]
    late = found.skew.late_rank()
    assert late is not None
    assert late[:2] == ("rank 1", stage)
    assert found.main.rank.number == 1
    assert "rank 1 arrives last" in found.skew_sentence()
    assert ("no shared clock" in found.skew.clock) is bool(clock)


def test_ranks_in_step_have_no_late_rank(tmp_path: Path) -> None:
    found = job(tmp_path, rank_events(0, ""), rank_events(0, ""))
    assert found.skew is not None
    assert found.skew.late_rank() is None
    assert found.skew_sentence() == ""


def test_different_numbers_of_collectives_are_said(tmp_path: Path) -> None:
    found = job(tmp_path, rank_events(0, ""), rank_events(0, "")[:-2])
    assert found.skew is not None
    assert "rank 0: 2, rank 1: 1" in found.skew.notes[0]
    assert len(found.skew.arrivals) == 1


def test_a_rank_without_a_device_does_not_hide_the_others(tmp_path: Path) -> None:
    found = job(tmp_path, rank_events(0, ""), [span(0, 10, "aten::mm")])
    assert found.skew is None
    assert found.main.rank.number == 0
    assert [rank["verdict"] for rank in found.to_dict()["ranks"]][1] == "insufficient_evidence"


def test_ranks_of_the_same_number_go_by_their_files(tmp_path: Path) -> None:
    paths = [kineto(tmp_path / name, rank_events(0, ""), distributedInfo={"rank": 0}) for name in ("a.json", "b.json")]
    timeline = read_profiles(paths)
    assert [Path(rank.label).name for rank in timeline.ranks] == ["a.json", "b.json"]
    assert diagnose_job(timeline).skew is None
