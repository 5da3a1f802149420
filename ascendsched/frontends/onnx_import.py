"""What is shared by all graphs of one ONNX model while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ascendsched.frontends.node import GraphTarget
from ascendsched.frontends.onnx_schema import Schemas
from ascendsched.frontends.onnx_tensors import TensorReader
from ascendsched.frontends.onnx_types import TypeTable

if TYPE_CHECKING:
    import onnx


class ModelImport:
    """What all scopes of one model share.

    Parameters
    ----------
    model
        The model, functions inlined.
    opset
        Its version of the default domain.
    known_ops
        Operators of the core.
    make_graph
        Makes an empty graph of a name.
    reader
        Reads tensors.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        opset: int,
        known_ops: Iterable[str],
        make_graph: Callable[[str], GraphTarget],
        reader: TensorReader,
    ) -> None:
        self.opset = opset
        self.known_ops = frozenset(known_ops)
        self.make_graph = make_graph
        self.reader = reader
        self.schemas = Schemas(opset)
        self.types = TypeTable(model)
        self.domains = {entry.domain: entry.version for entry in model.opset_import}
        self.unknown: dict[str, list[str]] = {}  # operator: names of its nodes
        # Operator, node and reason of nodes that adapters refuse; None: the first one ends the import.
        self.refused: list[tuple[str, str, str]] | None = None
        self.has_kinds = False  # whether any value is no tensor of numbers
        self._node_names: set[str] = set()
        self._serial = 0

    def unique_node_name(self, name: str, op: str) -> str:
        """Return ``name``, or one made of it and a number where it is empty or taken."""
        result = name
        while not result or result in self._node_names:
            result = f"{name or op}_{self._serial}"
            self._serial += 1
        self._node_names.add(result)
        return result

    def fresh(self, hint: str) -> str:
        """Return a new value name; its line feed keeps it apart from the names of ordinary files."""
        self._serial += 1
        return f"{hint}\n{self._serial}"
