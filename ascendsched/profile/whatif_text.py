"""Predictions, measurements and comparisons as text for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from ascendsched.profile.compare import Comparison
from ascendsched.profile.experiment import Estimate, Experiment
from ascendsched.profile.whatif import WhatIf


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def format_us(us: float) -> str:
    """Microseconds with a unit that fits."""
    return f"{us:.1f} us" if us < 1000 else f"{us / 1e3:.3f} ms"


def print_what_if(found: WhatIf, console: Console) -> None:
    """Prints the predictions with what they assume."""
    table = _table(f"What would change a {found.unit}", "scenario", "time", "gain", "device idle")
    table.add_row("as recorded", format_us(found.measured_us), "", f"{found.idle_pct:.1f} %")
    for p in found.predictions:
        table.add_row(p.title, format_us(p.us), f"{p.gain_pct:+.1f} %", f"{p.idle_pct:.1f} %")
    console.print()
    console.print(table)
    console.print(f"The replay with nothing changed misses the recorded time by {found.replay_error_pct:+.2f} %.")
    texts = dict.fromkeys(text for p in found.predictions for text in p.assumptions)
    for text in (*texts, *found.notes):
        console.print(Padding(f"- {text}", (0, 0, 0, 2)), style="dim")


def print_experiment(experiment: Experiment, mode: str, console: Console) -> None:
    """Prints what was measured, and the prediction beside what it predicts."""
    source = "in the device's virtual time" if experiment.is_virtual else f"median of {len(experiment.host_us)} rounds"
    title = f"Time per run, {experiment.in_flight} in flight, {source}"
    table = _table(title, "", "median", "95 % interval")
    rows = [(f"{mode} mode", experiment.host_us), (f"{mode} mode, recorded", experiment.recorded_us)]
    rows += [("sink mode, predicted", experiment.predicted_us), ("sink mode, measured", experiment.sink_us)]
    for label, values in rows:
        if values:
            table.add_row(label, *_cells(Estimate.of(values)))
    console.print(table)
    if experiment.sink_us:
        ratio = experiment.ratio()
        interval = f"[{100 * (ratio.low - 1):+.1f}, {100 * (ratio.high - 1):+.1f}]"
        console.print(f"The prediction is off by {100 * (ratio.value - 1):+.1f} % {interval}.")


def _cells(estimate: Estimate) -> tuple[str, str]:
    return format_us(estimate.value), f"{format_us(estimate.low)} to {format_us(estimate.high)}"


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Prints two profiles side by side."""
    console.print(comparison.sentence, style="bold")
    table = _table(f"Per {comparison.unit}", "", "before", "after", "change")
    for row in comparison.rows:
        change = f"{row.change_pct:+.1f} %" if row.change_pct is not None else ""
        table.add_row(row.title, _value(row.before, row.unit), _value(row.after, row.unit), change)
    console.print(table)
    for note in comparison.notes:
        console.print(f"note: {note}")


def _value(value: Any, unit: str) -> str:
    if value is None:
        return "not recorded"
    if unit == "us":
        return format_us(value)
    return f"{value:.1f} %" if unit == "%" else f"{value:.1f}".removesuffix(".0")
