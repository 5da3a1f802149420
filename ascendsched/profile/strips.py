"""Two-lane strips for a terminal: what host and device did over one stretch of time, one column per time slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ascendsched.profile.spans import KERNEL, STAGES, Recording, Spans, covered_before, innermost, union

#: Colour and, for pipes, letter of each stage.
LEGEND = {
    "infer_shape": ("blue", "i"),
    "tiling": ("yellow", "t"),
    "alloc": ("magenta", "a"),
    "launch": ("cyan", "l"),
    "submit": ("bright_cyan", "s"),
    "load": ("bright_yellow", "L"),
    "framework": ("red", "f"),
    "sync": ("bright_magenta", "y"),
    "queue_full": ("bright_red", "q"),
    "wait": ("bright_black", "w"),
    "kernel": ("green", "#"),
}
# How full of kernels a slot is, from empty to full.
SHADES = " ░▒▓█"
PLAIN_SHADES = " .:+#"
# A slot shows its longest stage once the host was busy for this share of it.
VISIBLE_SHARE = 0.25
# From here on a slot is drawn full: the rest is rounding.
FULL_SHARE = 0.95
LANE_LABEL = 8
MIN_COLUMNS = 20


@dataclass(frozen=True)
class Strip:
    """One stretch of a recording.

    Attributes
    ----------
    title : str
        Drawn above the lanes.
    recording : Recording
        The spans.
    window : tuple of int
        Begin and end in ns.
    """

    title: str
    recording: Recording
    window: tuple[int, int]

    @staticmethod
    def of_run(title: str, recording: Recording, run: int | None = None) -> Strip:
        """The strip of one run, by default the one of median length."""
        return Strip(title, recording, recording.window_of(recording.typical_run() if run is None else run))

    @staticmethod
    def of_runs(title: str, recording: Recording, count: int) -> Strip:
        """The strip of `count` consecutive runs, from the start of the first to the start of the next after them.

        Of all such stretches the one of median length; the whole recording where it holds no more runs than that.
        """
        _, first, last = recording.run_windows()
        if len(first) <= count:
            return Strip(title, recording, (int(first.min()), int(last.max())) if len(first) else (0, 0))
        length = first[count:] - first[:-count]
        begin = int(np.argsort(length, kind="stable")[len(length) // 2])
        return Strip(title, recording, (int(first[begin]), int(first[begin + count])))

    @property
    def length_ns(self) -> int:
        """Length of the window."""
        return self.window[1] - self.window[0]


class Strips:
    """Strips under each other on one time scale, as a rich renderable: colours on a terminal, letters in a pipe.

    Examples
    --------
    >>> Console().print(Strips([Strip.of_run("before", a), Strip.of_run("after", b)]))
    """

    def __init__(self, strips: Sequence[Strip]) -> None:
        self.strips = tuple(strips)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        colour = console.color_system is not None and console.is_terminal and not options.ascii_only
        columns = max(MIN_COLUMNS, options.max_width - LANE_LABEL - 2)
        longest = max((s.length_ns for s in self.strips), default=0)
        seen: set[int] = set()
        for strip in self.strips:
            # At least one slot, and never more time in a slot than on the common scale.
            width = max(1, round(columns * strip.length_ns / longest)) if longest else 1
            host, device = lanes(strip, width)
            seen |= set(host[host >= 0].tolist())
            yield Text(f"{strip.title}: {strip.length_ns / 1e3:,.1f} us", style="bold")
            yield _lane("host", [_host_cell(stage, colour) for stage in host.tolist()])
            yield _lane("device", [_device_cell(share, colour) for share in device.tolist()])
        if self.strips:
            yield _legend([*sorted(seen), KERNEL], colour)
            yield Text(f"one column is {longest / columns / 1e3:.2f} us", style="dim")


def lanes(strip: Strip, columns: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The stage that filled most of each host slot (-1: idle), and the share of kernels in each device slot."""
    begin, end = strip.window
    edges = np.linspace(begin, end, columns + 1).round().astype(np.int64)
    length = np.maximum(1, np.diff(edges))
    device = strip.recording.device
    busy = np.diff(covered_before(union(device.start, device.end), edges))
    return _host_stages(strip.recording, edges, length), busy / length


def _host_stages(recording: Recording, edges: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    # Inline, the thread that runs a kernel is the host's own: the host lane shows what remains.
    spans = Spans.concatenate(recording.host, recording.device) if recording.inline else recording.host
    start, end, owner = innermost(spans)
    stage = spans.stage[owner]
    time = np.zeros((len(STAGES), len(length)), dtype=np.int64)
    for number in np.unique(stage).tolist():
        if number != KERNEL:
            mine = stage == number
            time[number] = np.diff(covered_before((start[mine], end[mine]), edges))
    visible = time.sum(axis=0) >= VISIBLE_SHARE * length
    return np.where(visible, time.argmax(axis=0), -1)


def _host_cell(stage: int, colour: bool) -> tuple[str, str]:
    if stage < 0:
        return " ", ""
    paint, letter = LEGEND[STAGES[stage]]
    return ("█", paint) if colour else (letter, "")


def _device_cell(share: float, colour: bool) -> tuple[str, str]:
    # Empty and full mean what they say; three shades lie between.
    level = 0 if share <= 0 else len(SHADES) - 1 if share >= FULL_SHARE else 1 + int(share / FULL_SHARE * 3)
    return (SHADES if colour else PLAIN_SHADES)[level], LEGEND["kernel"][0] if colour else ""


def _lane(label: str, cells: Sequence[tuple[str, str]]) -> Text:
    text = Text(f"{label:<{LANE_LABEL}}", no_wrap=True, overflow="crop")
    text.append("|")
    for style, group in groupby(cells, key=lambda cell: cell[1]):
        text.append("".join(character for character, _ in group), style=style)
    return text.append("|")


def _legend(stages: Sequence[int], colour: bool) -> Text:
    text = Text(" " * LANE_LABEL)
    for number in stages:
        paint, letter = LEGEND[STAGES[number]]
        text.append("█ " if colour else f"{letter}=", style=paint if colour else "")
        text.append(f"{STAGES[number]}  ")
    return text
