"""Fills a graph from an ONNX GraphProto: names to values, constants, adapters, bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched import operators
from ascendsched.errors import AscendSchedError, GraphError, UnsupportedError
from ascendsched.frontends.adapters import ADAPTERS, adapt
from ascendsched.frontends.node import GraphTarget, NodeDef, Tensor, ValueType, printable, text
from ascendsched.frontends.onnx_attributes import attributes_of, constant_of, is_text
from ascendsched.frontends.onnx_bodies import check_body, collect_reads, result_kinds
from ascendsched.frontends.onnx_foreign import OPERATORS, foreign_nodes
from ascendsched.frontends.onnx_import import ModelImport
from ascendsched.frontends.onnx_types import tensor_type
from ascendsched.frontends.onnx_values import (
    VALUE_OPS,
    element_type,
    input_kind,
    is_value_node,
    refuse_kinds,
    value_call,
)
from ascendsched.packed import DTYPE, STRING, dtype_of, pack, sequence_of

if TYPE_CHECKING:
    import onnx

    Pending = Tensor | onnx.TensorProto | onnx.NodeProto  # a constant: read, or still in the file

_ABSENT = -1
_BODY_OPS = frozenset({"If", "Loop", "Scan"})
_KIND_OPS = _BODY_OPS | {"Identity", "CastLike", "HostCall"}  # that take more than tensors, in their own ways
_DEFAULT_DOMAINS = frozenset({"", "ai.onnx"})
_UNDECLARED = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})  # onnxruntime writes them anywhere


class Scope:
    """One GraphProto: the model's graph, or a body inside another scope.

    A body is closed: outer values that it reads become further inputs, in the order of ``captures``. Outer constants
    are constants in the body too, so that shapes and weights stay known. ``carried`` has the kinds of what a loop
    brings to its body's inputs.
    """

    def __init__(
        self,
        shared: ModelImport,
        proto: onnx.GraphProto,
        outer: Scope | None = None,
        carried: Sequence[str | None] = (),
    ) -> None:
        self.graph = shared.make_graph(text(proto.name) or "graph")
        self.captures: list[str] = []
        self._shared = shared
        self._proto = proto
        self._outer = outer
        self._ids: dict[str, int] = {}
        self._constants: dict[str, Pending] = {}
        self._sequences: dict[str, list[str]] = {}
        self._kinds: dict[str, str] = {}
        self._carried = carried
        self._produced: set[str] = set()
        self._reads: set[str] = set()
        self._outputs = [output.name for output in proto.output]
        self._output_names = frozenset(self._outputs)

    # AdapterContext

    @property
    def opset(self) -> int:
        return self._shared.opset

    def fresh(self, hint: str) -> str:
        name = self._fresh(hint)
        self._produced.add(name)
        return name

    def constant(self, array: np.ndarray[Any, np.dtype[Any]], hint: str) -> str:
        name = self._fresh(hint)
        self._constants[name] = Tensor(array, dtype_of(array))
        return name

    def constant_value(self, name: str) -> Tensor | None:
        scope = self._owner(name)
        return scope._read_constant(name) if scope is not None and name in scope._constants else None

    def type_of(self, name: str) -> ValueType:
        scope = self._owner(name)
        if scope is not None and name in scope._constants:
            tensor = scope._read_constant(name)
            return ValueType(tensor.dtype, tensor.array.ndim)
        kind = self.kind(name)
        return self._shared.types.find(name) if kind is None else ValueType(kind if kind == STRING else None, None)

    def rank_of(self, name: str) -> int | None:
        owner = self._owner(name)
        is_own = owner is not None and owner._outer is None and name not in owner._constants
        return self._shared.types.rank(name) if is_own and not self.kind(name) else self.type_of(name).rank

    def dims_of(self, name: str) -> list[int | None] | None:
        tensor = self.constant_value(name)
        return list(tensor.array.shape) if tensor is not None else self._shared.types.dims(name)

    def sequence(self, name: str) -> list[str] | None:
        scope: Scope | None = self
        while scope is not None and name not in scope._sequences:
            scope = scope._outer
        return scope._sequences[name] if scope is not None else None

    def set_sequence(self, name: str, elements: list[str]) -> None:
        self._sequences[name] = elements
        self._shared.has_kinds = True

    def kind(self, name: str) -> str | None:
        if not self._shared.has_kinds:
            return None
        scope: Scope | None = self
        while scope is not None:
            if name in scope._sequences and name not in scope._kinds:
                scope._kinds[name] = sequence_of(element_type(scope._sequences[name], scope))
            if name in scope._kinds:
                return scope._kinds[name]
            if name in scope._ids or name in scope._constants or name in scope._produced:
                return None
            scope = scope._outer
        return None

    def set_kind(self, name: str, kind: str) -> None:
        if name in self._ids:
            raise GraphError(f"[onnx] '{name}', a {kind}, is read ahead of its node; sort the model's nodes")
        self._kinds[name] = kind
        self._shared.has_kinds = True

    def is_read(self, name: str) -> bool:
        return name in self._reads

    def _fresh(self, hint: str) -> str:
        name = self._shared.fresh(hint)
        while self._owner(name) is not None:
            name = self._shared.fresh(hint)
        return name

    # Building

    def build(self) -> GraphTarget:
        """Fill and return the graph; a body's captures are still to be added to its inputs."""
        self._declare_constants()
        self._declare_inputs()
        nodes = [node for node in self._proto.node if not self._declare_outputs(node)]
        self._reads.update(self._outputs)
        for node in nodes:
            self._import_node(node)
        for name in self._outputs:
            self.graph.add_output(self.resolve(name, "[onnx] the graph's outputs"))
        return self.graph

    def resolve(self, name: str, reader: str) -> int:
        """Return the value of a name, taking it from the outer scopes where the graph does not define it."""
        value = self._ids.get(name)
        if value is not None:
            return value
        elements = self.sequence(name)
        if elements is not None:  # whoever reads it needs it whole
            self._kinds.pop(name, None)
            packing = NodeDef("SequenceConstruct", list(elements), [name], {}, f"{printable(name)}/SequenceConstruct")
            self._emit(packing, packing.op)
            return self._ids[name]
        owner = self._owner(name)
        if owner is None:
            raise GraphError(f"{reader} read '{name}', which nothing produces; the file is damaged or incomplete")
        if name in owner._constants:
            tensor = owner._read_constant(name)
            dtype, array = (DTYPE, pack(tensor.array)) if tensor.dtype == STRING else (tensor.dtype, tensor.array)
            value = self.graph.add_constant(printable(name), np.asarray(array, order="C"), dtype)
        else:
            value = self.graph.add_value(printable(name), DTYPE if self.kind(name) else None, None)
            if owner is not self:
                self.captures.append(name)
        self._ids[name] = value
        return value

    def _captured(self, name: str) -> int:
        """Return the value of an outer name, which the body may not read or may use for a value of its own."""
        if name in self.captures:
            return self._ids[name]
        return self.graph.add_value(printable(name), None, None)

    def _owner(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and not (name in scope._ids or name in scope._constants or name in scope._produced):
            scope = scope._outer
        return scope

    def _read_constant(self, name: str) -> Tensor:
        pending = self._constants[name]
        if not isinstance(pending, Tensor):
            pending = self._constants[name] = constant_of(pending, self._shared.reader)
        return pending

    def _declare(self, name: str, what: str, node: onnx.NodeProto | None = None) -> None:
        is_taken = name in self._produced or name in self._constants or name in self._ids
        if not name or is_taken or not isinstance(name, str):  # damaged text arrives as bytes
            what += "" if node is None else f" of node '{node.name}' ({node.op_type})"
            raise GraphError(
                f"[onnx] {what} '{name}': the name is empty, no text or taken by another value; "
                "every value needs its own name"
            )

    def _declare_constants(self) -> None:
        if self._proto.sparse_initializer:
            name = self._proto.sparse_initializer[0].values.name
            raise UnsupportedError(f"[onnx] initializer '{name}' is sparse; store it dense")
        for initializer in self._proto.initializer:
            self._declare(initializer.name, "initializer")
            if is_text(initializer):
                self.set_kind(initializer.name, STRING)
            self._constants[initializer.name] = initializer

    def _declare_inputs(self) -> None:
        for index, info in enumerate(self._proto.input):
            # Old files list initializers among the inputs; in new ones that makes them defaults. Constants to us.
            if info.name in self._constants and self._outer is None:
                continue
            self._declare(info.name, "input")
            is_untyped = self._outer is not None and info.type.WhichOneof("value") is None
            dtype, dims = (None, None) if is_untyped else tensor_type(info, "input")
            if kind := input_kind(info.name, dtype, self._carried, index, is_body=self._outer is not None):
                self.set_kind(info.name, kind)
                dtype, dims = DTYPE, [None]
            # A loop may change the shape of what it carries: a body's declared shapes say nothing.
            value = self.graph.add_value(info.name, dtype, dims if self._outer is None else None)
            self._ids[info.name] = value
            self.graph.add_input(value)

    def packed_ends(self) -> dict[str, str]:
        """Return the kinds of the graph's inputs and outputs that are no tensors of numbers."""
        kinds = {name: self.kind(name) for name in [*(info.name for info in self._proto.input), *self._outputs]}
        return {printable(name): kind for name, kind in kinds.items() if kind}

    def _declare_outputs(self, node: onnx.NodeProto) -> bool:
        """Note what a node produces and reads; return whether it is a constant, which is done with that."""
        is_constant = node.op_type == "Constant" and node.domain in _DEFAULT_DOMAINS
        for output in node.output:
            if output:
                self._declare(output, "output", node)
                if not is_constant:
                    self._produced.add(output)
        if is_constant:
            self._shared.schemas.check(node, f"[onnx] node '{node.name}' (Constant)")
            if is_text(node):
                self.set_kind(node.output[0], STRING)
            self._constants[node.output[0]] = node
        else:
            collect_reads(node, self._reads)
        return is_constant

    def _import_node(self, proto: onnx.NodeProto) -> None:
        shared = self._shared
        is_default = proto.domain in _DEFAULT_DOMAINS
        op_type = text(proto.op_type)
        op = op_type if is_default else f"{text(proto.domain)}::{op_type}"
        name = shared.unique_node_name(text(proto.name), op_type)
        where = f"[onnx] node '{name}' ({op})"
        is_foreign = op in OPERATORS and op not in shared.known_ops
        if is_foreign and op in VALUE_OPS and any(self.kind(name) for name in proto.input if name):
            is_foreign = False
        if not is_default and not is_foreign and op not in ADAPTERS and self._call_own(proto, op, name, where):
            return
        is_known = is_foreign or op in shared.known_ops or op in ADAPTERS or op == "Identity" or op in VALUE_OPS
        if not is_known or (is_default and op not in _UNDECLARED and not shared.schemas.has(op)):
            shared.unknown.setdefault(op, []).append(name)
            return
        if is_default:
            shared.schemas.check(proto, where)
        try:
            if is_foreign:
                for made in foreign_nodes(proto, op, name, self, shared):
                    self._emit(made, op)
            else:
                self._adapt_node(proto, op, name)
        except UnsupportedError as error:
            if shared.refused is None:
                raise
            shared.refused.append((op, name, str(error)))

    def _call_own(self, proto: onnx.NodeProto, op: str, name: str, where: str) -> bool:
        """Make a node of an operator that the user has registered; False where nobody has."""
        found = operators.find(op, len(proto.output), attributes_of(proto, self._shared.reader, where))
        if found is None:
            return False
        self._emit(NodeDef(found[0], list(proto.input), list(proto.output), found[1], name), op)
        return True

    def _adapt_node(self, proto: onnx.NodeProto, op: str, name: str) -> None:
        where = f"[onnx] node '{name}' ({op})"
        attributes = attributes_of(proto, self._shared.reader, where)
        outputs = [out if self._is_needed(op, i, out) else "" for i, out in enumerate(proto.output)]
        node = NodeDef(op, self._shared.schemas.inputs(proto), outputs, attributes, name)
        if op not in VALUE_OPS and op not in _KIND_OPS:
            refuse_kinds(node, self)
        try:
            nodes = adapt(node, self)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            if self._shared.schemas.has(op) or isinstance(error, AscendSchedError):  # whose shape was checked
                raise
            raise GraphError(
                f"{where}: {len(proto.input)} inputs, {len(proto.output)} outputs and attributes {sorted(attributes)} "
                "do not fit the operator; the file is damaged"
            ) from None
        for adapted in nodes:
            self._emit(adapted, op)

    def _is_needed(self, op: str, index: int, output: str) -> bool:
        return output in self._reads or not self._shared.schemas.is_optional_output(op, index)

    def _emit(self, node: NodeDef, original_op: str) -> None:
        if node.op == "Identity" and self._alias(node.inputs[0], node.outputs[0]):
            return
        kinds = [self.kind(name) if name else None for name in node.inputs]
        if is_value_node(node, kinds):
            try:
                node = value_call(node, kinds, self)
            except GraphError:
                if self._shared.unknown:  # what it reads may come from one of them
                    return
                raise
        elif node.op == "Identity" and kinds[0]:
            self.set_kind(node.outputs[0], kinds[0])
        elif node.op not in _BODY_OPS and node.op != "HostCall":
            refuse_kinds(node, self)
        if node.op not in self._shared.known_ops:
            self._shared.unknown.setdefault(original_op, []).append(node.name)
            return
        _trim(node.inputs)
        if node.op != "Split":  # whose parts count, read or not
            _trim(node.outputs)
        if node.op in _BODY_OPS:
            self._close_bodies(node)
        where = node.where()
        inputs = [self.resolve(name, where) if name else _ABSENT for name in node.inputs]
        outputs = [self._output(name) if name else _ABSENT for name in node.outputs]
        plain = {key: value.array if isinstance(value, Tensor) else value for key, value in node.attributes.items()}
        self.graph.add_node(node.op, inputs, outputs, plain, node.name)

    def _alias(self, source: str, target: str) -> bool:
        """Let ``target`` be ``source``, unless it is an output, which keeps its name, or was read ahead of its node."""
        elements = self.sequence(source)
        if elements is not None and target not in self._ids:
            self.set_sequence(target, elements)
            return True
        if target in self._output_names or target in self._ids:
            return False
        if kind := self.kind(source):
            self.set_kind(target, kind)
        tensor = self.constant_value(source)
        if tensor is not None:
            self._constants[target] = tensor
        else:
            self._ids[target] = self.resolve(source, f"[onnx] the nodes that read '{printable(target)}'")
        return True

    def _output(self, name: str) -> int:
        value = self._ids.get(name)
        if value is None:
            dtype = DTYPE if name in self._kinds else None
            value = self._ids[name] = self.graph.add_value(printable(name), dtype, None)
        return value

    def _close_bodies(self, node: NodeDef) -> None:
        """Import the bodies of a node; what any of them reads from outside becomes an input of all and of the node."""
        carried = [self.kind(name) if name else None for name in node.inputs] if node.op == "Loop" else []
        bodies = {
            key: Scope(self._shared, node.attributes[key], self, carried)
            for key in ("then_branch", "else_branch", "body")
            if key in node.attributes
        }
        for key, body in bodies.items():
            check_body(node, body._proto)
            node.attributes[key] = body.build()
        results = [[body.kind(name) for name in body._outputs] for body in bodies.values()]
        for output, kind in zip(node.outputs, result_kinds(node, carried, results), strict=True):
            if output and kind:
                self.set_kind(output, kind)
        captures = list(dict.fromkeys(name for body in bodies.values() for name in body.captures))
        for body in bodies.values():
            for name in captures:
                body.graph.add_input(body._captured(name))
        if node.op == "Loop":
            node.inputs += [""] * (2 - len(node.inputs))
        node.inputs += captures
        node.attributes["num_captures"] = len(captures)


def _trim(names: list[str]) -> None:
    while names and not names[-1]:
        names.pop()
