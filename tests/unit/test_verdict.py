"""Idle time is split by cause without a rest, and the verdict follows from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendsched.errors import AscendSchedError
from ascendsched.profile import CAUSES, STAGES, VERDICTS, Profile, Recording, explain_idle, judge
from ascendsched.profile.idle import CAUSE_OF_STAGE, QUEUED_SHORT_NS
from ascendsched.profile.spans import innermost

from .profile_logs import host_mode_log, make_log, sink_mode_log


def causes_of(log: dict[str, Any]) -> dict[str, int]:
    idle = explain_idle(Recording.from_log(log))
    assert sum(idle.causes.values()) == idle.idle_ns
    return {name: ns for name, ns in idle.causes.items() if ns}


# --- causes ----------------------------------------------------------------------------------------------------------


def test_host_time_before_the_next_launch_is_split_by_stage() -> None:
    host = [
        (0, 10, 1, 0, 0, "launch"),
        (20, 60, 1, 1, 1, "infer_shape"),
        (60, 160, 1, 1, 1, "tiling"),
        (160, 180, 1, 1, 1, "alloc"),
        (180, 200, 1, 1, 1, "launch"),
    ]
    device = [(10, 30, 1, 0, 0, "kernel"), (200, 220, 1, 1, 1, "kernel")]
    expected = {"infer_shape": 30, "tiling": 100, "alloc": 20, "launch": 20}
    assert causes_of(make_log(host, device)) == {f"host_late.{stage}": ns for stage, ns in expected.items()}


def test_time_from_the_launch_to_the_start_is_in_flight() -> None:
    host = [(0, 10, 1, 0, 0, "launch"), (10, 40, 1, 1, 1, "launch")]
    device = [(10, 30, 1, 0, 0, "kernel"), (90, 99, 1, 1, 1, "kernel")]
    assert causes_of(make_log(host, device)) == {"host_late.launch": 10, "launch_in_flight": 50}


def test_a_gap_before_a_queued_task_is_short_or_a_dependency() -> None:
    host = [(0, 1, 1, 0, 0, "launch"), (1, 2, 1, 1, 1, "launch"), (2, 3, 1, 2, 2, "launch")]
    late = 30 + QUEUED_SHORT_NS + 1
    device = [(5, 10, 1, 0, 0, "kernel"), (20, 30, 1, 1, 1, "kernel"), (late, late + 5, 1, 2, 2, "kernel")]
    assert causes_of(make_log(host, device)) == {"queued_short": 10, "dependency": QUEUED_SHORT_NS + 1}


def test_gaps_inside_one_chain_are_internal_to_the_graph() -> None:
    device = [(10, 20, 1, 0, 7, "kernel"), (25, 30, 1, 1, 7, "kernel")]
    assert causes_of(make_log([(0, 5, 1, -1, 7, "submit")], device)) == {"graph_internal": 5}


def test_a_pause_of_the_caller_is_no_work() -> None:
    assert causes_of(sink_mode_log(runs=2, pause_ns=500)) == {"no_work": 500, "host_late.launch": 10}


@pytest.mark.parametrize(
    ("stage", "cause"), [("wait", "sync"), ("sync", "sync"), ("queue_full", "queue_full"), ("load", "compile")]
)
def test_the_innermost_host_span_decides(stage: str, cause: str) -> None:
    host = [
        (0, 10, 1, 0, 0, "launch"),
        (10, 200, 1, -1, 0, "framework"),
        (30, 130, 1, 1, 1, stage),
        (150, 200, 1, 1, 1, "launch"),
    ]
    device = [(10, 30, 1, 0, 0, "kernel"), (200, 201, 1, 1, 1, "kernel")]
    assert causes_of(make_log(host, device)) == {cause: 100, "host_late.framework": 20, "host_late.launch": 50}


def test_host_time_without_a_span_inside_a_run_is_unattributed() -> None:
    host = [(0, 10, 1, 0, 0, "launch"), (90, 100, 1, 1, 1, "launch")]
    device = [(10, 30, 1, 0, 0, "kernel"), (100, 101, 1, 1, 1, "kernel")]
    assert causes_of(make_log(host, device)) == {"unattributed": 60, "host_late.launch": 10}


def test_a_kernel_whose_launch_was_lost_leaves_its_gap_unattributed() -> None:
    device = [(10, 30, 1, 0, 0, "kernel"), (100, 101, 1, 1, 1, "kernel")]
    assert causes_of(make_log([(0, 10, 1, 0, 0, "launch")], device)) == {"unattributed": 70}


def test_overlapping_kernels_are_busy_once() -> None:
    device = [(0, 100, 1, 0, 0, "kernel"), (10, 20, 1, 1, 1, "kernel"), (50, 120, 1, 2, 2, "kernel")]
    idle = explain_idle(Recording.from_log(make_log([], device)))
    assert (idle.window_ns, idle.busy_ns, idle.idle_ns) == (120, 120, 0)


times = st.integers(0, 300)
random_spans = st.lists(
    st.tuples(times, st.integers(0, 60), st.integers(1, 3), st.integers(0, 5), st.integers(0, 9)), max_size=14
)


@given(random_spans, random_spans)
@settings(max_examples=300, deadline=None)
def test_causes_sum_to_idle_and_match_a_tick_by_tick_account(host: list[Any], device: list[Any]) -> None:
    log = make_log(
        [(s, s + n, run, seq, seq, STAGES[stage]) for s, n, run, seq, stage in host],
        [(s, s + n + 1, run, seq, seq, "kernel") for s, n, run, seq, _ in device],
    )
    recording = Recording.from_log(log)
    idle = explain_idle(recording)
    assert sum(idle.causes.values()) == idle.idle_ns
    assert all(ns >= 0 for ns in idle.causes.values())
    verdict = judge(recording)
    assert verdict.verdict in VERDICTS
    assert sum(verdict.causes.values()) == verdict.figures["idle_ns"]
    host_causes = {name for name in CAUSES if name.startswith("host_late") or name in ("sync", "queue_full", "compile")}
    assert {c: n for c, n in idle.causes.items() if c in host_causes} == tick_by_tick(recording, host_causes)


def tick_by_tick(recording: Recording, host_causes: set[str]) -> dict[str, int]:
    """The obvious account: for every idle tick, the next kernel's launch, and the host span that began last."""
    host, device = recording.host, recording.device
    account = dict.fromkeys(host_causes, 0)
    if not len(device):
        return {c: account[c] for c in CAUSES if c in host_causes}
    begin, end = int(device.start.min()), int(device.end.max())
    busy = [any(s <= t < e for s, e in zip(device.start, device.end, strict=True)) for t in range(begin, end)]
    start, stop, owner = innermost(host)
    launches = {
        (int(host.run[i]), int(host.sequence[i])): int(host.end[i])
        for i in reversed(range(len(host)))
        if STAGES[host.stage[i]] in ("launch", "submit")
    }
    for tick in range(begin, end):
        if busy[tick - begin]:
            continue
        opened = next(t for t in range(tick, begin - 1, -1) if t == begin or busy[t - 1 - begin])
        closed = next(t for t in range(tick, end) if busy[t - begin])
        first = int((device.start < closed).sum())
        key = (int(device.run[first]), int(device.sequence[first]))
        previous = (int(device.run[first - 1]), int(device.sequence[first - 1]))
        handed_over = launches.get(key, -1)
        if key == previous or handed_over <= opened or tick >= handed_over:
            continue
        for s, e, i in zip(start, stop, owner, strict=True):
            if s <= tick < e:
                account[CAUSE_OF_STAGE[STAGES[host.stage[i]]]] += 1
    return {c: account[c] for c in CAUSES if c in host_causes}


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_slow_tiling_makes_a_run_host_bound() -> None:
    verdict = judge(Recording.from_log(host_mode_log(infer_shape=50, tiling=400, alloc=20, launch=30)))
    assert verdict.verdict == "host_bound"
    assert verdict.figures["idle_pct"] == pytest.approx(100 * 15 * 400 / (15 * 500 + 100), abs=0.01)
    assert "host_late.tiling" in verdict.sentence
    assert "sink mode" in verdict.sentence


