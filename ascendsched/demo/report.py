"""The demo's report: a table, verdicts, strips, and one sentence on what sinking gained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from ascendsched.demo.decoder_rows import MODEL as DECODER
from ascendsched.demo.rows import Row
from ascendsched.demo.run import Result
from ascendsched.profile.strips import Strip, Strips

# Less than this is within what a busy machine does to a measurement.
LITTLE_GAIN = 1.1
STRIP_RUNS = 2  # drawn, as timed: one run, and what lies between it and the next
LEGEND = (
    "host, kern(els): shares of a run, profiled apart from the timing, but run as timed. "
    "idle, verdict: of the device, with several asynchronous runs in flight, so that it has its own thread. "
    "hits: schedules found (sink, auto), or nodes whose tiling was remembered or found (host). "
    "error: the largest absolute one against the reference."
)


def print_report(result: Result, console: Console) -> None:
    """Prints everything, the closing sentence last."""
    console.print(f"Measured here in {result.seconds:.0f} s; every row has {result.threads} CPU thread(s).")
    for model in dict.fromkeys(row.model for row in result.rows):
        rows = [row for row in result.rows if row.model == model]
        console.print()
        console.print(_table(rows))
        for row in rows:
            if row.label.startswith("sink") and row.load_ms is not None:
                console.print(f"{row.label}: loaded once in {row.load_ms:.1f} ms, which is not in its time")
    console.print()
    console.print(LEGEND)
    console.print()
    for row in result.rows:
        if row.judged is not None:
            console.print(f"{row.name}: {row.judged.verdict}")
            for note in row.judged.verdict.notes:
                console.print(f"  note: {note}")
    strips = [
        Strip.of_runs(f"{title}: {row.name}, {STRIP_RUNS} {row.unit}s", row.shares.recording, STRIP_RUNS)
        for title, row in zip(("before", "after"), host_and_sink(result, DECODER), strict=True)
        if row.shares is not None
    ]
    console.print()
    console.print(Strips(strips))
    console.print()
    console.print("Traces, to open in ui.perfetto.dev:")
    for row in result.rows:
        if row.trace:
            console.print(f"  {row.trace}", soft_wrap=True)
    console.print(f"\n{closing_sentence(result)}")


def to_dict(result: Result) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "threads": result.threads,
        "seconds": round(result.seconds, 2),
        "rows": [_row_dict(row) for row in result.rows],
        "conclusion": closing_sentence(result),
    }


def host_and_sink(result: Result, model: str) -> tuple[Row, Row]:
    """The rows that a model's comparison is about: host mode with its caches, and sink mode."""
    rows = [row for row in result.rows if row.model == model]
    host = next(row for row in rows if row.label.startswith("host") and "off" not in row.label)
    sink = next(row for row in rows if row.label.startswith("sink"))
    return host, sink


def closing_sentence(result: Result) -> str:
    """What sinking gained for each model, or that it gained little and why."""
    models = dict.fromkeys(row.model for row in result.rows)
    return "Sinking " + ", and it ".join(_conclusion(*host_and_sink(result, model)) for model in models) + "."


def _conclusion(host: Row, sink: Row) -> str:
    gain = host.us / sink.us
    model = f"the {host.model}" if host.model.islower() else host.model
    shares = f"the host's share went from {host.host_share_pct:.0f} to {sink.host_share_pct:.0f} %"
    change = f"{host.us:,.0f} to {sink.us:,.0f} us per {sink.unit}"
    if gain >= LITTLE_GAIN:
        return f"made {model} {gain:.1f} times as fast ({change}): {shares}"
    # A run of host mode without its host part is the most that sinking could reach.
    if host.host_share_pct < 100 * (1 - 1 / LITTLE_GAIN):
        reason = f"kernels took {100 - host.host_share_pct:.0f} % of the time in host mode already"
    else:
        reason = f"{shares}, and kernels went from {host.kernel_us:,.0f} to {sink.kernel_us:,.0f} us"
    verb = "gained little on" if gain > 1 / LITTLE_GAIN else "slowed down"
    return f"{verb} {model} ({change}): {reason}"


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(rows[0].model)
    for heading in (f"us/{rows[0].unit}", "host%", "kern%", "idle%", "hits%"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("error", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.label,
            f"{row.us:,.1f}" if row.us < 1000 else f"{row.us:,.0f}",
            *(_percent(value) for value in _shares(row)),
            row.judged.verdict.verdict.replace("_", " ") if row.judged else "-",
            "ref." if row.max_error is None else f"{row.max_error:.1e}",
        )
    return table


def _shares(row: Row) -> tuple[float | None, ...]:
    if row.shares is None:
        return (None,) * 4
    overlap = row.overlap.verdict.figures if row.overlap else {}
    return row.host_share_pct, 100 - row.host_share_pct, overlap.get("idle_pct"), row.hit_pct


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _row_dict(row: Row) -> dict[str, Any]:
    host, kernels, idle, hits = _shares(row)
    return {
        "model": row.model,
        "label": row.label,
        "unit": row.unit,
        "us": {"min": min(row.times_us), "median": row.us, "max": max(row.times_us)},
        "host_share_pct": host,
        "kernel_share_pct": kernels,
        "device_idle_pct": idle,
        "hit_pct": hits,
        "load_ms": row.load_ms,
        "max_error": row.max_error,
        "verdict": row.judged.verdict.to_dict() if row.judged else None,
        "counters": row.counters,
        "trace": row.trace,
    }
