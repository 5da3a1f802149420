"""Does anything grow? Resident memory and caches over many runs of shapes drawn at random, with small caches.

A million runs in each mode, or as many as --quick allows: memory is compared between the first tenth and the end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from command import main
from harness import Effort, Figures, Table, WrongResultError
from models import sequence_model

import ascendsched as asc

WIDTH, ROWS = 16, 400
TILING_BYTES, SCHEDULE_BYTES = 1 << 17, 1 << 17
#: What the C library's allocator and Python's may add without anything having leaked.
SLACK_BYTES = 8 << 20


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table.

    Raises
    ------
    WrongResultError
        Where memory grew, or a cache was above its bound.
    """
    runs = 20_000 if effort.is_quick else 1_000_000
    rng = np.random.default_rng(2)
    weights = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH
    layers = [("MatMul", {"w": weights}, {}), ("Softmax", {}, {"axis": -1}), ("Tanh", {}, {})] * 2
    model = sequence_model(["n", WIDTH], ["n", WIDTH], layers)
    table = Figures(f"{runs:,} runs, shapes at random", "run", [])
    table.headings = ("us a run", "MB after a tenth", "MB at the end", "evictions")
    inputs = [rng.standard_normal((n, WIDTH)).astype(np.float32) for n in range(1, ROWS)]
    for mode in ("host", "sink", "auto"):
        options = asc.Options(tiling_cache_bytes=TILING_BYTES, schedule_cache_bytes=SCHEDULE_BYTES)
        executable = asc.compile(model, mode=mode, threads=1, options=options)
        _run(executable, inputs, rng.integers(0, len(inputs), runs // 10))
        before = _resident_bytes()
        begin = perf_counter()
        _run(executable, inputs, rng.integers(0, len(inputs), runs - runs // 10))
        spent = perf_counter() - begin
        after = _resident_bytes()
        stats = executable.stats()
        if after - before > SLACK_BYTES:
            raise WrongResultError(f"[{mode}] resident memory grew by {after - before} bytes")
        if stats["tiling_bytes"] > stats["tiling_limit_bytes"] or stats["schedule_bytes"] > SCHEDULE_BYTES:
            raise WrongResultError(f"[{mode}] a cache is above its bound: {stats}")
        evictions = stats["tiling_evictions"] + stats["schedule_evictions"]
        table.rows.append((mode, [1e6 * spent / (runs - runs // 10), before / 1e6, after / 1e6, evictions]))
    yield table


def _run(executable: asc.Executable, inputs: list[np.ndarray], order: np.ndarray) -> None:
    for i in order:  # a list of numbers would be memory of its own
        executable(inputs[i])


def _resident_bytes() -> int:
    """Of this process; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.is_file() else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, {"soak": measure}))
