"""The verdict: which side of a run is the bottleneck, with the figures and the reasons behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ascendsched.profile.idle import IdleTime, explain_idle
from ascendsched.profile.spans import KERNEL, STAGES, WAITING, Recording, Spans, innermost, total, union

#: Every verdict there is.
VERDICTS = (
    "host_bound",
    "device_bound",
    "communication_bound",
    "dependency_bound",
    "balanced",
    "insufficient_evidence",
)

# Fewer kernels than this show no pattern: one gap would decide.
MIN_KERNELS = 8
# Above this share of lost spans the gaps are made of what is missing.
MAX_LOST_SHARE = 0.05
# A device idle for less than a tenth of the time cannot be sped up by more than that through its host.
DEVICE_BOUND_IDLE_PCT = 10.0
# Between the two, neither side alone is worth the work; from here on idle time dominates what can be gained.
BALANCED_IDLE_PCT = 25.0
# A recording in which the caller left the device alone for this long says so: what it did then is not recorded.
NO_WORK_PCT = 25.0
# A group of causes is to blame when it explains at least half of the idle time.
BLAME_SHARE = 0.5
# Inline, host and kernels take turns on one thread: the larger share is the bottleneck, with a band between.
INLINE_HOST_BOUND_PCT = 50.0
INLINE_DEVICE_BOUND_PCT = 20.0
# Kernels that move data between devices; a device busy mostly with them alone is bound by its links.
COMMUNICATION_OPS = frozenset({"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Broadcast", "Send", "Receive"})
COMMUNICATION_SHARE = 0.5

QUEUED_CAUSES = ("dependency", "graph_internal", "queued_short")
NO_BLAME_CAUSES = ("no_work", "unattributed")

ADVICE = {
    "host_late.infer_shape": "repeated shapes are free in sink mode or with the schedule cache",
    "host_late.tiling": "a larger tiling cache, a warm-up of the hot shapes or sink mode removes it",
    "host_late.alloc": "bound outputs or sink mode's arena remove it",
    "host_late.launch": "sink mode submits the whole chain at once",
    "host_late.framework": "a binding skips the per-run checks and result arrays",
    "launch_in_flight": "keep several runs in flight, so that the next launch is queued in time",
    "queue_full": "the queue is too short for these tasks",
    "sync": "read results later, or keep several runs in flight",
    "compile": "warm up before serving",
}


@dataclass(frozen=True)
class Verdict:
    """What bounds the recorded runs.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    sentence : str
        The verdict in words, with its main figures.
    figures : dict
        Times in ns (`window_ns`, `active_ns`, `busy_ns`, `idle_ns`), shares in percent (`host_share_pct`,
        `device_share_pct`, `communication_pct`; `idle_pct` unless inline), counts (`runs`, `kernels`).
    causes : dict
        Idle time in ns by cause; the values sum to `idle_ns`.
    stages : dict
        Host time in ns by stage, innermost span first.
    notes : tuple of str
        What limits the trust in the figures.
    inline : bool
        Whether host and kernels shared one thread, so that shares were judged and not idle time.
    """

    verdict: str
    sentence: str
    figures: dict[str, float]
    causes: dict[str, int]
    stages: dict[str, int]
    notes: tuple[str, ...]
    inline: bool

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "figures": self.figures,
            "causes": self.causes,
            "stages": self.stages,
            "notes": list(self.notes),
            "inline": self.inline,
        }


def judge(recording: Recording) -> Verdict:
    """Judges a recording: Host Bound or Device Bound, and why."""
    idle = explain_idle(recording)
    stages = _stage_times(recording)
    figures = _figures(recording, idle, stages)
    notes = list(recording.notes)
    if idle.early_starts:
        notes.append(f"{idle.early_starts} kernels start before their launch: host and device clocks disagree")
    missing = _missing_evidence(recording, idle, figures)
    if missing:
        verdict, sentence = "insufficient_evidence", f"Insufficient evidence: {missing}."
    elif recording.inline:
        verdict, sentence = _judge_inline(figures, stages)
    else:
        verdict, sentence = _judge_overlapped(figures, idle, stages)
    causes = {name: ns for name, ns in idle.causes.items() if ns}
    no_work = _percent(causes.get("no_work", 0), idle.window_ns)
    if not recording.inline and no_work >= NO_WORK_PCT:
        sentence += f" For {no_work:.0f} % of the recording no run was in flight (no_work)."
    return Verdict(verdict, sentence, figures, causes, stages, tuple(notes), recording.inline)


def _stage_times(recording: Recording) -> dict[str, int]:
    """Host time by stage. Inline, the kernels interrupt the launch that contains them."""
    spans = Spans.concatenate(recording.host, recording.device) if recording.inline else recording.host
    start, end, owner = innermost(spans)
    time = np.bincount(spans.stage[owner], weights=end - start, minlength=len(STAGES))
    return {name: int(time[i]) for i, name in enumerate(STAGES) if i != KERNEL and time[i]}


def _figures(recording: Recording, idle: IdleTime, stages: dict[str, int]) -> dict[str, float]:
    device = recording.device
    numbers, first, last = recording.run_windows()
    if recording.inline:
        active = total(union(first, last))
        host = active - idle.busy_ns
    else:
        active = idle.window_ns - idle.causes["no_work"]
        host = sum(ns for name, ns in stages.items() if STAGES.index(name) not in WAITING)
    figures: dict[str, float] = {
        "runs": len(numbers),
        "kernels": len(device),
        "window_ns": idle.window_ns,
        "active_ns": active,
        "busy_ns": idle.busy_ns,
        "idle_ns": idle.idle_ns,
        "host_share_pct": _percent(host, active),
        "device_share_pct": _percent(idle.busy_ns, active),
        "communication_pct": _percent(_exposed_communication(recording), idle.busy_ns),
    }
    if not recording.inline:
        figures["idle_pct"] = _percent(idle.idle_ns - idle.causes["no_work"], active)
    return figures


def _percent(part: float, whole: float) -> float:
    return round(min(100.0, max(0.0, 100.0 * part / whole)), 2) if whole > 0 else 0.0


def _exposed_communication(recording: Recording) -> int:
    """Busy time in which only communication kernels ran."""
    device = recording.device
    moving = {i for i, (_, op) in enumerate(recording.nodes) if op.rpartition("::")[2] in COMMUNICATION_OPS}
    if not moving:
        return 0
    compute = device.take(~np.isin(device.node, sorted(moving)))
    return total(union(device.start, device.end)) - total(union(compute.start, compute.end))


def _missing_evidence(recording: Recording, idle: IdleTime, figures: dict[str, float]) -> str:
    kernels = len(recording.device)
    if kernels < MIN_KERNELS:
        return f"{kernels} kernels recorded, at least {MIN_KERNELS} are needed; profile more runs"
    recorded = kernels + len(recording.host)
    if recording.lost > MAX_LOST_SHARE * (recording.lost + recorded):
        return f"{recording.lost} of {recording.lost + recorded} spans were lost; profile fewer runs"
    idle_ns = idle.idle_ns - idle.causes["no_work"]
    unknown = idle.causes["unattributed"]
    if figures.get("idle_pct", 0.0) >= DEVICE_BOUND_IDLE_PCT and unknown > BLAME_SHARE * idle_ns:
        return f"{_percent(unknown, idle_ns):.0f} % of the device's idle time matches no host span"
    return ""


def _judge_inline(figures: dict[str, float], stages: dict[str, int]) -> tuple[str, str]:
    host, device = figures["host_share_pct"], figures["device_share_pct"]
    if host >= INLINE_HOST_BOUND_PCT:
        verdict, words = "host_bound", "Host bound"
    elif figures["communication_pct"] >= 100 * COMMUNICATION_SHARE:
        verdict, words = "communication_bound", "Communication bound"
    elif host <= INLINE_DEVICE_BOUND_PCT:
        verdict, words = "device_bound", "Device bound"
    else:
        verdict, words = "balanced", "Balanced"
    per_run = figures["active_ns"] / max(1.0, figures["runs"]) / 1e3
    shares = f"host {host:.0f} %, kernels {device:.0f} % of {per_run:.1f} us a run"
    sentence = f"{words} (inline: shares, not idle): {shares}"
    if stages:
        stage = max(stages, key=lambda name: stages[name])
        sentence += f"; largest host stage {stage} {_percent(stages[stage], figures['active_ns']):.0f} %"
    return verdict, sentence + "."


def _judge_overlapped(figures: dict[str, float], idle: IdleTime, stages: dict[str, int]) -> tuple[str, str]:
    share = figures["idle_pct"]
    head = f"the device idled {share:.0f} % of {figures['active_ns'] / 1e6:.2f} ms"
    if share < DEVICE_BOUND_IDLE_PCT:
        if figures["communication_pct"] >= 100 * COMMUNICATION_SHARE:
            part = figures["communication_pct"]
            return "communication_bound", f"Communication bound: {head} and moved data for {part:.0f} % of the rest."
        return "device_bound", f"Device bound: {head}; faster kernels help, a faster host does not."
    idle_ns = idle.idle_ns - idle.causes["no_work"]
    blamed = {name: ns for name, ns in idle.causes.items() if ns and name not in NO_BLAME_CAUSES}
    top = sorted(blamed, key=lambda name: -blamed[name])[:2]
    reasons = ", ".join(f"{name} {_percent(blamed[name], idle_ns):.0f} %" for name in top)
    if share < BALANCED_IDLE_PCT:
        return "balanced", f"Balanced: {head} ({reasons})."
    queued = sum(idle.causes[name] for name in QUEUED_CAUSES)
    if queued >= BLAME_SHARE * idle_ns:
        return "dependency_bound", f"Dependency bound: {head} although work was queued ({reasons})."
    host = sum(blamed.values()) - queued
    if host < BLAME_SHARE * idle_ns:
        return "balanced", f"Balanced: {head}, and neither the host nor waiting tasks explain half of it ({reasons})."
    main = max((name for name in blamed if name in ADVICE), key=lambda name: blamed[name])
    if main == "host_late.launch" and stages.get("submit", 0) > stages.get("launch", 0):
        main = "launch_in_flight"  # who submits chains already cannot be helped by sink mode
    return "host_bound", f"Host bound: {head}, because of {reasons}; {ADVICE[main]}."
