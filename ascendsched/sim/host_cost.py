"""What a run costs its host beside its kernels, fitted to other runs, where both share the caller's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.profile.spans import STAGES, Recording
from ascendsched.sim.kernel_library import Floats, non_negative_fit

# What is not known costs nothing: a figure moves away from that as far as runs speak for it, whose times are known to a
# share of NOISE, for a stage that takes a few microseconds at most.
NOISE, USUAL_NS = 0.03, 3_000.0
# Of reweighting, after which a run that fits nothing else counts by its error, not by its square (Huber's estimator).
ROUNDS = 10

#: What is counted in a run: each costs its host something.
COUNTED = ("kernel", "infer_shape", "tiling", "alloc", "launch", "submit", "sync", "load")


@dataclass(frozen=True)
class RunFacts:
    """A measured run: how often each stage occurred, what its kernels took together, and the whole, in ns."""

    counts: Mapping[str, float]
    kernels_ns: float
    run_ns: float


def count_stages(recording: Recording) -> dict[str, float]:
    """How often each stage occurs in one run of a recording, on average."""
    runs = max(1, len(recording.run_windows()[0]))
    stages = np.concatenate([recording.host.stage, recording.device.stage])
    return {name: float((stages == STAGES.index(name)).sum()) / runs for name in COUNTED}


class HostCost:
    """Cost of a run and of each thing counted in it; all figures are 0 or more.

    Raises
    ------
    AscendSchedError
        For fewer than two runs.
    """

    def __init__(self, runs: Sequence[RunFacts]) -> None:
        if len(runs) < 2:
            raise AscendSchedError(f"[simulate] {len(runs)} measured runs; fitting a host takes 2 or more")
        counted = np.array([_row(run.counts) for run in runs])
        whole = np.array([run.run_ns for run in runs])
        spent = np.array([max(0.0, run.run_ns - run.kernels_ns) for run in runs])
        doubt = np.eye(counted.shape[1]) * (NOISE / USUAL_NS)
        rows = np.concatenate([counted / whole[:, None], doubt])
        target = np.concatenate([spent / whole, np.zeros(len(doubt))])
        weights = np.ones(len(rows))
        for _ in range(ROUNDS):
            self.costs = non_negative_fit(rows * weights[:, None], target * weights)
            weights = 1 / np.sqrt(np.maximum(1, np.abs(rows @ self.costs - target) / NOISE))

    def ns(self, counts: Mapping[str, float]) -> float:
        """What the host takes in a run with such counts."""
        return float(np.array(_row(counts)) @ self.costs)


def _row(counts: Mapping[str, float]) -> Floats:
    return np.array([1.0, *(counts.get(name, 0.0) for name in COUNTED)])
