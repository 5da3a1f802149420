"""What does loading a saved executable cost beside compiling, and creating a session of onnxruntime?

How to read it: milliseconds of wall time, the least, the median and the most, measured in turn on one thread. "first
run" is the run right after compiling; what loading leaves to do is seen in the runs after it. "warm" is a file
that was saved after a run: loading it has resolved that run's shapes. Ratios are of medians of CPU time, which others
on the machine disturb least. Files are in the system's cache, as they are for the second process that starts.
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

HEADINGS = (
    *("MB", "compile", "first run", "load", "run after load", "warm load", "run after warm", f"{PEER} session"),
    *("load / compile", "warm / compile", "compile / session"),
)
Run = Callable[[Mapping[str, Any]], object]


@dataclass
class _Start:
    """One way to get a model ready: what does it, and the times of that and of the first run."""

    begin: Callable[[], Run]
    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)

    def sample(self, feeds: Mapping[str, Any]) -> None:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        run = self.begin()
        self.cpu_ms.append((time.process_time_ns() - cpu) / 1e6)
        ready = time.perf_counter_ns()
        run(feeds)
        self.first_ms.append((time.perf_counter_ns() - ready) / 1e6)
        self.ms.append((ready - wall) / 1e6)


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table."""
    table = Figures("model", "start", [], headings=HEADINGS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet18.onnx"
        onnx.save(resnet18(), path)
        table.rows.append(("demo: ResNet-18", _figures(path, {"x": np.zeros((1, 3, 64, 64), np.float32)}, effort)))
    models = catalogue_models()
    if not models:
        table.notes.append(MISSING)
    for name, load in models:
        try:
            model, feeds = load()
            table.rows.append((name, _figures(Path(model), feeds[0], effort)))
        except (asc.AscendSchedError, FileNotFoundError, ImportError) as error:
            table.notes.append(f"{name}: {' '.join(str(error).split())[:100]}")
    for heading in HEADINGS[-3:]:
        ratios = [figures[HEADINGS.index(heading)] for _, figures in table.rows]
        if all(isinstance(ratio, float) for ratio in ratios):
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            table.notes.append(f"{heading}: geometric mean {mean:.3f}, most {max(ratios):.3f}")
    yield table


def _figures(model: Path, feeds: Mapping[str, Any], effort: Effort) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = Path(folder) / "cold.asc", Path(folder) / "warm.asc"
        exe = asc.compile(model, threads=1)
        exe.save(cold)
        expected = exe.run(feeds)
        exe.save(warm)
        megabytes = cold.stat().st_size / 1e6
        for path in (cold, warm):
            _check(path, expected, asc.load(path).run(feeds))
        starts = [_Start(lambda: asc.compile(model, threads=1).run)]
        starts += [_Start(lambda path=path: asc.load(path).run) for path in (cold, warm)]
        if has_onnxruntime():
            starts.append(_Start(lambda: _session_run(model)))
        del exe
        gc.collect()
        gc.disable()
        try:
            for _ in range(effort.samples):
                for start in starts:
                    start.sample(feeds)
        finally:
            gc.enable()
    compiled, loaded, warmed = starts[:3]
    figures: list[Any] = [megabytes]
    for start in (compiled, loaded, warmed):
        figures += [_spread(start.ms), _spread(start.first_ms)]
    cpu = [median(start.cpu_ms) for start in starts]
    session = [_spread(starts[3].ms)] if len(starts) > 3 else ["-"]
    return [*figures, *session, cpu[1] / cpu[0], cpu[2] / cpu[0], cpu[0] / cpu[3] if len(starts) > 3 else "-"]


def _session_run(model: Path) -> Run:
    session = create_session(str(model), 1)
    return lambda feeds: session.run(None, feeds)


def _check(path: Path, expected: Mapping[str, Any], loaded: Mapping[str, Any]) -> None:
    for name, array in expected.items():
        if np.asarray(array).tobytes() != np.asarray(loaded[name]).tobytes():
            raise WrongResultError(f"[{path.stem}] '{name}' differs from the result of the saved executable")


def _spread(ms: list[float]) -> str:
    return " ".join(f"{value:.2f}" if value < 10 else f"{value:.1f}" for value in (min(ms), median(ms), max(ms)))


if __name__ == "__main__":
    sys.exit(main(__doc__, {"load": measure}))
