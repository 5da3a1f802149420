"""Whether a device can run an ONNX model, operator by operator: nothing is compiled, and no weights are read."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched import plugins
from ascendsched.element_types import ONNX_TYPES
from ascendsched.errors import GraphError
from ascendsched.frontends.node import Tensor
from ascendsched.frontends.onnx import read_model
from ascendsched.frontends.onnx_graph import Scope
from ascendsched.frontends.onnx_import import ModelImport
from ascendsched.frontends.onnx_tensors import TensorReader, dtype_name
from ascendsched.native import core as _core

if TYPE_CHECKING:
    import onnx

_MAX_SHAPE_VALUES = 256  # longer constants are weights: no adapter reads their values


@dataclass
class OpSupport:
    """One operator of a model on one device.

    Attributes
    ----------
    op : str
        ONNX name in the newest opset, which is what old ones are imported as; as in the file where it is not known.
    count : int
        Nodes, bodies of control flow included.
    types : list of str
        Element types of the first inputs.
    refused : list of tuple
        Node and reason, for each node that the device cannot run.
    """

    op: str
    count: int = 0
    types: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_supported(self) -> bool:
        """Whether the device can run every node of it."""
        return not self.refused

    @property
    def why_not(self) -> str:
        """The different reasons, each with its first node."""
        first: dict[str, str] = {}
        for node, reason in self.refused:
            first.setdefault(reason, node)
        return "; ".join(f"{reason} (first: '{node}')" for reason, node in first.items())


def check_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto, device: str = "cpu") -> list[OpSupport]:
    """Judges a model by its operators and element types.

    What only a run can tell, such as a shape that is too large, is not judged. External data files need not exist.

    Parameters
    ----------
    model
        As in `ascendsched.compile`.
    device
        Name of the device.

    Returns
    -------
    list of OpSupport
        In alphabetical order.

    Raises
    ------
    GraphError
        For a damaged model.
    UnsupportedError
        For an opset that is not supported.
    DeviceUnavailableError
        For an unknown device.
    """
    known_ops = frozenset(_core.op_names())
    proto, folder, opset = read_model(model, known_ops)
    shared = ModelImport(proto, opset, known_ops, lambda name: _Outline(name, shared), _TypeReader(folder))
    shared.refused = []
    outline = Scope(shared, proto.graph).build()
    ops: dict[str, OpSupport] = {}

    def note(op: str, node: str, why_not: str, types: list[str]) -> None:
        entry = ops.setdefault(op, OpSupport(op))
        entry.count += 1
        if types and types[0] != "undefined" and types[0] not in entry.types:
            entry.types.append(types[0])
        if why_not:
            entry.refused.append((node, _bare(why_not, node)))

    assert isinstance(outline, _Outline)  # noqa: S101 - what the lambda above makes
    plugins.load(device)
    for op, node, types, why_not in _core.check_support(outline.core, device):
        note(op, node, why_not, types)
    for op, names in shared.unknown.items():
        for name in names:
            note(op, name, "the operator is not implemented", [])
    for op, name, reason in shared.refused:
        note(op, name, reason, [])
    return [ops[op] for op in sorted(ops)]


def _bare(reason: str, node: str) -> str:
    """The reason without the place and the node, which stand beside it."""
    _, found, rest = reason.partition(f"'{node}'")
    return (rest.partition(": ")[2] if found else "") or reason


class _TypeReader(TensorReader):
    """Gives weights their types and shapes, but zeros as values, which cost nothing until somebody reads them."""

    def read(self, proto: onnx.TensorProto, where: str) -> Tensor:
        dims = tuple(proto.dims)
        count = math.prod(dims)
        if count <= _MAX_SHAPE_VALUES or any(dim < 0 for dim in dims):
            return super().read(proto, where)
        name = dtype_name(proto.data_type, where)
        try:
            return Tensor(np.zeros(dims, "uint16" if name == "bfloat16" else name), name)
        except (MemoryError, ValueError):
            raise GraphError(f"[onnx] {where}: dimensions {list(dims)} are too large; the file is damaged") from None


class _Outline:
    """A graph whose weights are declarations, and whose values have the types that the model states."""

    def __init__(self, name: str, shared: ModelImport) -> None:
        self.core = _core.Graph(name)
        self._shared = shared

    def add_value(self, name: str, dtype: str | None, dims: list[int | str | None] | None) -> int:
        found = dtype or self._shared.types.find(name).dtype
        return self.core.add_value(name, found if found in ONNX_TYPES else None, dims)  # else what is refused makes it

    def add_constant(self, name: str, array: np.ndarray[Any, np.dtype[Any]], dtype: str | None = None) -> int:
        if array.size <= _MAX_SHAPE_VALUES:
            return self.core.add_constant(name, array, dtype)
        return self.core.add_value(name, dtype, list(array.shape))

    def add_input(self, value_id: int) -> None:
        self.core.add_input(value_id)

    def add_output(self, value_id: int) -> None:
        self.core.add_output(value_id)

    def add_node(self, op: str, inputs: list[int], outputs: list[int], attributes: dict[str, Any], name: str) -> None:
        plain = {key: value.core if isinstance(value, _Outline) else value for key, value in attributes.items()}
        self.core.add_node(op, inputs, outputs, plain, name)
