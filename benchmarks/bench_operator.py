"""What does a launch of an operator of a package cost beside one of ours?

Chains of 1,000 operators on one number, one thread, fusion off: the kernels compute next to nothing, so that CPU time
per operator is the launch. "gauss::bump" is the example package's operator in Cython, built here against this
installation; the others are built in. It may take 50 ns more than these.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time_ns
from typing import Any

import numpy as np
from command import main
from harness import Effort, Figures, Table

import ascendsched as asc
from ascendsched.extensions import register

EXAMPLE = Path(__file__).parents[1] / "examples" / "operator_package"
OPERATORS = 1_000
CALLS = 5  # a sample
OURS = ("Neg", "Exp", "Sigmoid")
THEIRS = "gauss::bump"


def measure(effort: Effort) -> Iterator[Table]:
    """A table per mode; none without Cython."""
    if importlib.util.find_spec("Cython") is None:
        print("Cython is not installed: nothing to measure")
        return
    with TemporaryDirectory() as folder:
        for capsule in _build(Path(folder)).operators():
            register(capsule)
        for mode in ("sink", "host"):
            yield _launches(mode, effort)


def _build(folder: Path) -> Any:
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - our own example
    sys.path.insert(0, str(folder / "src"))
    return importlib.import_module("gauss_ops.kernels")


def _chain(op: str, mode: str) -> asc.Executable:
    g = asc.Graph("chain")
    value = g.input("x", "float32", (1,))
    for _ in range(OPERATORS):
        value = g.op(op, value)
    g.output(value, "y")
    return asc.compile(g, mode=mode, threads=1, options=asc.Options(fuse=False))


def _launches(mode: str, effort: Effort) -> Table:
    chains = {op: _chain(op, mode) for op in (THEIRS, *OURS)}
    feeds = {"x": np.array([0.3], np.float32)}
    for chain in chains.values():
        for _ in range(20):
            chain.run(feeds)
    times: dict[str, list[float]] = {op: [] for op in chains}
    for _ in range(10 if effort.is_quick else 200):
        for op, chain in chains.items():
            begin = process_time_ns()
            for _ in range(CALLS):
                chain.run(feeds)
            times[op].append((process_time_ns() - begin) / CALLS / OPERATORS)
    table = Figures(f"{mode} mode, CPU time", "operator", [])
    table.headings = ("ns: min", "median", f"{THEIRS} less this: median")
    own = float(np.median(times[THEIRS]))
    for op, found in times.items():
        table.rows.append((op, [min(found), float(np.median(found)), own - float(np.median(found))]))
    return table


if __name__ == "__main__":
    sys.exit(main(__doc__, {"launches": measure}))
