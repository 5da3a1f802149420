"""How large are the arenas that sink mode plans, against the least memory that their buffers can have?

"bound" is the largest sum of sizes alive at one time, in multiples of 64 bytes, or more where the search proved that
nothing lower exists: an arena of that size is optimal. One line per model, over all of its shapes; bodies of control
flow have schedules of their own. The models are those of the demo, and of the catalogue file in $MODEL_CATALOGUE.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from catalogue import MISSING, catalogue_models
from command import main
from harness import Effort, Table
from rich.console import Console
from rich.table import Table as RichTable

import ascendsched as asc
from ascendsched.demo.models import decoder, resnet18


@dataclass
class Arena:
    """The arenas of a model's schedules together."""

    model: str
    schedules: int
    planned_bytes: int
    bound_bytes: int

    @property
    def ratio(self) -> float:
        """1 where all are optimal."""
        return self.planned_bytes / self.bound_bytes if self.bound_bytes else 1.0


@dataclass
class ArenaTable(Table):
    """A table of sizes where the other benchmarks have times."""

    arenas: list[Arena] = field(default_factory=list)

    def show(self, console: Console) -> None:
        """Prints it."""
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(self.title, min_width=34)
        for heading in ("schedules", "arena, bytes", "bound, bytes", "arena / bound"):
            table.add_column(heading, justify="right", no_wrap=True)
        for a in self.arenas:
            figures = (f"{a.schedules}", f"{a.planned_bytes:,}", f"{a.bound_bytes:,}", f"{a.ratio:.4f}")
            table.add_row(a.model, *figures)
        console.print(table)
        for note in self.notes:
            console.print(note)
        console.print()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = [{**vars(a), "ratio": a.ratio} for a in self.arenas]
        return {"title": self.title, "unit": self.unit, "rows": rows, "notes": self.notes}


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table."""
    table = ArenaTable("model", "byte", [])
    image = np.zeros((1, 3, 224, 224), np.float32)
    table.arenas.append(_arena("demo: ResNet-18", resnet18(), [{"x": image}]))
    model = decoder(capacity=64)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    feeds = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    feeds |= {"input_ids": np.ones((1, 1), np.int64), "position": np.zeros(1, np.int64)}
    table.arenas.append(_arena("demo: decoder", model, [feeds]))
    models = catalogue_models()
    if not models:
        table.notes.append(MISSING)
    for name, load in models:
        try:
            path, examples = load()
            table.arenas.append(_arena(name, path, examples))
        except (asc.AscendSchedError, FileNotFoundError, ImportError) as error:
            table.notes.append(f"{name}: {' '.join(str(error).split())[:100]}")
    yield table


def _arena(name: str, model: Any, examples: list[dict[str, Any]]) -> Arena:
    executable = asc.compile(model, mode="sink", threads=1)
    for example in examples:
        executable.run(example)
    stats = executable.stats()
    figures = (stats[key] for key in ("loads", "arena_planned_bytes", "arena_bound_bytes"))
    return Arena(name, *(int(figure) for figure in figures))


if __name__ == "__main__":
    sys.exit(main(__doc__, {"arena": measure}))
