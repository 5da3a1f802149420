"""Static memory planning: offsets for buffers with known lifetimes in one arena, from and to CSV files."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascendsched.bounded import TABLE_BYTES, read_text, reason
from ascendsched.errors import PlanError
from ascendsched.whole_files import write_whole

__all__ = ["Buffer", "BufferTable", "MemoryPlan", "plan_buffers", "read_buffers", "write_plan"]

#: lower and upper (any unit of time; alive in [lower, upper)), size in bytes.
Buffer = tuple[int, int, int]

COLUMNS = ("id", "lower", "upper", "size")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_LIMIT = 2**63 - 1
_UNLIMITED_STEPS = 2**63
#: Above this the quadratic validator takes longer than it is worth.
_MOST_VALIDATED = 30_000


@dataclass(frozen=True)
class BufferTable:
    """A CSV file of buffers: its columns and rows as they are, and the buffers in them."""

    columns: list[str]
    rows: list[list[str]]
    buffers: list[Buffer]


@dataclass(frozen=True)
class MemoryPlan:
    """Offsets by buffer, and what is known of them.

    Attributes
    ----------
    offsets
        First byte of each buffer.
    height
        Largest end of a buffer, its size rounded up to the alignment.
    lower_bound
        No plan is lower.
    steps
        Steps that the search made.
    was_interrupted
        Whether Ctrl-C ended the search.
    """

    offsets: list[int]
    height: int
    lower_bound: int
    steps: int
    was_interrupted: bool

    @property
    def is_optimal(self) -> bool:
        """Whether no lower plan exists."""
        return self.height == self.lower_bound


def read_buffers(path: str | Path) -> BufferTable:
    """Reads a CSV file with the columns ``id``, ``lower``, ``upper``, ``size``, and any others.

    Raises
    ------
    PlanError
        The file cannot be read, or is not such a table; the message has the line.
    """
    try:
        with io.StringIO(read_text(path, TABLE_BYTES), newline="") as file:
            reader = csv.reader(file, strict=True)
            columns = [name.strip() for name in next(reader, [])]
            where = _find_columns(path, columns)
            rows, buffers, ids = [], [], set()
            for row in reader:
                if not row:
                    continue
                place = f"{path}, line {reader.line_num}"
                if len(row) != len(columns):
                    raise PlanError(f"[memplan] {place}: {len(row)} fields; expected {len(columns)}, as in the header")
                name = row[where[0]].strip()
                if name in ids:
                    raise PlanError(f"[memplan] {place}: id '{_short(name)}' was used before; give each buffer its own")
                ids.add(name)
                lower, upper, size = (_integer(place, COLUMNS[i], row[where[i]]) for i in (1, 2, 3))
                _check(place, lower, upper, size)
                rows.append(row)
                buffers.append((lower, upper, size))
    except OSError as error:
        raise PlanError(f"[memplan] cannot read '{path}': {reason(error)}; pass a CSV file") from None
    except (csv.Error, ValueError) as error:
        raise PlanError(f"[memplan] {path} is not a CSV file: {error}; expected {','.join(COLUMNS)}") from None
    return BufferTable(columns, rows, buffers)


def _find_columns(path: str | Path, columns: list[str]) -> list[int]:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        got = ", ".join(_short(name) for name in columns[:8]) or "nothing"
        what = f"no column {', '.join(missing)} in its first line: {got}"
        raise PlanError(f"[memplan] {path}: {what}; start the file with {','.join(COLUMNS)}")
    twice = sorted(name for name, count in Counter(columns).items() if count > 1)
    if twice:
        raise PlanError(f"[memplan] {path}: column '{_short(twice[0])}' occurs twice; rename one")
    return [columns.index(name) for name in COLUMNS]


def _integer(place: str, name: str, text: str) -> int:
    if _INTEGER.fullmatch(text.strip()) and abs(int(text)) <= _LIMIT:
        return int(text)
    raise PlanError(f"[memplan] {place}: {name} is '{_short(text)}'; expected an integer of 64 bits")


def _check(place: str, lower: int, upper: int, size: int) -> None:
    if lower >= upper:
        raise PlanError(f"[memplan] {place}: lifetime [{lower}, {upper}) is empty; expected lower < upper")
    if size < 0:
        raise PlanError(f"[memplan] {place}: size is {size}; expected 0 or more bytes")


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def plan_buffers(
    buffers: Sequence[Buffer],
    *,
    capacity: int | None = None,
    alignment: int = 1,
    conflicts: Sequence[tuple[int, int]] = (),
    steps: int | None = None,
    time_limit: float | None = None,
    on_better: Callable[[int, int], None] | None = None,
) -> MemoryPlan:
    """Finds offsets such that buffers alive at one time do not overlap, as low as the budget allows.

    Parameters
    ----------
    buffers
        Lower, upper and size of each.
    capacity
        A plan of this height is good enough; without it the search goes on to the lowest plan.
    alignment
        Of each offset, in bytes.
    conflicts
        Pairs of buffers (by index) that must not overlap although their lifetimes do not meet. With any, plans are
        greedy ones.
    steps
        Budget of the search; the plan is the same on every machine. Without it and without `time_limit`, no limit.
    time_limit
        Budget in seconds.
    on_better
        Called with height and lower bound of each better plan.

    Raises
    ------
    PlanError
        A buffer is malformed, or all of them together are too large.
    """
    from ascendsched.native import core  # reading a table needs no core

    try:
        found = core.plan_memory(
            buffers,
            alignment,
            conflicts,
            None if capacity is None else min(max(capacity, 0), _LIMIT),
            _UNLIMITED_STEPS if steps is None else steps,
            time_limit,
            on_better,
        )
    except TypeError:
        raise PlanError(
            "[memplan] buffers, conflicts, alignment or limits are not integers of 64 bits; "
            "give (lower, upper, size) of each buffer"
        ) from None
    plan = MemoryPlan(*found)
    if len(buffers) <= _MOST_VALIDATED:
        fault = core.find_memory_fault(buffers, alignment, conflicts, plan.offsets, plan.height)
        if fault:
            raise PlanError(f"[memplan] the solver made an invalid plan: {fault}; please report the problem")
    return plan


def write_plan(path: str | Path, table: BufferTable, plan: MemoryPlan) -> None:
    """Writes the table with a last column ``offset``; one that it had is replaced.

    Raises
    ------
    WriteError
        Where the file cannot be written; what was there stays.
    """
    keep = [i for i, name in enumerate(table.columns) if name != "offset"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(table.columns[i] for i in keep), "offset"])
    for row, offset in zip(table.rows, plan.offsets, strict=True):
        writer.writerow([*(row[i] for i in keep), offset])
    write_whole(path, text.getvalue(), "memplan")
