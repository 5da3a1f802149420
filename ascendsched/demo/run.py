"""The demo: measures host and sink scheduling of a small decoder and ResNet-18 on this machine, now."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ascendsched.demo.decoder_rows import decoder_rows
from ascendsched.demo.rows import OVERLAPPED_PASSES, Row, time_in_turn
from ascendsched.demo.vision_rows import vision_rows


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int  # decoder: one token of every request each
    blocks: int  # turns in which the rows are timed
    profiled_rounds: int
    runs: int  # ResNet-18
    profiled_runs: int
    image: int  # pixels a side

    @property
    def decoder_rounds(self) -> int:
        """Rounds that an engine serves after the check: timed, and in the profiled passes with one to warm up."""
        return self.rounds + (1 + OVERLAPPED_PASSES) * self.profiled_rounds + 1


FULL = Effort(rounds=96, blocks=8, profiled_rounds=8, runs=24, profiled_runs=4, image=224)
QUICK = Effort(rounds=32, blocks=4, profiled_rounds=4, runs=8, profiled_runs=2, image=112)


@dataclass(frozen=True)
class Result:
    """Everything that the demo measured."""

    rows: tuple[Row, ...]
    threads: int
    seconds: float
    folder: Path


def run_demo(
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
    threads: int = 1,
    show: Callable[[str], None] = lambda message: None,
) -> Result:
    """Checks, times and profiles every row, and writes a trace per row.

    Parameters
    ----------
    out : path, optional
        Folder of the traces; default a new temporary one.
    quick : bool
        Fewer runs and a smaller image.
    threads : int
        CPU threads of every row.
    show : callable
        Told what is being done.

    Raises
    ------
    AscendSchedError
        Where a result differs from its reference.
    OSError
        Where the folder cannot be written.
    """
    begin = time.perf_counter()
    effort = QUICK if quick else FULL
    folder = Path(tempfile.mkdtemp(prefix="ascendsched-demo-")) if out is None else Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    rows = decoder_rows(effort.decoder_rounds, threads, show)
    _measure(rows, effort.rounds, effort.blocks, effort.profiled_rounds, folder, show)
    images = vision_rows(effort.image, threads, show)
    _measure(images, effort.runs, effort.blocks, effort.profiled_runs, folder, show)
    return Result((*rows, *images), threads, time.perf_counter() - begin, folder)


def _measure(
    rows: list[Row], calls: int, blocks: int, profiled: int, folder: Path, show: Callable[[str], None]
) -> None:
    show(f"timing {rows[0].model}")
    time_in_turn(rows, calls, blocks)
    for row in rows:
        show(f"profiling {row.name}")
        row.profile(profiled)
        _save_trace(row, folder)


def _save_trace(row: Row, folder: Path) -> None:
    if row.judged is not None:
        words = "".join(c if c.isalnum() else " " for c in row.name.lower()).split()
        row.trace = row.judged.save_trace(folder / ("-".join(words) + ".json"))
