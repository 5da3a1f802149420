"""Real profiles, where they are there: the figures that are known of each."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pytest

from ascendsched.profile.diagnosis import diagnose
from ascendsched.profile.gaps import HOST_CAUSES
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.job import diagnose_job

ROOT = Path(__file__).resolve().parents[2]
PLACES = [Path(os.environ["PROFILE_DATA"])] if "PROFILE_DATA" in os.environ else [ROOT.parent / "shared/data/profiles"]
DATA = next((place for place in PLACES if place.is_dir()), None)
pytestmark = pytest.mark.skipif(DATA is None, reason="no real profiles: PROFILE_DATA names their folder")

# Name, verdict, device activities, busy %, share of the idle time that is the host's, expected findings.
KINETO = [
    ("a100_nccl", "host_bound", 3774, 23.84, 99.6, set()),
    ("b200_eager", "host_bound", 929, 13.73, 99.4, {"call_stacks", "profiler_overhead"}),
    ("mi300_bert_small", "host_bound", 61, 11.18, 96.5, {"call_stacks"}),
    ("v100_resnet_ns", "device_bound", 6095, 98.42, 19.2, {"steps_cut"}),
    ("vllm_decode_full_graph", "device_bound", 434, 99.76, 0.0, set()),
    ("a100_deep_queue", "dependency_bound", 7747, 35.6, 1.7, {"missing_launch_records", "steps_cut"}),
]


@pytest.fixture
def data() -> Path:
    assert DATA is not None
    return DATA


@pytest.mark.parametrize(("name", "verdict", "count", "busy", "host", "checks"), KINETO, ids=lambda v: str(v)[:20])
def test_kineto_traces_have_the_known_figures(
    data: Path, name: str, verdict: str, count: int, busy: float, host: float, checks: set[str]
) -> None:
    diagnosis = diagnose(read_profiles([data / "kineto" / f"{name}.json.gz"]).ranks[0])
    assert diagnosis.verdict == verdict
    assert diagnosis.figures["device_activities"] == count
    assert diagnosis.figures["busy_pct"] == pytest.approx(busy, abs=0.01)
    assert sum(diagnosis.idle_split_pct.get(cause, 0.0) for cause in HOST_CAUSES) == pytest.approx(host, abs=0.25)
    assert checks <= {check.name for check in diagnosis.checks}


def test_ascend_totals_agree_with_the_vendors(data: Path, tmp_path: Path) -> None:
    columns = {
        "computing_us": "Computing",
        "communication_us": "Communication",
        "communication_not_overlapped_us": "Communication(Not Overlapped)",
        "free_us": "Free",
    }
    for folder in sorted((data / "ascend").glob("level*/rank*")):
        copy = tmp_path / folder.parent.name / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("step_trace_time.csv"))
        with (folder / "step_trace_time.csv").open(encoding="utf-8") as file:
            want = next(csv.DictReader(file))
        diagnosis = diagnose(read_profiles([copy]).ranks[0])
        for key, column in columns.items():
            assert diagnosis.figures[key] == pytest.approx(float(want[column]), abs=0.05), (folder, key)
        assert diagnosis.verdict == "communication_bound"


def test_ranks_of_a_real_job_name_the_late_one(data: Path) -> None:
    job = diagnose_job(read_profiles([data / "ascend" / "level0"]))
    assert job.skew is not None
    late = job.skew.late_rank()
    assert late is not None
    assert late[0] == "rank 1"
    assert job.skew.arrivals[0].skew_ns == pytest.approx(16_919_316, abs=1000)


def test_negative_launch_to_start_times_are_reported(data: Path) -> None:
    diagnosis = diagnose(read_profiles([data / "ascend" / "level1"]).ranks[0])
    assert [check.count for check in diagnosis.checks if check.name == "negative_launch_to_start"] == [34]
