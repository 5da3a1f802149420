"""Does "auto" ever execute more than host mode where shapes mislead it, or keep more than it may?

The sequences of `sequences.adversarial`: every shape new, two working sets in turn, a burst and then new shapes. Each
is run by fresh executables in a process of its own under callgrind (valgrind), which counts instructions of all
threads. A second process compiles the same executables and runs nothing: the difference is what the runs cost, with
all that is paid at their start.

How to read it: "auto / host" is at most 1.05 where misleading auto does no harm; it differs by 0.02 from count to
count. "bytes / limit" is the most that a cache of auto held after any run, where both are limited to little more than
a schedule, so that they are always full. Instructions are not time: under valgrind the kernels use other instruction
sets, and waiting costs nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

from command import main
from grid import Grid
from harness import Effort
from sequences import Sequence, adversarial, decoder

import ascendsched as asc

MODES = ("host", "auto")
RUNS = 50
TIMEOUT_S = 1800
TIGHT = asc.Options(tiling_cache_bytes=1 << 15, schedule_cache_bytes=1 << 14)


def measure(effort: Effort) -> Iterator[Grid]:
    """Yields one table."""
    grid = Grid(f"{RUNS} runs from the start", ["host Mi", "auto Mi", "auto / host", "bytes / limit"])
    if not shutil.which("valgrind"):
        grid.notes.append("needs valgrind")
    else:
        repeats = 4 if effort.is_quick else 12
        for sequence in adversarial(decoder(vocab=200, layers=2), RUNS):
            host, auto = (_run_instructions(sequence.name, mode, repeats) / repeats / 1e6 for mode in MODES)
            share = f"{_full_share(sequence):.2f}"
            grid.rows.append([sequence.name, f"{host:.2f}", f"{auto:.2f}", f"{auto / host:.3f}", share])
    yield grid


def _run_instructions(sequence: str, mode: str, repeats: int) -> int:
    """Of the runs of `repeats` executables."""
    return _count(sequence, mode, repeats, RUNS) - _count(sequence, mode, repeats, 0)


def _count(sequence: str, mode: str, repeats: int, runs: int) -> int:
    worker = [sys.executable, __file__, "--worker", sequence, mode, str(repeats), str(runs)]
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *worker]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False)  # noqa: S603
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected:
        raise RuntimeError(f"valgrind ended with {done.returncode}: {done.stderr[-2000:]}")
    return int(collected[1])


def _work(sequence: str, mode: str, repeats: int, runs: int) -> None:
    """What a counted process does."""
    chosen = next(s for s in adversarial(decoder(vocab=200, layers=2), RUNS) if s.name == sequence)
    for _ in range(repeats):
        with asc.compile(chosen.model, mode=mode, threads=1) as exe:
            for feeds in chosen.feeds[:runs]:
                exe.run(feeds)


def _full_share(sequence: Sequence) -> float:
    """The largest share of its limit that a cache holds while the sequence runs."""
    share = 0.0
    with asc.compile(sequence.model, mode="auto", threads=1, options=TIGHT) as exe:
        for feeds in sequence.feeds:
            exe.run(feeds)
            stats = exe.stats()
            share = max(
                share,
                stats["tiling_bytes"] / TIGHT.tiling_cache_bytes,
                stats["schedule_bytes"] / TIGHT.schedule_cache_bytes,
            )
    return share


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _work(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        sys.exit(main(__doc__, {"instructions": measure}))
