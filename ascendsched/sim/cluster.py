"""How a job grows with its ranks, and what it gains where they agree on how each step runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ascendsched.sim.comparison import Subject
from ascendsched.sim.engine import MODES, simulate
from ascendsched.sim.work import collective_ns

# Steps over which a job with jitter is averaged, first one left out.
STEPS = 4
#: Of a rank's steps, those whose signature it has not met before.
MISS_SHARE = 0.01
AGREEMENT_BYTES = 16  # a mode and a bucket


@dataclass(frozen=True)
class Growth:
    """One mode with one number of ranks."""

    ranks: int
    mode: str
    step_ms: float
    slowest_ms: float
    idle_pct: float


@dataclass(frozen=True)
class Agreement:
    """Mean step of a job in sink mode whose ranks now and then meet a signature that they have not loaded.

    Attributes
    ----------
    ranks : int
        Of the job.
    miss_share : float
        Of a rank's own steps, those whose signature is new to it.
    alone_ms : float
        Each rank chooses for itself: one that misses runs that step in host mode, and all others wait for it in the
        collectives. Some rank misses in nearly every step of a large job.
    aligned_ms : float
        Aligned dispatch: before each step the ranks agree on mode and bucket, the most cautious and the largest. All
        have met the same signatures then, so that they miss together, and as seldom as one; but the agreement is waited
        for in every step.
    ahead_ms : float
        The same one step ahead: the agreement costs nothing that is waited for, and a signature is loaded in the host's
        idle time of the step before.
    """

    ranks: int
    miss_share: float
    alone_ms: float
    aligned_ms: float
    ahead_ms: float


def grow(
    subject: Subject, ranks: Sequence[int], modes: Sequence[str] = ("host-uncached", "host", "sink")
) -> list[Growth]:
    """How a step grows with the number of ranks, hosts varying; a step takes as long as its slowest rank's."""
    rows = []
    for count in ranks:
        work = subject.workload(count)
        for name in modes:
            found = simulate(work, subject.profile, MODES[name], steps=STEPS, ranks=count, seed=count)
            steps = found.step_ns[1:].max(axis=1)
            idle = 1 - found.device_ns[1:].mean() / steps.mean()
            rows.append(Growth(count, name, float(steps.mean()) / 1e6, float(steps.max()) / 1e6, float(100 * idle)))
    return rows


def agree(subject: Subject, growth: Sequence[Growth], miss_share: float = MISS_SHARE) -> list[Agreement]:
    """What agreeing on mode and bucket gains, for each number of ranks in what `grow` found."""
    steps = {(row.ranks, row.mode): row.step_ms for row in growth}
    return [
        _agree(subject, ranks, miss_share, steps[(ranks, "sink")], steps[(ranks, "host-uncached")])
        for ranks in sorted({row.ranks for row in growth})
    ]


def _agree(subject: Subject, ranks: int, miss_share: float, sink: float, missed: float) -> Agreement:
    profile, work = subject.profile, subject.workload(ranks)
    somebody = 1 - (1 - miss_share) ** ranks
    missing = max(1, round(ranks * miss_share / somebody)) if somebody else 1
    # Hosts in sink mode are waiting: only those of the ranks that miss make a difference.
    found = simulate(work, profile, MODES["host-uncached"], steps=STEPS, ranks=missing, seed=missing)
    late_ms = float(found.step_ns[1:].max(axis=1).mean()) / 1e6
    waited = (collective_ns(AGREEMENT_BYTES, ranks, profile) + profile.ns("sync_us")) / 1e6 if ranks > 1 else 0.0
    stages = ("framework_us", "infer_shape_us", "tiling_us", "alloc_us")
    loading = float((~work.is_collective).sum()) * sum(profile.ns(stage) for stage in stages) / 1e6
    host = sum(profile.ns(stage) for stage in ("run_us", "submit_us", "sync_us")) / 1e6
    unhidden = max(0.0, loading - max(0.0, sink - host))
    return Agreement(
        ranks,
        miss_share,
        somebody * late_ms + (1 - somebody) * sink,
        waited + miss_share * missed + (1 - miss_share) * sink,
        sink + miss_share * unhidden,
    )
