"""The diagnosis of one rank of an imported profile: verdict, figures, causes, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ascendsched.profile.checks import Check, check_rank
from ascendsched.profile.gaps import CAUSES, HOST_CAUSES, Gaps, find_gaps, idle_ns
from ascendsched.profile.idle import explain_idle
from ascendsched.profile.spans import Ints, Recording, total
from ascendsched.profile.timeline import COMMUNICATION, KERNEL, Device, Rank, exposed_ns
from ascendsched.profile.verdict import (
    BALANCED_IDLE_PCT,
    BLAME_SHARE,
    DEVICE_BOUND_IDLE_PCT,
    MIN_KERNELS,
    QUEUED_CAUSES,
    judge,
)

# Communication that nothing overlaps bounds a device from a third of its time on, if neither idling nor computing
# takes more.
COMMUNICATION_PCT = 100 / 3

TOP_KERNELS = 5

CONFIDENCE = ("high", "medium", "low")


@dataclass(frozen=True)
class Diagnosis:
    """What bounds one rank.

    Attributes
    ----------
    rank, device, gaps
        What was judged: the rank's busiest device and its idle intervals; None where it has no device entries.
    verdict : str
        One of `ascendsched.profile.VERDICTS`.
    sentence : str
        The verdict in words, with its main figures.
    confidence : str
        "high", "medium" or "low"; `checks` say why.
    figures : dict
        Device figures: counts, times in us, shares in percent.
    causes : dict
        Idle time in ns by cause; the values sum to the idle time.
    checks : tuple of Check
        What limits the trust in the figures.
    """

    rank: Rank
    device: Device | None
    gaps: Gaps | None
    verdict: str
    sentence: str
    confidence: str
    figures: dict[str, float]
    causes: dict[str, int]
    checks: tuple[Check, ...]

    @property
    def idle_split_pct(self) -> dict[str, float]:
        """Share of the idle time by cause, the largest first."""
        whole = sum(self.causes.values())
        ordered = sorted(self.causes.items(), key=lambda item: -item[1])
        return {name: 100 * ns / whole for name, ns in ordered if ns}

    def host_late_pct(self) -> float:
        """Share of the idle time in which the launch call came after the device had drained."""
        return sum(pct for name, pct in self.idle_split_pct.items() if name in HOST_CAUSES)

    def stages_us(self) -> dict[str, float | str]:
        """Idle time before late launches by host stage; a stage that the profile cannot hold says so."""
        times: dict[str, float | str] = {}
        for stage in ("infer_shape", "tiling", "alloc", "launch"):
            if stage in self.rank.recorded or self.causes.get(f"host_late.{stage}"):
                times[stage] = self.causes.get(f"host_late.{stage}", 0) / 1e3
            elif self.rank.system == "ascend":
                times[stage] = "not recorded: collect level 1"
        return times


def diagnose(rank: Rank) -> Diagnosis:
    """Judges a rank by its busiest device."""
    device = rank.busiest()
    if device is None or not len(device.work):
        checks = check_rank(rank, None, None)
        sentence = "Insufficient evidence: the profile holds no device activity; record with device activities on."
        return Diagnosis(rank, None, None, "insufficient_evidence", sentence, "low", {}, {}, checks)
    gaps = find_gaps(rank, device)
    figures = _figures(rank, device, gaps)
    causes = gaps.causes()
    checks = check_rank(rank, device, gaps)
    recording = rank.extra.get("recording")
    if recording is not None:
        own = judge(recording)
        verdict, sentence = own.verdict, own.sentence
        if not own.inline:
            gaps = _by_own_rules(gaps, recording)
            causes = gaps.causes()
    else:
        verdict, sentence = _judge(figures, causes)
    confidence = CONFIDENCE[max((check.lowers for check in checks), default=0)]
    if verdict == "insufficient_evidence":
        confidence = "low"
    return Diagnosis(rank, device, gaps, verdict, sentence, confidence, figures, causes, checks)


def _by_own_rules(gaps: Gaps, recording: Recording) -> Gaps:
    """The gaps with the causes behind a recording's verdict: it knows more of each run than a timeline."""
    parts = explain_idle(recording).parts
    none = np.zeros(len(gaps.start), dtype=np.int64)
    return replace(gaps, parts={name: parts.get(name, none) for name in CAUSES})


def top_kernels(rank: Rank, device: Device) -> list[dict[str, Any]]:
    """The names of device work that took most time: summed time, count, share of all work's time in percent."""
    work = device.work
    length = work.end - work.start
    names, index, counts = np.unique(work.name, return_inverse=True, return_counts=True)
    sums = np.zeros(len(names), dtype=np.int64)
    np.add.at(sums, index, length)
    whole = max(1, int(length.sum()))
    order = np.argsort(-sums, kind="stable")[:TOP_KERNELS]
    return [
        {
            "name": rank.names[int(names[i])],
            "us": int(sums[i]) / 1e3,
            "count": int(counts[i]),
            "share_pct": 100 * int(sums[i]) / whole,
        }
        for i in order
    ]


