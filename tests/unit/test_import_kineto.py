"""Kineto traces of any version become one timeline, exact to the nanosecond, and idle time gets its cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascendsched.errors import AscendSchedError
from ascendsched.profile.diagnosis import Diagnosis, diagnose
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.timeline import COMMUNICATION, Rank, select_step

from .profile_files import Event, call, kernel, kineto, late_launches, span


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(events: list[Event], name: str = "trace.json", **fields: Any) -> Rank:
        return read_profiles([kineto(tmp_path / name, events, **fields)]).ranks[0]

    return read


def causes(rank: Rank) -> dict[str, int]:
    diagnosis = diagnose(rank)
    assert diagnosis.gaps is not None
    assert sum(diagnosis.causes.values()) == int(diagnosis.gaps.length.sum())
    return {name: ns for name, ns in diagnosis.causes.items() if ns}


def pair(launch: Event, *host: Event) -> list[Event]:
    """A kernel of 10 us at 10 us, and one at 200 us that the given call starts."""
    return [call(0, 5, 1), kernel(10, 10, 1), launch, kernel(200, 10, 2), *host]


# --- reading ---------------------------------------------------------------------------------------------------------


def test_times_keep_their_nanoseconds(read: Any) -> None:
    rank = read([kernel(0.001, 1.0, None), kernel(1.004, 0.5, None)])
    activities = rank.devices[0].activities
    assert (activities.start.tolist(), activities.end.tolist()) == ([0, 1003], [1000, 1503])


def test_gzipped_and_plain_traces_read_alike(read: Any) -> None:
    plain, zipped = read(late_launches()), read(late_launches(), "trace.json.gz")
    assert diagnose(plain).figures == diagnose(zipped).figures


@pytest.mark.parametrize("spelling", ["Kernel", "KERNEL", "kernel"])
def test_old_spellings_of_categories_are_known(read: Any, spelling: str) -> None:
    rank = read([kernel(0, 1, 1, cat=spelling), kernel(5, 1, 2, cat="Memcpy"), kernel(9, 1, 3, cat="gpu_memset")])
    assert len(rank.devices[0].work) == 3


def test_synchronisation_entries_are_no_work(read: Any) -> None:
    rank = read([kernel(0, 1, 1), kernel(5, 90, 2, cat="cuda_sync"), kernel(3, 1, 3, cat="gpu_user_annotation")])
    assert len(rank.devices[0].activities) == 1


def test_the_busiest_device_is_judged(read: Any) -> None:
    rank = read([kernel(0, 5, None), kernel(0, 1, None, device=1), kernel(9, 20, None, device=1)])
    assert [d.number for d in rank.devices] == [0, 1]
    assert diagnose(rank).figures["device"] == 1


def test_collective_kernels_are_communication(read: Any) -> None:
    names = [
        "ncclDevKernel_AllReduce_Sum_bf16",
        "ncclKernel_Broadcast_RING",
        "gemm",
        "void vllm::cross_device_reduce_1stage",
    ]
    rank = read([kernel(i * 10, 5, None, name=name) for i, name in enumerate(names)])
    assert (rank.devices[0].work.kind == COMMUNICATION).tolist() == [True, True, False, True]


@pytest.mark.parametrize(("launch", "system"), [("cudaLaunchKernel", "cuda"), ("hipLaunchKernel", "rocm")])
def test_the_system_follows_from_the_runtime(read: Any, launch: str, system: str) -> None:
    assert read([call(0, 1, 1, launch), kernel(2, 1, 1)]).system == system


def test_rank_and_origin_come_from_the_trace(read: Any) -> None:
    base = 1_767_189_312_000_000_000
    rank = read([kernel(0, 1, 1)], distributedInfo={"rank": 3, "world_size": 8}, baseTimeNanoseconds=base)
    assert rank.label == "rank 3"
    assert rank.origin_ns == base + 1_700_000_000_000_000_000


# --- causes ----------------------------------------------------------------------------------------------------------


def test_a_late_launch_is_the_hosts_fault_until_the_kernel_starts(read: Any) -> None:
    rank = read(pair(call(170, 20, 2), span(0, 300, "aten::mm")))
    assert causes(rank) == {"host_late.framework": 150_000, "host_late.launch": 20_000, "host_late.in_flight": 10_000}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cudaStreamSynchronize", "sync"),
        ("hipDeviceSynchronize", "sync"),
        ("cudaMalloc", "host_late.alloc"),
        ("hipFree", "host_late.alloc"),
        ("cuModuleLoadData", "compile"),
        ("cudaEventRecord", "host_late.framework"),
    ],
)
def test_runtime_calls_before_a_late_launch_name_its_stage(read: Any, name: str, cause: str) -> None:
    rank = read(pair(call(190, 5, 2), call(30, 100, 9, name), span(0, 300, "aten::mm")))
    assert causes(rank)[cause] >= 100_000


def test_nothing_recorded_on_the_host_is_no_work(read: Any) -> None:
    assert causes(read(pair(call(190, 5, 2))))["no_work"] == 170_000


def test_a_launch_that_was_going_on_is_in_flight(read: Any) -> None:
    assert causes(read(pair(call(15, 100, 2)))) == {"launch_in_flight": 180_000}


def test_a_long_gap_before_a_queued_kernel_is_a_dependency(read: Any) -> None:
    assert causes(read(pair(call(6, 2, 2)))) == {"dependency": 180_000}


def test_a_short_gap_before_a_queued_kernel_is_the_hand_over(read: Any) -> None:
    rank = read([call(0, 1, 1), call(1, 1, 2), kernel(10, 10, 1), kernel(50, 1, 2)])
    assert causes(rank) == {"queued_short": 30_000}


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "hipGraphLaunch"])
def test_gaps_within_a_captured_graph_are_internal(read: Any, name: str) -> None:
    rank = read([call(0, 5, 1, name), kernel(10, 10, 1), kernel(90, 10, 1)])
    assert causes(rank) == {"graph_internal": 70_000}


def test_a_kernel_without_a_launch_record_leaves_its_gap_unattributed(read: Any) -> None:
    rank = read([call(0, 5, 1), kernel(10, 10, 1), kernel(90, 10, None)])
    assert causes(rank) == {"unattributed": 70_000}
    assert [c.count for c in diagnose(rank).checks if c.name == "missing_launch_records"] == [1]


def test_an_entry_that_spans_others_hides_no_gap(read: Any) -> None:
    rank = read([kernel(0, 100, None, stream=1), kernel(10, 5, None, stream=2), kernel(120, 5, None, stream=2)])
    assert causes(rank) == {"unattributed": 20_000}


# --- verdicts and checks ---------------------------------------------------------------------------------------------


def test_late_launches_are_host_bound(read: Any) -> None:
    diagnosis: Diagnosis = diagnose(read(late_launches()))
    assert diagnosis.verdict == "host_bound"
    assert diagnosis.figures["idle_pct"] > 80


def test_back_to_back_kernels_are_device_bound(read: Any) -> None:
    events = [e for i in range(20) for e in (call(i * 2, 1, i + 1), kernel(100 + i * 50, 49, i + 1))]
    assert diagnose(read(events)).verdict == "device_bound"


def test_few_activities_are_no_evidence(read: Any) -> None:
    assert diagnose(read(late_launches(count=5))).verdict == "insufficient_evidence"


def test_a_trace_without_device_entries_is_no_evidence(read: Any) -> None:
    assert diagnose(read([span(0, 10, "aten::mm")])).verdict == "insufficient_evidence"


def test_a_kernel_before_its_launch_is_reported(read: Any) -> None:
    diagnosis = diagnose(read([call(0, 1, 1), kernel(5, 5, 1), call(60, 1, 2), kernel(50, 5, 2)]))
    assert [c.count for c in diagnosis.checks if c.name == "negative_launch_to_start"] == [1]


def test_malformed_events_are_counted_and_the_rest_is_read(read: Any) -> None:
    bad = [{"ph": "X", "cat": "kernel", "name": "k", "ts": "soon"}, {"ph": "X", "cat": "kernel", "ts": [1]}, 7]
    rank = read([*late_launches(), *bad, {**kernel(0, 1, 1), "dur": -5}])
    assert len(rank.devices[0].work) == 20
    assert any("4 events dropped" in note for note in rank.notes)


def test_losses_that_the_profiler_reported_are_repeated(read: Any) -> None:
    rank = read(late_launches(), WARNING=["WARNING: Dropped 12 records", "WARNING: old driver"])
    assert rank.notes == ("the profiler reported: WARNING: Dropped 12 records",)
    assert diagnose(rank).confidence == "medium"


def test_call_stacks_are_flagged(read: Any) -> None:
    diagnosis = diagnose(read([*late_launches(), span(0, 9, "train.py(3): step", "python_function")]))
    assert any(check.name == "call_stacks" for check in diagnosis.checks)


# --- steps -----------------------------------------------------------------------------------------------------------


def test_a_step_owns_the_kernels_that_were_launched_in_it(read: Any) -> None:
    steps = [span(0, 50, "ProfilerStep#4"), span(50, 50, "ProfilerStep#5")]
    launches = [call(40, 2, 1), call(45, 2, 2), call(60, 2, 3)]
    rank = read([*steps, *launches, kernel(44, 2, 1), kernel(80, 10, 2), kernel(95, 5, 3)])
    assert [s.number for s in rank.steps] == [4, 5]
    assert len(select_step(rank, 4).devices[0].work) == 2
    assert len(select_step(rank, 5).devices[0].work) == 1
    assert [c.count for c in diagnose(rank).checks if c.name == "steps_cut"] == [1]


def test_work_of_other_steps_keeps_a_device_busy(read: Any) -> None:
    events = [span(0, 50, "ProfilerStep#4"), call(1, 1, 1), call(2, 1, 2), kernel(5, 5, 1), kernel(90, 10, 2)]
    rank = read([*events, kernel(10, 80, None, stream=9)])
    device = select_step(rank, 4).devices[0]
    assert (len(device.work), device.busy_ns()) == (3, 95_000)


def test_an_unknown_step_is_an_error_that_lists_the_known_ones(read: Any) -> None:
    from ascendsched.profile.job import diagnose_job
    from ascendsched.profile.timeline import Timeline

    timeline = Timeline((read([span(0, 50, "ProfilerStep#4"), kernel(1, 1, None)]),))
    with pytest.raises(AscendSchedError, match=r"step '9' is not recorded: there are 4; pass one of these, or all"):
        diagnose_job(timeline, "9")
    assert diagnose_job(timeline, "4").main.rank.steps[0].number == 4
