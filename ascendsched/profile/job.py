"""The diagnosis of a job: its ranks one by one, beside each other, and step by step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ascendsched.errors import AscendSchedError
from ascendsched.profile.advice import Advice, advise
from ascendsched.profile.diagnosis import Diagnosis, diagnose, to_dict
from ascendsched.profile.skew import Skew, compare_ranks
from ascendsched.profile.timeline import Timeline, common_steps, select_step

# From this share of a rank's window on, waiting for the last rank at collectives is a finding of its own.
SKEW_PCT = 5.0


@dataclass(frozen=True)
class Job:
    """Diagnoses by rank; with `--step all` also by step; and the comparison of the ranks."""

    ranks: tuple[Diagnosis, ...]
    by_step: tuple[tuple[int, Diagnosis], ...]
    skew: Skew | None

    @property
    def main(self) -> Diagnosis:
        """The rank to look at: the one that the others wait for, else of the commonest verdict the one most idle."""
        if self.skew is not None and self.is_skewed:
            late = self.skew.late_rank()
            for diagnosis in self.ranks:
                if late is not None and diagnosis.rank.label == late[0]:
                    return diagnosis
        common = Counter(d.verdict for d in self.ranks if d.device is not None).most_common(1)
        verdict = common[0][0] if common else self.ranks[0].verdict
        candidates = [d for d in self.ranks if d.verdict == verdict]
        return max(candidates, key=lambda d: d.figures.get("idle_us", 0.0))

    @property
    def is_skewed(self) -> bool:
        """Whether ranks wait for each other for a share of the time that matters."""
        if self.skew is None:
            return False
        window = max(d.figures.get("window_us", 0.0) for d in self.ranks)
        return self.skew.waited_ns / 1e3 >= window * SKEW_PCT / 100 > 0

    def advice(self) -> tuple[Advice, ...]:
        """Advice for the rank to look at."""
        return advise(self.main)

    def skew_sentence(self) -> str:
        """Who arrives last at the collectives and why, or "" where that does not matter."""
        late = self.skew.late_rank() if self.skew is not None and self.is_skewed else None
        if self.skew is None or late is None:
            return ""
        name, stage, share = late
        waited = self.skew.waited_ns / 1e6
        count = len(self.skew.arrivals)
        return (
            f"{name} arrives last: {share:.0f} % of {waited:.2f} ms dispatch skew before {count} collectives; {stage}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the figures of the rank to look at, then ranks, collectives and steps."""
        values = {**to_dict(self.main), "advice": [advice.to_dict() for advice in self.advice()]}
        if len(self.ranks) > 1:
            values["ranks"] = [to_dict(diagnosis) for diagnosis in self.ranks]
        if self.skew is not None:
            values["skew"] = {
                "sentence": self.skew_sentence(),
                "waited_us": self.skew.waited_ns / 1e3,
                "clock": self.skew.clock,
                "notes": list(self.skew.notes),
                "collectives": [arrival.to_dict() for arrival in self.skew.arrivals],
            }
        if self.by_step:
            values["by_step"] = [{"step": number, **to_dict(diagnosis)} for number, diagnosis in self.by_step]
        return values


def diagnose_job(timeline: Timeline, step: str = "whole") -> Job:
    """Diagnoses every rank.

    Parameters
    ----------
    timeline : Timeline
        At least one rank.
    step : str
        "whole" for everything recorded, "all" for that and each step, or the number of a step.

    Raises
    ------
    AscendSchedError
        Where the step was not recorded, or `step` is neither.
    """
    ranks = timeline.ranks
    known = common_steps(ranks)
    by_step: list[tuple[int, Diagnosis]] = []
    if step == "all":
        if not known:
            raise AscendSchedError("[diagnose] no steps recorded: the program marks none; leave --step out")
        by_step = [(s.number, diagnose(select_step(rank, s.number))) for rank in ranks for s in rank.steps]
    elif step != "whole":
        number = int(step) if step.isdecimal() and len(step) < 16 else -1
        chosen = [rank for rank in ranks if any(s.number == number for s in rank.steps)]
        if not chosen:
            raise AscendSchedError(
                f"[diagnose] step {step!r} is not recorded: there are {_listed(known)}; pass one of these, or all"
            )
        ranks = tuple(select_step(rank, number) for rank in chosen)
    diagnoses = tuple(diagnose(rank) for rank in ranks)
    return Job(diagnoses, tuple(by_step), compare_ranks(diagnoses))


def _listed(steps: list[int]) -> str:
    """The numbers of steps, short also where there are many."""
    if len(steps) > 2 and steps == list(range(steps[0], steps[-1] + 1)):
        return f"{steps[0]} to {steps[-1]}"
    listed = ", ".join(map(str, steps[:12])) or "none"
    return listed if len(steps) <= 12 else f"{listed} and {len(steps) - 12} more"
