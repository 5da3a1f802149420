"""Two profiles of a program, before and after a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.profile.diagnosis import Diagnosis, top_kernels

# Below this, a change of time is what two recordings of the same program differ by.
SAME_PCT = 2.0
NAME_WIDTH = 60


@dataclass(frozen=True)
class Row:
    """One figure of both profiles; None where one does not hold it."""

    key: str
    title: str
    unit: str
    before: float | None
    after: float | None

    @property
    def change_pct(self) -> float | None:
        """Change in percent of the value before; None where there is nothing to compare, and for shares."""
        if self.unit == "%" or not self.before or self.after is None:
            return None
        return 100 * (self.after / self.before - 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**self.__dict__, "change_pct": self.change_pct}


@dataclass(frozen=True)
class Comparison:
    """Figures side by side, per `unit`: "step" where both profiles mark steps, else "profile"."""

    unit: str
    sentence: str
    verdicts: tuple[str, str]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        rows = [row.to_dict() for row in self.rows]
        before, after = self.verdicts
        verdicts = {"before": before, "after": after}
        return {
            "unit": self.unit,
            "sentence": self.sentence,
            "verdicts": verdicts,
            "rows": rows,
            "notes": list(self.notes),
        }


def compare(before: Diagnosis, after: Diagnosis) -> Comparison:
    """Compares two diagnoses.

    Raises
    ------
    AscendSchedError
        Where one of them holds no device activity.
    """
    for name, diagnosis in (("first", before), ("second", after)):
        if diagnosis.device is None:
            what = f"the {name} profile holds no device activity: {diagnosis.rank.source}"
            raise AscendSchedError(f"[diagnose] {what}; compare profiles that do")
    counts = (len(before.rank.steps), len(after.rank.steps))
    has_steps = all(counts)
    divisors = counts if has_steps else (1, 1)
    rows = list(_rows(before, after, divisors))
    window = rows[0]
    change = window.change_pct or 0.0
    cause = _moved_most(rows)
    if abs(change) < SAME_PCT:
        head = f"No change: {change:+.1f} %"
    else:
        head = f"{'Faster' if change < 0 else 'Slower'}: {abs(change):.1f} % {'less' if change < 0 else 'more'} time"
    unit = "step" if has_steps else "profile"
    sentence = f"{head} per {unit}; {before.verdict} before, {after.verdict} after{cause}."
    notes = []
    if not has_steps:
        notes.append("a profile marks no steps: whole profiles are compared, so record the same work in both")
    if before.rank.system != after.rank.system:
        notes.append(f"the profiles come from different systems: {before.rank.system}, {after.rank.system}")
    return Comparison(unit, sentence, (before.verdict, after.verdict), tuple(rows), tuple(notes))


def _rows(before: Diagnosis, after: Diagnosis, divisors: tuple[int, int]) -> list[Row]:
    figures = (before.figures, after.figures)

    def share(key: str) -> tuple[float, float]:
        return figures[0][key], figures[1][key]

    def per_unit(key: str) -> tuple[float, float]:
        return figures[0][key] / divisors[0], figures[1][key] / divisors[1]

    rows = [
        Row("window_us", "time", "us", *per_unit("window_us")),
        Row("idle_us", "device idle", "us", *per_unit("idle_us")),
    ]
    rows.append(Row("idle_pct", "device idle, share", "%", *share("idle_pct")))
    for key, title in (("computing_us", "computing"), ("communication_us", "communication")):
        rows.append(Row(key, title, "us", *per_unit(key)))
    for key, title in (("device_activities", "device activities"), ("launch_calls", "launch calls")):
        rows.append(Row(key, title, "", *per_unit(key)))
    rows.append(Row("median_kernel_us", "median kernel", "us", *share("median_kernel_us")))
    causes = {name: 0 for d in (before, after) for name, ns in d.causes.items() if ns}
    for name in causes:
        times = [d.causes.get(name, 0) / 1e3 / n for d, n in zip((before, after), divisors, strict=True)]
        rows.append(Row(f"idle.{name}", f"idle: {name}", "us", *times))
    longest = dict.fromkeys(name for d in (before, after) for name in _longest(d))
    kernels = [_times_of(d, set(longest)) for d in (before, after)]
    for name in longest:
        times = [found.get(name, 0) / 1e3 / n for found, n in zip(kernels, divisors, strict=True)]
        rows.append(Row(f"work.{name}", f"work: {name[:NAME_WIDTH]}", "us", *times))
    return rows


def _longest(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.device is None:
        return []
    return [row["name"] for row in top_kernels(diagnosis.rank, diagnosis.device)]


def _times_of(diagnosis: Diagnosis, names: set[str]) -> dict[str, int]:
    """Summed time in ns of the device work of these names."""
    times = dict.fromkeys(names, 0)
    if diagnosis.device is not None:
        work, texts = diagnosis.device.work, diagnosis.rank.names
        for number in np.unique(work.name).tolist():
            if texts[number] in names:
                mine = work.name == number
                times[texts[number]] += int((work.end - work.start)[mine].sum())
    return times


def _moved_most(rows: list[Row]) -> str:
    """The cause of idle time that changed most, in words."""
    moved = {row.title: (row.after or 0.0) - (row.before or 0.0) for row in rows if row.key.startswith("idle.")}
    if not moved:
        return ""
    title = max(moved, key=lambda name: abs(moved[name]))
    return f"; {title} changed most, by {moved[title] / 1e3:+.3f} ms"