def test_late_submits_are_not_advised_to_use_sink_mode() -> None:
    host = [(i * 100, i * 100 + 90, i + 1, -1, i, "submit") for i in range(16)]
    device = [(i * 100 + 90, i * 100 + 95, i + 1, 0, i, "kernel") for i in range(16)]
    verdict = judge(Recording.from_log(make_log(host, device)))
    assert verdict.verdict == "host_bound"
    assert "host_late.launch" in verdict.sentence
    assert "sink mode" not in verdict.sentence


def test_long_kernels_make_a_run_device_bound() -> None:
    verdict = judge(Recording.from_log(host_mode_log(kernel_ns=5_000, tiling=300, launch=30)))
    assert verdict.verdict == "device_bound"
    assert verdict.figures["idle_pct"] == 0


def test_a_little_idle_time_is_balanced() -> None:
    assert judge(Recording.from_log(host_mode_log(kernel_ns=400, tiling=450, launch=30))).verdict == "balanced"


def test_waits_with_queued_work_are_dependency_bound() -> None:
    host = [(i, i + 1, 1, i, i, "launch") for i in range(16)]
    device = [(100 + i * 20_000, 100 + i * 20_000 + 5_000, 1, i, i, "kernel") for i in range(16)]
    verdict = judge(Recording.from_log(make_log(host, device)))
    assert verdict.verdict == "dependency_bound"
    assert verdict.causes == {"dependency": 15 * 15_000}


