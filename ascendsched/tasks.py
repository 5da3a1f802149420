"""What the tasks of an executable work on: for models of their cost."""

from __future__ import annotations

from dataclasses import dataclass

from ascendsched.native import core as _core


@dataclass(frozen=True)
class Operand:
    """An input or output of a task, as it was resolved last."""

    dtype: str
    shape: tuple[int, ...]
    is_constant: bool = False


@dataclass(frozen=True)
class Task:
    """One task of a plan.

    Attributes
    ----------
    name, op : str
        Of its node.
    implementation : str
        What its tiling chose; empty where it was never resolved.
    inputs, outputs : tuple of Operand or None
        None where one is absent.
    parts : tuple of str
        The operators of a fused node; empty otherwise.
    number : int
        Of its node in the whole plan, as in recordings.
    """

    name: str
    op: str
    implementation: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]
    parts: tuple[str, ...] = ()
    number: int = 0


def read_tasks(core: _core.Executable) -> list[Task]:
    """The tasks of an executable, in plan order."""
    return [
        Task(name, op, implementation, _operands(inputs), _operands(outputs), tuple(parts), number)
        for name, op, implementation, inputs, outputs, parts, number in _core.tasks(core)
    ]


def _operands(rows: list[tuple[str, tuple[int, ...], bool] | None]) -> tuple[Operand | None, ...]:
    return tuple(None if row is None else Operand(*row) for row in rows)
