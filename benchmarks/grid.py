"""A table of any columns, for benchmarks that measure something else than one call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable


@dataclass
class Grid:
    """Rows of text under headings; the first column is a label."""

    title: str
    headings: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def show(self, console: Console) -> None:
        """Prints it."""
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(self.title, min_width=28)
        for heading in self.headings:
            table.add_column(heading, justify="right")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}")
        console.print()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        rows = [dict(zip(["label", *self.headings], row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}