def test_a_device_busy_with_collectives_is_communication_bound() -> None:
    log = sink_mode_log()
    log["nodes"] = [("n", "com.microsoft::AllReduce" if i % 4 else "MatMul") for i in range(16)]
    verdict = judge(Recording.from_log(log))
    assert verdict.verdict == "communication_bound"
    assert verdict.figures["communication_pct"] == 75


def test_pauses_of_the_caller_do_not_count_as_idle() -> None:
    verdict = judge(Recording.from_log(sink_mode_log(runs=4, pause_ns=1_000_000)))
    assert verdict.verdict == "device_bound"
    assert verdict.causes["no_work"] == 3_000_000
    assert verdict.figures["idle_pct"] < 1


def test_inline_runs_are_judged_by_shares_and_say_so() -> None:
    host, device = [], []
    for node in range(16):
        begin = node * 100
        host += [(begin, begin + 60, 1, node, node, "tiling"), (begin + 60, begin + 100, 1, node, node, "launch")]
        device.append((begin + 70, begin + 100, 1, node, node, "kernel"))
    verdict = judge(Recording.from_log(make_log(host, device, inline=True)))
    assert verdict.verdict == "host_bound"
    assert "inline: shares, not idle" in verdict.sentence
    assert (verdict.figures["host_share_pct"], verdict.figures["device_share_pct"]) == (70, 30)
    assert verdict.stages == {"tiling": 960, "launch": 160}
    assert "idle_pct" not in verdict.figures


def test_inline_kernels_that_take_nearly_everything_are_device_bound() -> None:
    host = [(0, 1600, 1, -1, 0, "submit")]
    device = [(10 + i * 99, 109 + i * 99, 1, i, 0, "kernel") for i in range(16)]
    assert judge(Recording.from_log(make_log(host, device, inline=True))).verdict == "device_bound"


# --- evidence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "log",
    [
        make_log([], []),
        host_mode_log(count=3, tiling=100, launch=10),
        {**host_mode_log(tiling=100, launch=10), "lost": 1_000},
        make_log([], [(i * 100, i * 100 + 10, 1, i, i, "kernel") for i in range(16)]),
    ],
    ids=["nothing", "few kernels", "many lost", "no host spans"],
)
def test_too_little_evidence_gives_no_verdict(log: dict[str, Any]) -> None:
    assert judge(Recording.from_log(log)).verdict == "insufficient_evidence"


def test_limits_of_trust_are_noted() -> None:
    log = host_mode_log(tiling=100, launch=10)
    log["lost"] = 1
    log["device"]["start"][5] -= 50  # before its launch
    log["host"]["end"][8] += 50_000  # the next end steps back
    log["host"]["end"][3] = log["host"]["start"][3] - 1
    notes = " | ".join(judge(Recording.from_log(log)).notes)
    for words in ("1 spans lost", "1 kernels start before their launch", "clock jumped back", "1 host spans dropped"):
        assert words in notes


def test_a_malformed_log_is_refused() -> None:
    with pytest.raises(AscendSchedError, match="no array of spans"):
        Recording.from_log({"host": [1, 2, 3]})
    with pytest.raises(AscendSchedError, match="ns_per_tick"):
        Recording.from_log({**make_log([], []), "ns_per_tick": 0.0})


# --- Profile ---------------------------------------------------------------------------------------------------------


def test_a_profile_is_readable_once_its_block_has_ended() -> None:
    profile = Profile()
    with pytest.raises(AscendSchedError, match="still recording"):
        _ = profile.verdict
    profile.finish(host_mode_log(tiling=400, launch=30))
    assert profile.verdict.verdict == "host_bound"
    assert profile.causes == profile.verdict.causes
    assert "host_late.tiling" in profile.summary()
    assert profile.node_times()["node_3 (Add)"] == 100


def test_the_typical_run_is_the_one_of_median_length() -> None:
    device = [(run * 1_000, run * 1_000 + length, run, 0, 0, "kernel") for run, length in ((1, 90), (2, 10), (3, 40))]
    recording = Recording.from_log(make_log([], device))
    assert recording.typical_run() == 3
    assert recording.window_of(3) == (2_000, 2_040)
    with pytest.raises(AscendSchedError, match="run 9"):
        recording.window_of(9)
