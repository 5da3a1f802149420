"""Runs every benchmark in turn, in one process; `make bench` is this.

``python benchmarks/run.py --quick --only call --json results.json``
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from command import main
from harness import Effort, Table

PREFIX = "bench_"


class _Benchmark:
    """A benchmark's `measure`, imported when it is called."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __call__(self, effort: Effort) -> Iterator[Table]:
        tables: Iterator[Table] = importlib.import_module(self._module).measure(effort)
        return tables


if __name__ == "__main__":
    modules = sorted(path.stem for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))
    sys.exit(main(__doc__, {name.removeprefix(PREFIX): _Benchmark(name) for name in modules}, selects=True))
