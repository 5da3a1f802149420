"""Types of values in ONNX models: declared shapes, and the types that adapters of old opsets need to know."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import ValueType, printable, text
from ascendsched.frontends.onnx_ranks import Ranks
from ascendsched.frontends.onnx_tensors import dtype_name
from ascendsched.packed import is_kind, optional_of, sequence_of

if TYPE_CHECKING:
    import onnx

_UNKNOWN = ValueType(None, None)
# What exporters write for "not known", as opposed to a dimension that is the same wherever its symbol stands.
_NO_SYMBOL = frozenset({"", "?", "*", "-1", "None", "unk"})
_NO_BODIES = frozenset((1, 2, 3, 4, 6, 7, 8, 9))  # AttributeProto.AttributeType: numbers, strings, tensors, their lists
_NO_SHAPE_VALUE_BYTES = 4096  # larger constants cannot be a shape or an axis list: inference does not need their values


def tensor_type(info: onnx.ValueInfoProto, what: str) -> tuple[str, list[int | str | None] | None]:
    """Return element type and dimensions (None where the rank is unknown) of a declared input.

    The element type is a kind (see `ascendsched.packed`) for what is no tensor of numbers.

    Raises
    ------
    UnsupportedError
        For maps and sparse tensors, and for element types that the core does not have.
    GraphError
        Where no type is declared.
    """
    where = f"{what} '{info.name}'"
    kind = info.type.WhichOneof("value")
    if kind is None:
        raise GraphError(f"[onnx] {where} has no type; the file is damaged or incomplete")
    dtype = type_name(info.type, where)
    return dtype, None if is_kind(dtype) else tensor_dims(info)


def tensor_dims(info: onnx.ValueInfoProto) -> list[int | str | None] | None:
    """Return the declared dimensions of a tensor; None where no rank is declared."""
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    dims: list[int | str | None] = []
    for dim in tensor.shape.dim:
        if dim.WhichOneof("value") == "dim_value":
            dims.append(dim.dim_value if dim.dim_value >= 0 else None)
        else:
            symbol = text(dim.dim_param)
            dims.append(None if symbol in _NO_SYMBOL else symbol)
    return dims


def declared_results(graph: onnx.GraphProto) -> dict[str, tuple[int | str | None, ...]]:
    """Return the shapes that a graph declares for its outputs; nothing relies on them, for models are wrong there."""
    dims = {printable(info.name): tensor_dims(info) for info in graph.output}
    return {name: tuple(found) for name, found in dims.items() if found is not None}


def type_name(proto: onnx.TypeProto, where: str) -> str:
    """Return the element type of a type of tensors, or the kind that another type is to us.

    Raises
    ------
    UnsupportedError
        For maps, sparse tensors, sequences of anything but tensors, and element types that the core does not have.
    """
    form = proto.WhichOneof("value")
    if form == "tensor_type":
        return dtype_name(proto.tensor_type.elem_type, where)
    if form == "sequence_type" and proto.sequence_type.elem_type.WhichOneof("value") == "tensor_type":
        return sequence_of(type_name(proto.sequence_type.elem_type, where))
    held = proto.optional_type.elem_type if form == "optional_type" else None
    if held is not None and held.WhichOneof("value") in ("tensor_type", "sequence_type"):
        return optional_of(type_name(held, where))
    what = "of no type" if form is None else f"a {form.removesuffix('_type')} that"
    raise UnsupportedError(
        f"[onnx] {where} is {what} is not supported; tensors are, sequences of them, and optionals of both"
    )


class TypeTable:
    """Element types and ranks that a model states; runs ONNX shape inference once, when something is missing."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._types: dict[str, ValueType] | None = None
        self._dims: dict[str, list[int | None]] = {}
        self._ranks = Ranks(model.graph)

    def rank(self, name: str) -> int | None:
        """Return the rank that is known of a value of the model's own graph."""
        rank = self._ranks.find(name) if self._types is None else None
        return self.find(name).rank if rank is None else rank

    def find(self, name: str) -> ValueType:
        """Return what is known of a value; a name that bodies use for different types is not known."""
        if self._types is None:
            self._types = {}
            graph = inferred(self._model).graph
            _collect(graph, self._types)
            for info in (*graph.input, *graph.value_info, *graph.output):
                if info.type.tensor_type.HasField("shape"):
                    dims = info.type.tensor_type.shape.dim
                    self._dims[info.name] = [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]
        return self._types.get(name, _UNKNOWN)

    def dims(self, name: str) -> list[int | None] | None:
        """Return the dimensions that are known of a value of the model's own graph."""
        self.find(name)
        return self._dims.get(name)


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types that ONNX shape inference finds, without its large constants."""
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(_without_large_constants(model))
    except Exception:
        # Inference only saves nodes; the core judges the model itself. Its C++ errors have no common class.
        return model


def _collect(graph: onnx.GraphProto, types: dict[str, ValueType]) -> None:
    for infos in (graph.input, graph.value_info, graph.output):
        for info in infos:
            if info.type.HasField("tensor_type"):
                tensor = info.type.tensor_type
                rank = len(tensor.shape.dim) if tensor.HasField("shape") else None
                _note(info.name, tensor.elem_type, rank, types)
    for initializer in graph.initializer:
        _note(initializer.name, initializer.data_type, len(initializer.dims), types)
    for node in graph.node:
        for body in bodies_of(node):
            _collect(body, types)


def _note(name: str, elem_type: int, rank: int | None, types: dict[str, ValueType]) -> None:
    try:
        new = ValueType(dtype_name(elem_type, name) if elem_type else None, rank)
    except (GraphError, UnsupportedError):
        new = ValueType(None, rank)
    old = types.get(name, new)
    types[name] = ValueType(old.dtype if old.dtype == new.dtype else None, old.rank if old.rank == new.rank else None)


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the bodies that a node holds; those of attributes that say to be something else are nobody's."""
    for attribute in node.attribute:
        if attribute.type not in _NO_BODIES:
            yield from all_bodies_of(attribute)


def all_bodies_of(attribute: onnx.AttributeProto) -> Iterator[onnx.GraphProto]:
    """Yield the bodies that lie in an attribute, whatever it says to be."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _without_large_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which large constants are inputs of the same type."""
    import onnx

    source = model.graph
    graph = onnx.GraphProto(name="graph")
    graph.value_info.extend(source.value_info)
    graph.output.extend(source.output)
    graph.input.extend(source.input)
    declared = {info.name for info in source.input}
    for tensor in source.initializer:
        # The contents of the largest were cut out of the file: their dimensions tell.
        if max(tensor.ByteSize(), math.prod(tensor.dims)) <= _NO_SHAPE_VALUE_BYTES:
            graph.initializer.append(tensor)
        elif tensor.name not in declared:
            graph.input.append(_same_type(tensor.name, tensor))
    large = {i for i, node in enumerate(source.node) if node.op_type == "Constant" and _is_large(node)}
    graph.node.extend(source.node if not large else (n for i, n in enumerate(source.node) if i not in large))
    for i in sorted(large):
        node = source.node[i]
        graph.input.append(_same_type(node.output[0], node.attribute[0].t))
    return onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=graph)


def _is_large(constant: onnx.NodeProto) -> bool:
    return bool(constant.ByteSize() > _NO_SHAPE_VALUE_BYTES and constant.attribute[0].HasField("t"))


def _same_type(name: str, tensor: onnx.TensorProto) -> onnx.ValueInfoProto:
    import onnx

    return onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
