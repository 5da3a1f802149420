"""Expands operators that ONNX itself defines by simpler ones, where the core has no operator of their own.

The schema of such an operator builds its body for the types of one node's inputs. The body becomes a function of the
model, which the inliner then puts in the node's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendsched.frontends.node import text
from ascendsched.frontends.onnx_functions import inlined
from ascendsched.frontends.onnx_types import bodies_of, inferred

if TYPE_CHECKING:
    import onnx

_DOMAIN = "ascendsched.expanded"
_MAX_ROUNDS = 8  # bodies hold other such operators, three levels deep as of opset 28
_DEFAULT_DOMAINS = frozenset({"", "ai.onnx"})


def expanded(model: onnx.ModelProto, opset: int, keeps: Callable[[onnx.NodeProto], bool]) -> onnx.ModelProto:
    """Return a model in which no node is left that has a body and that ``keeps`` does not want.

    The model itself is returned, unchanged, where nothing is to be expanded. A node whose body cannot be built, for
    want of a type or because its attributes are damaged, stays.
    """
    for _ in range(_MAX_ROUNDS):
        nodes = [node for node in _all_nodes(model.graph) if not keeps(node) and _has_body(node, opset)]
        if not nodes:
            break
        grown = _with_functions(model, opset, keeps)
        if not grown.functions:
            break
        model = inlined(grown)
    return model


def _all_nodes(graph: onnx.GraphProto) -> Iterable[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for body in bodies_of(node):
            yield from _all_nodes(body)


def _has_body(node: onnx.NodeProto, opset: int) -> bool:
    return node.domain in _DEFAULT_DOMAINS and _is_defined_by_others(text(node.op_type), opset)


@lru_cache(maxsize=1024)  # names of a file may be anything
def _is_defined_by_others(op: str, opset: int) -> bool:
    import onnx

    if not onnx.defs.has(op, opset):
        return False
    schema: Any = onnx.defs.get_schema(op, opset)
    return bool(schema.has_function or schema.has_context_dependent_function)


def _with_functions(model: onnx.ModelProto, opset: int, keeps: Callable[[onnx.NodeProto], bool]) -> onnx.ModelProto:
    """Return a copy in which the nodes to be expanded call functions of the model."""
    import onnx

    types: dict[str, bytes] = {}
    _collect_types(inferred(model).graph, types)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in _all_nodes(copy.graph):
        if keeps(node) or not _has_body(node, opset):
            continue
        function = _body_of(node, opset, types)
        if function is None:
            continue
        function.domain, function.name = _DOMAIN, f"{node.op_type}_{len(copy.functions)}"
        del function.opset_import[:]
        function.opset_import.append(onnx.helper.make_opsetid("", opset))
        node.domain, node.op_type = function.domain, function.name
        _drop_unused_attributes(node, function)
        copy.functions.append(function)
    copy.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
    return copy


def _body_of(node: onnx.NodeProto, opset: int, types: dict[str, bytes]) -> onnx.FunctionProto | None:
    import onnx

    schema: Any = onnx.defs.get_schema(node.op_type, opset)  # its type stub lacks the list of versions
    function = onnx.FunctionProto()
    try:
        if schema.has_context_dependent_function:
            version = max(v for v in schema.context_dependent_function_opset_versions if v <= opset)
            inputs = [types.get(name, b"") if name else b"" for name in node.input]
            if node.op_type == "SequenceMap" and not all(inputs):
                return None  # the library's builder would read a type that is not there
            body = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), inputs)
        else:
            body = schema.get_function_with_opset_version(max(v for v in schema.function_opset_versions if v <= opset))
        function.ParseFromString(body)
    except Exception:  # C++ errors without a common class, and no version that is old enough
        return None
    _set_defaults(node, schema)
    return function


def _set_defaults(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> None:
    """Write default attributes out: a function's body refers to attributes that its call may lack."""
    present = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in present and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _drop_unused_attributes(node: onnx.NodeProto, function: onnx.FunctionProto) -> None:
    """Keep what the body refers to; a body that was built for the node holds the values already."""
    used = set(function.attribute) | {attribute.name for attribute in function.attribute_proto}
    kept = [attribute for attribute in node.attribute if attribute.name in used]
    del node.attribute[:]
    node.attribute.extend(kept)


def _collect_types(graph: onnx.GraphProto, types: dict[str, bytes]) -> None:
    import onnx

    for infos in (graph.input, graph.value_info, graph.output):
        for info in infos:
            types[info.name] = info.type.SerializeToString()
    for tensor in graph.initializer:
        made = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        types.setdefault(tensor.name, made.SerializeToString())
    for node in graph.node:
        for body in bodies_of(node):
            _collect_types(body, types)
