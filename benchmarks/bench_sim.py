"""How well is a model's time on the CPU device predicted from kernels and hosts measured with *other* models?

How to read it: each model is predicted in both modes from everything that was measured with the others and with a sweep
of small models. "relatives too" leaves out the model alone; "no relatives" also leaves out every model of its family,
whose kernels have the same shapes. Models come from $MODEL_CATALOGUE, a Python file with `names()` and `load(name)`, or
are the demo's. Measured is the CPU time of the fastest run: on a machine that others use too, all else is their noise.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from command import main
from harness import Effort
from rich.console import Console
from rich.table import Table as RichTable

import ascendsched as asc
from ascendsched.demo.models import resnet18
from ascendsched.sim.host_cost import HostCost, RunFacts, count_stages
from ascendsched.sim.kernel_library import KernelLibrary, Measured
from ascendsched.sim.sweep import sweep_models
from ascendsched.tasks import Task

MODES = ("host", "sink")
LIMIT = 0.15


@dataclass
class Observed:
    """What was measured of one model in one mode; `kernels`: (task, how often per run, ns)."""

    facts: RunFacts
    kernels: list[tuple[Task, float, float]]


class Fastest:
    """An executable and the fastest of its runs so far."""

    def __init__(self, model: Any, mode: str, feeds: Mapping[str, Any]) -> None:
        self.executable, self.feeds = asc.compile(model, mode=mode, threads=1), feeds
        self.run_ns, self.kernels, self.counts = float("inf"), {}, {}
        self.block = 1
        for _ in range(3):
            self.executable.run(feeds)

    def measure(self, seconds: float) -> None:
        """Runs for about so long, half of it recorded; at least a few runs each."""
        run, feeds, clock = self.executable.run, self.feeds, time.perf_counter_ns
        end, done = clock() + seconds * 5e8, 0
        while clock() < end or done < 3:
            # CPU time of one thread: what others run meanwhile is not in it. Blocks, for the clock is a system call.
            begin = time.process_time_ns()
            for _ in range(self.block):
                run(feeds)
            took = (time.process_time_ns() - begin) / self.block
            self.run_ns, done = min(self.run_ns, took), done + 1
            self.block = max(1, min(100, round(1e6 / max(1.0, took))))
        end = clock() + seconds * 5e8
        while True:
            with self.executable.profile(32 << 20) as profile:
                for _ in range(5):
                    run(feeds)
            self._keep(profile.recording)
            if clock() > end:
                break

    def _keep(self, recording: Any) -> None:
        device = recording.device
        runs = max(1, len(recording.run_windows()[0]))
        self.counts = count_stages(recording)
        for node in np.unique(device.node).tolist():
            took = np.sort((device.end - device.start)[device.node == node])
            best = took[: max(1, len(took) // runs)].mean() if len(took) >= runs else took.mean()
            count, least = self.kernels.get(node, (len(took) / runs, float("inf")))
            self.kernels[node] = (count, min(least, float(best)))

    def observed(self) -> Observed:
        """The facts of the fastest run."""
        tasks = {task.number: task for task in self.executable.tasks()}
        kernels = [(tasks[node], count, ns) for node, (count, ns) in self.kernels.items() if node in tasks]
        whole = sum(count * ns for _, count, ns in kernels)
        return Observed(RunFacts(self.counts, whole, max(self.run_ns, whole)), kernels)


def family(name: str) -> str:
    """Models that share layers' shapes have names that begin alike."""
    return "llama" if "llama" in name else name.split("_", maxsplit=1)[0]


def models() -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Name, model and inputs of what is predicted."""
    path = os.environ.get("MODEL_CATALOGUE")
    if not path:
        random = np.random.default_rng(0)
        yield "resnet18", resnet18(), {"x": random.standard_normal((1, 3, 224, 224)).astype(np.float32)}
        return
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location("model_catalogue", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path}: no Python file")
    catalogue = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(catalogue)
    for name in catalogue.names():
        try:
            file, feeds = catalogue.load(name)
        except (FileNotFoundError, ImportError):
            continue
        yield name, file, feeds[0]


def sweep(effort: Effort) -> list[Measured]:
    """Kernels of the small models."""
    found = []
    for graph, feeds in sweep_models():
        fastest = Fastest(graph, "sink", feeds)
        fastest.measure(0.01 if effort.is_quick else 0.05)
        found += [Measured(task, ns) for task, _, ns in fastest.observed().kernels]
    return found


class Prediction:
    """Every model in both modes, from the others."""

    title = "predicted and measured time of a run in us, CPU device, one thread"

    def __init__(self, effort: Effort) -> None:
        subjects = {(name, mode): Fastest(model, mode, feeds) for name, model, feeds in models() for mode in MODES}
        for _ in range(1 if effort.is_quick else 5):  # in turn, so that a busy spell hits all alike
            for fastest in subjects.values():
                fastest.measure(0.05 if effort.is_quick else 0.2)
        self.found = {key: fastest.observed() for key, fastest in subjects.items()}
        self.sweep = sweep(effort)
        self.rows: list[dict[str, Any]] = []
        for name in dict.fromkeys(name for name, _ in self.found):
            close = self._predict(name, {n for n, _ in self.found if n != name})
            far = self._predict(name, {n for n, _ in self.found if family(n) != family(name)})
            for mode in MODES:
                measured = self.found[(name, mode)].facts.run_ns
                errors = {"relatives_too": close[mode] / measured - 1, "no_relatives": far[mode] / measured - 1}
                self.rows.append({"model": name, "mode": mode, "measured_us": measured / 1e3, **errors})

    def _predict(self, name: str, others: set[str]) -> dict[str, float]:
        kernels = [Measured(t, ns) for key, o in self.found.items() if key[0] in others for t, _, ns in o.kernels]
        library = KernelLibrary([*self.sweep, *kernels])
        times = {}
        facts = [self.found[(other, mode)].facts for other in sorted(others) for mode in MODES]
        fitted = HostCost(facts) if len(facts) > 1 else None
        for mode in MODES:
            host = fitted.ns(self.found[(name, mode)].facts.counts) if fitted else 0.0
            found = self.found[(name, mode)].kernels
            times[mode] = host + sum(count * library.ns(task) for task, count, _ in found)
        return times

    def medians(self) -> dict[str, float]:
        """Median absolute error over models and modes."""
        return {c: float(np.median([abs(r[c]) for r in self.rows])) for c in ("relatives_too", "no_relatives")}

    def show(self, console: Console) -> None:
        """Prints the table and the medians."""
        table = RichTable("model", "mode", "measured us", "relatives too", "no relatives", title=self.title)
        for row in self.rows:
            errors = (f"{100 * row[c]:+.1f} %" for c in ("relatives_too", "no_relatives"))
            table.add_row(row["model"], row["mode"], f"{row['measured_us']:.1f}", *errors)
        console.print(table)
        for column, error in self.medians().items():
            console.print(f"median error, {column}: {100 * error:.1f} % (asked for: at most {100 * LIMIT:.0f} %)")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"title": self.title, "rows": self.rows, "medians": self.medians()}


def measure(effort: Effort) -> Iterator[Any]:
    """Yields the one table."""
    yield Prediction(effort)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"sim": measure}))
