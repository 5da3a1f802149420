"""The report of a comparison: a table and a sentence for each set of shapes, and one sentence for the whole."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rich.console import Console
from rich.table import Table

from ascendsched.bench.result import Bench, Case, Row, format_ms

LEGEND = (
    "p50, p99: single warm calls, all rows in turn in one process. compile, first run, peak memory: in a fresh process "
    "for each runtime; memory is that of the whole process. error: the largest absolute one against {reference}."
)


def print_report(bench: Bench, console: Console) -> None:
    """Prints everything, the verdict last."""
    versions = ", ".join(f"{name} {version}" for name, version in bench.versions.items())
    console.print(f"{bench.model}, {bench.threads} thread(s); {versions}", soft_wrap=True)
    for case in bench.cases:
        console.print()
        console.print(_table(case))
        for note in case.notes:
            console.print(f"note: {note}", soft_wrap=True)
        for row in case.rows:
            if row.problem:
                console.print(f"{row.label}: not timed: {row.problem}", soft_wrap=True)
        if len(bench.cases) > 1:
            console.print(case.verdict, soft_wrap=True)
    console.print()
    console.print(LEGEND.format(reference=bench.reference))
    console.print(f"\n{bench.verdict}", soft_wrap=True)


def to_dict(bench: Bench) -> dict[str, Any]:
    """The same as plain data; what was not measured is None."""
    cases = [
        {
            "shapes": case.shapes,
            "rows": [_row(row) for row in case.rows],
            "ratio_to_onnxruntime": None if case.ratio is None else _finite(case.ratio),
            "notes": case.notes,
            "verdict": case.verdict,
        }
        for case in bench.cases
    ]
    head = {"model": bench.model, "threads": bench.threads, "reference": bench.reference, "versions": bench.versions}
    return {**head, "cases": cases, "verdict": bench.verdict}


def _row(row: Row) -> dict[str, Any]:
    return {
        "label": row.label,
        "runtime": row.runtime,
        "bound": row.is_bound,
        "p50_ms": _finite(row.p50_ms),
        "p99_ms": _finite(row.p99_ms),
        "runs": row.runs,
        "max_error": None if row.max_error is None else _finite(row.max_error),
        "problem": row.problem or None,
        "cold": None if row.cold is None else dataclasses.asdict(row.cold),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(case: Case) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(case.shapes, min_width=24, overflow="fold")
    for heading in ("p50 ms", "p99 ms", "runs", "compile ms", "first run ms", "peak MB", "error"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in case.rows:
        speed = ["-", "-", "-"] if row.problem else [format_ms(row.p50_ms), format_ms(row.p99_ms), str(row.runs)]
        cold = ["", "", ""]
        if row.cold:
            cold = [f"{row.cold.compile_ms:.1f}", f"{row.cold.first_run_ms:.2f}", f"{row.cold.peak_bytes / 2**20:.0f}"]
        table.add_row(row.label, *speed, *cold, "" if row.max_error is None else f"{row.max_error:.1e}")
    return table
