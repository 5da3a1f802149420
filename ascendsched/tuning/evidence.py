"""What the counters of an executable say about the choice of its mode."""

from __future__ import annotations

from collections.abc import Mapping

from ascendsched.tuning.choice import HOST_SERIAL, SEGMENT_MIX, SHAPE_SINK, SINK, Choice, Evidence, choose


def evidence_of(stats: Mapping[str, int], is_static: bool, budget_bytes: int, cpus: int = 1) -> Evidence:
    """Evidence from ``stats()``; times are per segment where the plan has several."""
    node_by_node = stats["first_segments"] + stats["repeat_segments"]
    kept = stats["submits"] + stats["replays"]
    new = max(stats["first_segments"], stats["loads"])
    entries = stats["schedule_entries"]
    first_ns = _mean(stats["first_segment_ns"], stats["first_segments"])
    sunk_ns = _mean(stats["sampled_segment_ns"], stats["sampled_segments"])
    load_ns = _mean(stats["load_ns"], stats["loads"])
    if first_ns is None and stats["loads"] > 1:  # each was sunk at once; node by node, the same has to be resolved
        first_ns = (load_ns or 0.0) + (sunk_ns or 0.0)
    return Evidence(
        is_static=is_static,
        segments=1 + (stats["syncs"] > 0),
        runs=max(stats["runs"], 1),
        first_ns=first_ns,
        repeat_ns=_mean(stats["repeat_segment_ns"], stats["repeat_segments"]),
        sunk_ns=sunk_ns,
        load_ns=load_ns,
        new_share=min(1.0, new / max(1, node_by_node + kept)),
        schedules=max(1, entries + stats["schedule_evictions"]),
        schedule_bytes=stats["schedule_bytes"] / entries if entries else 0.0,
        budget_bytes=budget_bytes,
        cpus=cpus,
        bucket_count=stats.get("buckets", 0),
        bucket_padding=stats.get("padded_positions", 0) / max(1, stats.get("given_positions", 1)),
    )


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None


def choice_of(evidence: Evidence, mode: str) -> Choice:
    """The choice for an executable that runs in `mode` now."""
    auto = SEGMENT_MIX if evidence.segments > 1 else SINK if evidence.is_static else SHAPE_SINK
    return choose(evidence, {"host": HOST_SERIAL, "sink": SINK}.get(mode, auto))


def explain_choice(stats: Mapping[str, int], is_static: bool, mode: str, budget_bytes: int) -> str:
    """What each way of scheduling would cost, as far as runs have shown it; for `Executable.explain`."""
    if not stats["runs"]:
        return "cost of each way of scheduling: not known before the first run\n"
    choice = choice_of(evidence_of(stats, is_static, budget_bytes), mode)
    per = "segment" if stats["syncs"] else "run"
    return f"predicted cost of a {per} by way of scheduling, from {stats['runs']} runs; {choice.text()}"
