"""The chart of `bench_claims.py`: each claim as one, what is simulated and measured as multiples of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendsched.whole_files import write_whole

WIDTH, ROW, LEFT, TOP = 860, 44, 330, 60
LOW, HIGH = 0.02, 8.0


def write_chart(path: Path, rows: Sequence[dict[str, Any]], title: str) -> None:
    """Writes an SVG of the rows that have a claimed number: a bar from low to high, a dot, a diamond where measured."""
    shown = [row for row in rows if row["claimed"]]
    height = TOP + ROW * len(shown) + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/><text x="12" y="24" font-size="15">{title}</text>',
        '<text x="12" y="44" fill="#555">bar: simulated over plausible costs; dot: central; diamond: measured</text>',
    ]
    for tick in (0.03, 0.1, 0.3, 1, 3):
        colour = "#c33" if tick == 1 else "#ddd"
        lines.append(f'<line x1="{_x(tick):.1f}" y1="{TOP}" x2="{_x(tick):.1f}" y2="{height - 40}" stroke="{colour}"/>')
        label = "the claim" if tick == 1 else f"{tick:g} x"
        lines.append(f'<text x="{_x(tick):.1f}" y="{height - 20}" text-anchor="middle">{label}</text>')
    for i, row in enumerate(shown):
        y = TOP + ROW * i + ROW / 2
        middle = _x(row["simulated"] / row["claimed"])
        low, high = sorted(_x(row[key] / row["claimed"]) for key in ("low", "high"))
        lines.append(f'<text x="12" y="{y + 4:.0f}">{row["claim"]} ({row["claimed"]:g} {row["unit"]})</text>')
        lines.append(
            f'<rect x="{low:.1f}" y="{y - 6:.0f}" width="{max(2.0, high - low):.1f}" height="12" fill="#9bd"/>'
            f'<circle cx="{middle:.1f}" cy="{y:.0f}" r="6" fill="#159"/>'
        )
        if row["measured"] is not None:
            x = _x(row["measured"] / row["claimed"])
            lines.append(f'<path d="M{x:.1f} {y - 8:.0f} l7 8 l-7 8 l-7 -8 z" fill="#e70" fill-opacity="0.85"/>')
    write_whole(path, "\n".join([*lines, "</svg>"]) + "\n", "bench_claims")


def _x(ratio: float) -> float:
    place = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return LEFT + place * (WIDTH - LEFT - 20)
