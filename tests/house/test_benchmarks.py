"""Every benchmark can be imported and asks its question in its docstring: nobody runs them all on every change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = sorted(path.stem for path in BENCHMARKS.glob("bench_*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    program = f"import {name}; assert {name}.measure and '?' in {name}.__doc__, {name}.__doc__"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
