"""A comparison as one offline HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ascendsched.sim.cluster import Agreement, Growth
from ascendsched.sim.comparison import Row
from ascendsched.sim.cost_profile import CostProfile

STYLE = (
    "body{font:15px/1.5 sans-serif;margin:2em auto;max-width:62em;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.3em .8em;border-bottom:1px solid #ccc;text-align:right}"
    "td:first-child,th:first-child,.text{text-align:left}.bar{height:.9em;background:#37c}.idle{background:#ddd}"
)


def make_page(
    title: str,
    unit: str,
    rows: Sequence[Row],
    growth: Sequence[Growth],
    agreement: Sequence[Agreement],
    profile: CostProfile,
) -> str:
    """The page; it loads nothing from anywhere."""
    longest = max(row.step_ms for row in rows)
    body = [f"<h1>{escape(title)}</h1><p>Simulated on {escape(profile.description)}.</p>"]
    head = ("mode", "step ms", f"{unit}/s", "device idle %", "host CPU %", "verdict", "step: device busy, idle")
    lines = []
    for row in rows:
        cells = [
            row.mode,
            *(f"{v:.2f}" for v in (row.step_ms, row.per_second, row.idle_pct, row.host_pct)),
            row.verdict,
        ]
        lines.append([*map(escape, cells), _bar(row.step_ms / longest, row.idle_pct / 100)])
    body.append(_table(head, lines))
    if growth:
        body.append("<h2>Growth with the number of ranks</h2>")
        table = [[str(g.ranks), g.mode, *(f"{v:.2f}" for v in (g.step_ms, g.slowest_ms, g.idle_pct))] for g in growth]
        body.append(_table(("ranks", "mode", "mean step ms", "slowest ms", "device idle %"), table))
    if agreement:
        body.append("<h2>Ranks that choose alone, and that agree on mode and bucket</h2>")
        table = [[str(a.ranks), *(f"{v:.2f}" for v in (a.alone_ms, a.aligned_ms, a.ahead_ms))] for a in agreement]
        body.append(_table(("ranks", "alone ms", "aligned ms", "one step ahead ms"), table))
    body.append("<h2>Costs and their sources</h2>")
    body.append(_table(("figure", "value", "range", "source"), _costs(profile)))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style><body>{''.join(body)}</body></html>\n"
    )


def _bar(length: float, idle: float) -> str:
    busy = 20 * length * (1 - idle)
    return (
        f'<div style="display:flex"><div class="bar" style="width:{busy:.2f}em"></div>'
        f'<div class="bar idle" style="width:{20 * length - busy:.2f}em"></div></div>'
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    is_text = [not cell[:1].isdigit() for cell in rows[0]]  # figures stand to the right
    marks = [' class="text"' if text else "" for text in is_text]
    top = "".join(f"<th{mark}>{escape(cell)}</th>" for mark, cell in zip(marks, head, strict=True))
    lines = ("".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) for row in rows)
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _costs(profile: CostProfile) -> list[list[str]]:
    rows = []
    for name, value in profile.costs.items():
        low, high = profile.ranges[name]
        rows.append([name, f"{value:g}", f"{low:g} to {high:g}" if low < high else "", escape(profile.sources[name])])
    return rows
