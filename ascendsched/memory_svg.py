"""A picture of a memory plan: time to the right, addresses upwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ascendsched.memory_plan import Buffer, MemoryPlan
from ascendsched.whole_files import write_whole

WIDTH, HEIGHT = 1200, 600
MARGIN = 40


def write_svg(path: str | Path, names: Sequence[str], buffers: Sequence[Buffer], plan: MemoryPlan) -> None:
    """Writes one rectangle per buffer, its name, lifetime and place as the tooltip.

    Raises
    ------
    WriteError
        Where the file cannot be written; what was there stays.
    """
    first = min((lower for lower, _, _ in buffers), default=0)
    span = max((upper for _, upper, _ in buffers), default=1) - first
    x_scale, y_scale = WIDTH / span, HEIGHT / max(plan.height, 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * MARGIN} {HEIGHT + 2 * MARGIN}" '
        'font-family="sans-serif" font-size="13">',
        f'<text x="{MARGIN}" y="{MARGIN - 12}">{len(buffers)} buffers, height {plan.height:,} bytes, '
        f"lower bound {plan.lower_bound:,}{', optimal' if plan.is_optimal else ''}</text>",
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{WIDTH}" height="{HEIGHT}" fill="#eee"/>',
    ]
    for i, ((lower, upper, size), offset) in enumerate(zip(buffers, plan.offsets, strict=True)):
        if not size:
            continue
        x, width = MARGIN + (lower - first) * x_scale, (upper - lower) * x_scale
        y, height = MARGIN + HEIGHT - (offset + size) * y_scale, size * y_scale
        lines.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="hsl({i * 137.508 % 360:.0f} 55% 65%)" stroke="#333" stroke-width="0.3">'
            f"<title>{_escape(names[i])}: [{lower}, {upper}), {size:,} bytes at {offset:,}</title></rect>"
        )
    lines += [f'<text x="{MARGIN}" y="{HEIGHT + 2 * MARGIN - 14}">time</text>', "</svg>"]
    write_whole(path, "\n".join(lines) + "\n", "memplan")


def _escape(text: str) -> str:
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