def _figures(rank: Rank, device: Device, gaps: Gaps) -> dict[str, float]:
    work = device.work
    computing, moving = work.of_kinds(KERNEL), work.of_kinds(COMMUNICATION)
    both = work.of_kinds(KERNEL, COMMUNICATION)
    window, idle = max(1, gaps.window_ns), idle_ns(gaps)
    covered = total(both.covered())
    launches = np.unique(work.launch[work.launch >= 0])
    return {
        "device": device.number,
        "device_activities": len(work),
        "streams": len(np.unique(work.stream)),
        "window_us": gaps.window_ns / 1e3,
        "busy_pct": 100 - 100 * idle / window,
        "idle_pct": 100 * idle / window,
        "idle_us": idle / 1e3,
        "computing_us": total(computing.covered()) / 1e3,
        "communication_us": total(moving.covered()) / 1e3,
        "communication_not_overlapped_us": (covered - total(computing.covered())) / 1e3,
        "free_us": (int(both.end.max() - both.start.min()) - covered) / 1e3 if len(both) else 0.0,
        "exposed_communication_pct": 100 * exposed_ns(work, COMMUNICATION) / window,
        "median_kernel_us": _median(computing.end - computing.start) / 1e3,
        "launch_calls": len(launches),
        "graph_launches": int(np.count_nonzero(rank.launches.is_graph[launches])) if len(launches) else 0,
    }


def _median(values: Ints) -> float:
    """The upper median; np.median would load half of NumPy that nothing else here needs."""
    return float(np.sort(values)[len(values) // 2]) if len(values) else 0.0


def _judge(figures: dict[str, float], causes: dict[str, int]) -> tuple[str, str]:
    idle_pct, exposed = figures["idle_pct"], figures["exposed_communication_pct"]
    head = f"the device idled {idle_pct:.1f} % of {figures['window_us'] / 1e3:.2f} ms"
    count = int(figures["device_activities"])
    if count < MIN_KERNELS:
        few = f"{count} device activities recorded, at least {MIN_KERNELS} are needed; profile more steps"
        return "insufficient_evidence", f"Insufficient evidence: {few}."
    if exposed >= COMMUNICATION_PCT and exposed >= idle_pct and exposed >= 100 - idle_pct - exposed:
        return "communication_bound", f"Communication bound: {exposed:.1f} % of the time only collectives ran; {head}."
    if idle_pct < DEVICE_BOUND_IDLE_PCT:
        return "device_bound", f"Device bound: {head}; faster kernels help, a faster host does not."
    whole = sum(causes.values())
    share = {name: ns / whole for name, ns in causes.items() if ns}
    top = sorted(share, key=lambda name: -share[name])[:2]
    reasons = ", ".join(f"{name} {100 * share[name]:.0f} %" for name in top)
    if share.get("unattributed", 0.0) > BLAME_SHARE:
        part = 100 * share["unattributed"]
        return "insufficient_evidence", f"Insufficient evidence: {head}, and {part:.0f} % of that has no launch record."
    if idle_pct < BALANCED_IDLE_PCT:
        return "balanced", f"Balanced: {head} ({reasons})."
    queued = sum(share.get(name, 0.0) for name in QUEUED_CAUSES)
    host = sum(share.get(name, 0.0) for name in (*HOST_CAUSES, "launch_in_flight", "queue_full"))
    if host >= BLAME_SHARE:
        return "host_bound", f"Host bound: {head}, {100 * host:.0f} % of it because the host launched late ({reasons})."
    if queued >= BLAME_SHARE:
        return "dependency_bound", f"Dependency bound: {head} although work was queued ({reasons})."
    return "balanced", f"Balanced: {head}, and neither the host nor waiting work explains half of it ({reasons})."


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """Plain data for JSON."""
    rank = diagnosis.rank
    return {
        "verdict": diagnosis.verdict,
        "sentence": diagnosis.sentence,
        "confidence": diagnosis.confidence,
        "source": rank.source,
        "system": rank.system,
        "rank": rank.number,
        **diagnosis.figures,
        "idle_split_pct": diagnosis.idle_split_pct,
        "idle_split_ns": {name: ns for name, ns in diagnosis.causes.items() if ns},
        "host_stages_us": diagnosis.stages_us(),
        "top_kernels": top_kernels(rank, diagnosis.device) if diagnosis.device is not None else [],
        "host_apis": rank.extra.get("host_apis", []),
        "steps": [step.number for step in rank.steps],
        "checks": [check.to_dict() for check in diagnosis.checks],
    }
