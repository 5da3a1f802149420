"""How well is sink mode predicted from a recording of host mode?

For each model: host mode recorded, sink mode predicted from the recording, and sink mode measured, in turn; medians
over the rounds, with 95 % intervals. Models of the catalogue are taken where ``MODEL_CATALOGUE`` names it. On the timed
device, a launch costs as much as on an accelerator, so that the two modes lie far apart.

How to read it: "off" is by how much the prediction misses the measurement, round by round; 20 % is what we ask for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from catalogue import catalogue_models
from command import main
from harness import Effort, Table
from models import sequence_model
from rich.console import Console
from rich.table import Table as RichTable

import ascendsched as asc
from ascendsched.demo.models import resnet18
from ascendsched.profile.experiment import Estimate, Experiment, run_rounds

MODELS = (
    "llama_tiny_legacy",
    "hf_gpt2_legacy",
    "silero_vad",
    "silero_vad_openvino",
    "ppocr2_cls",
    "minilm_dynamo",
    "resnet18_legacy",
)
IN_FLIGHT = 2
TASKS = 100
WANTED_PCT = 20.0


@dataclass
class Predictions(Table):
    """A row per model instead of one per subject."""

    rows: list[tuple[str, Experiment]] | None = None

    def show(self, console: Console) -> None:
        """Prints it."""
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(self.title, min_width=30)
        for heading in ("host us", "predicted us", "sink us", "off %", "95 % interval"):
            table.add_column(heading, justify="right", no_wrap=True)
        for name, found in self.rows or []:
            ratio = found.ratio()
            times = [Estimate.of(values).value for values in (found.host_us, found.predicted_us, found.sink_us)]
            off = [f"{100 * (value - 1):+.1f}" for value in (ratio.value, ratio.low, ratio.high)]
            table.add_row(name, *(f"{time:,.1f}" for time in times), off[0], f"{off[1]} to {off[2]}")
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}")
        console.print()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        rows = [{"label": name, **found.to_dict()} for name, found in self.rows or []]
        return {"title": self.title, "unit": self.unit, "rows": rows, "notes": self.notes}


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table of all models."""
    rounds = 5 if effort.is_quick else 15
    table = Predictions(f"{IN_FLIGHT} runs in flight, {rounds} rounds", "run", [], rows=[])
    for name, model, feeds, device in _cases(effort):
        host, sink = (asc.compile(model, device=device, mode=mode, threads=1) for mode in ("host", "sink"))
        label = name if device == "cpu" else f"{name}, {device}"
        table.rows = [*(table.rows or []), (label, run_rounds(host, sink, feeds, rounds, IN_FLIGHT))]
    good = sum(abs(100 * (found.ratio().value - 1)) <= WANTED_PCT for _, found in table.rows or [])
    table.notes.append(f"{good} of {len(table.rows or [])} predictions are within {WANTED_PCT:.0f} %")
    yield table


def _cases(effort: Effort) -> Iterator[tuple[str, Any, dict[str, Any], str]]:
    chain = sequence_model((16, 16), (16, 16), [("Add", {"bias": np.full(16, 0.01)}, {})] * TASKS)
    x = {"x": np.ones((16, 16), np.float32)}
    yield f"chain of {TASKS} operators", chain, x, "cpu"
    yield f"chain of {TASKS} operators", chain, x, "timed:us=20,launch=40"
    size = 112 if effort.is_quick else 224
    yield "ResNet-18", resnet18(shape=(1, 3, size, size)), {"x": np.ones((1, 3, size, size), np.float32)}, "cpu"
    loads = dict(catalogue_models())
    for name in MODELS[:3] if effort.is_quick else MODELS:
        try:
            path, feeds = loads[name]()
        except (KeyError, FileNotFoundError, ImportError):
            continue  # no catalogue, or this model is not installed
        yield name, path, feeds[0], "cpu"


if __name__ == "__main__":
    sys.exit(main(__doc__, {"whatif": measure}))
