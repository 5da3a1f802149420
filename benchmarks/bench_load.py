"""What does loading a saved executable cost beside compiling, and creating a session of onnxruntime?

How to read it: a table per model in milliseconds, of ways that take turns on one thread. "first run" is the run right
after: what a way leaves to do is seen there. "load, warm" is of a file that was saved after a run: loading it runs that
once more, so that the first run finds everything. The last table has ratios, of CPU times of the same round, which
others on the machine disturb least. Files are in the system's cache, as they are for the second process that starts.
"""

from __future__ import annotations

import gc
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from catalogue import MISSING, catalogue_models
from command import main
from harness import PEER, Effort, Figures, Table, WrongResultError

import ascendsched as asc
from ascendsched.demo.models import resnet18
from ascendsched.demo.peers import create_session, has_onnxruntime

SPREAD = ("min", "median", "max")
HEADINGS = ("ms: min", "median", "max", "CPU", "first run: min", "median ", "max ", "CPU ")
RATIOS = {"load / compile": ("load", "compile"), "compile / session": ("compile", f"{PEER}, session")}
SETTLED_S = 2.1  # a model that was written just before it was saved is read again by `load`

Feeds = Mapping[str, Any]
Run = Callable[[Feeds], object]


@dataclass
class _Way:
    """One way to get a model ready, and the milliseconds that it and the first run took."""

    begin: Callable[[], Run]
    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    first_cpu_ms: list[float] = field(default_factory=list)

    def sample(self, feeds: Feeds) -> None:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        run = self.begin()
        ready, ready_cpu = time.perf_counter_ns(), time.process_time_ns()
        run(feeds)
        done, done_cpu = time.perf_counter_ns(), time.process_time_ns()
        self.ms.append((ready - wall) / 1e6)
        self.cpu_ms.append((ready_cpu - cpu) / 1e6)
        self.first_ms.append((done - ready) / 1e6)
        self.first_cpu_ms.append((done_cpu - ready_cpu) / 1e6)

    def figures(self) -> list[Any]:
        return [*_spread(self.ms), median(self.cpu_ms), *_spread(self.first_ms), median(self.first_cpu_ms)]


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table per model, and one of ratios."""
    names = [name for name in RATIOS if has_onnxruntime() or "session" not in name]
    headings = [f"{name}: min" if part == "min" else part + " " * i for i, name in enumerate(names) for part in SPREAD]
    ratios = Figures("ratio of CPU times", "start", [], headings=tuple(headings))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet18.onnx"
        onnx.save(resnet18(), path)
        time.sleep(SETTLED_S)
        yield _measure("demo: ResNet-18", path, {"x": np.zeros((1, 3, 64, 64), np.float32)}, effort, ratios)
    models = catalogue_models()
    if not models:
        ratios.notes.append(MISSING)
    for name, load in models:
        try:
            model, feeds = load()
            yield _measure(name, Path(model), feeds[0], effort, ratios)
        except (asc.AscendSchedError, FileNotFoundError, ImportError) as error:
            ratios.notes.append(f"{name}: {' '.join(str(error).split())[:100]}")
    for i, name in enumerate(names):
        medians = [figures[i * len(SPREAD) + 1] for _, figures in ratios.rows]
        mean = math.exp(sum(map(math.log, medians)) / len(medians))
        ratios.notes.append(f"{name}: geometric mean of the medians {mean:.3f}, most {max(medians):.3f}")
    yield ratios


def _measure(name: str, model: Path, feeds: Feeds, effort: Effort, ratios: Figures) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        ways = _ways(model, feeds, Path(folder))
        megabytes = (Path(folder) / "load.asc").stat().st_size / 1e6
        gc.collect()
        gc.disable()
        try:
            for _ in range(effort.samples):
                for way in ways.values():
                    way.sample(feeds)
        finally:
            gc.enable()
    row: list[Any] = []
    for one, other in RATIOS.values():
        if other in ways:
            row += _spread([a / b for a, b in zip(ways[one].cpu_ms, ways[other].cpu_ms, strict=True)])
    ratios.rows.append((name, row))
    rows = [(label, way.figures()) for label, way in ways.items()]
    return Figures(f"{name}, {megabytes:.1f} MB saved", "start", [], headings=HEADINGS, rows=rows)


def _ways(model: Path, feeds: Feeds, folder: Path) -> dict[str, _Way]:
    """The ways by name, after a look at whether what was loaded computes what was saved."""
    exe = asc.compile(model, threads=1)
    exe.save(folder / "load.asc")
    expected = exe.run(feeds)
    exe.save(folder / "load, warm.asc")
    ways = {"compile": _Way(lambda: asc.compile(model, threads=1).run)}
    for name in ("load", "load, warm"):
        path = folder / f"{name}.asc"
        for key, array in asc.load(path).run(feeds).items():
            if np.asarray(array).tobytes() != np.asarray(expected[key]).tobytes():
                raise WrongResultError(f"[{name}] '{key}' differs from the result of the saved executable")
        ways[name] = _Way(lambda path=path: asc.load(path).run)
    if has_onnxruntime():
        ways[f"{PEER}, session"] = _Way(lambda: _session_run(model))
    return ways


def _session_run(model: Path) -> Run:
    session = create_session(str(model), 1)
    return lambda feeds: session.run(None, feeds)


def _spread(values: list[float]) -> list[float]:
    return [min(values), median(values), max(values)]


if __name__ == "__main__":
    sys.exit(main(__doc__, {"load": measure}))
