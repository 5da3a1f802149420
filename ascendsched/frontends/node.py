"""Nodes on their way from a model file into a graph, and what an adapter may ask and make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np


class Tensor(NamedTuple):
    """Values of a constant; bfloat16 values lie in a ``uint16`` array."""

    array: np.ndarray[Any, np.dtype[Any]]
    dtype: str


class ValueType(NamedTuple):
    """What is known of a value before the core infers types; None where unknown."""

    dtype: str | None
    rank: int | None


@dataclass(slots=True)
class NodeDef:
    """One node by value names, "" where an optional input or output is absent."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    name: str

    def input(self, index: int) -> str:
        """Return the name of an input, "" where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def where(self) -> str:
        """Return how error messages name the node."""
        return f"[onnx] node '{self.name}' ({self.op})"


class GraphTarget(Protocol):
    """The part of ``_core.Graph`` that a front end fills."""

    def add_value(self, name: str, dtype: str | None, dims: list[int | str | None] | None) -> int: ...

    def add_constant(self, name: str, array: np.ndarray[Any, np.dtype[Any]], dtype: str | None = None) -> int: ...

    def add_input(self, value_id: int) -> None: ...

    def add_output(self, value_id: int) -> None: ...

    def add_node(
        self, op: str, inputs: list[int], outputs: list[int], attributes: dict[str, Any], name: str
    ) -> None: ...


class AdapterContext(Protocol):
    """What an adapter may ask of the graph around its node, and the names and constants it may make."""

    @property
    def opset(self) -> int: ...

    def fresh(self, hint: str) -> str:
        """Return a value name that the model does not use."""
        ...

    def constant(self, array: np.ndarray[Any, np.dtype[Any]], hint: str) -> str:
        """Make a constant and return its name."""
        ...

    def constant_value(self, name: str) -> Tensor | None:
        """Return the value of a constant, None where it is computed while the model runs."""
        ...

    def type_of(self, name: str) -> ValueType:
        """Return the element type and rank that the model states or implies for a value."""
        ...

    def rank_of(self, name: str) -> int | None:
        """Return the rank of ``type_of``, for less where nothing else is asked for."""
        ...

    def dims_of(self, name: str) -> list[int | None] | None:
        """Return the dimensions that the model states or implies for a value, None where even the rank is unknown."""
        ...

    def sequence(self, name: str) -> list[str] | None:
        """Return the elements of a sequence, None where they are not known before the model runs."""
        ...

    def set_sequence(self, name: str, elements: list[str]) -> None:
        """Note the elements of a sequence."""
        ...

    def kind(self, name: str) -> str | None:
        """Return the kind of a value that is no tensor of numbers (`ascendsched.packed`), None for a tensor."""
        ...

    def set_kind(self, name: str, kind: str) -> None:
        """Note the kind of a value that a node will produce."""
        ...

    def is_read(self, name: str) -> bool:
        """Return whether a node or a graph output reads the value."""
        ...


def text(raw: str | bytes) -> str:
    """Return a string of a protobuf message, which hands out bytes where a damaged file has no valid UTF-8."""
    return raw if isinstance(raw, str) else raw.decode("utf-8", "replace")


def printable(name: str) -> str:
    """Return the name of a value as one line."""
    return name.replace("\n", ".")
