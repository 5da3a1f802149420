"""Inlines the model-local functions of ONNX models, after a look at how large that becomes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ascendsched.errors import GraphError
from ascendsched.frontends.onnx_types import all_bodies_of

if TYPE_CHECKING:
    import onnx

    Functions = dict[tuple[str, str], onnx.FunctionProto]

_MAX_DEPTH = 100
_MAX_NODES = 1_000_000


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model in which the nodes of its functions stand where they are called.

    Raises
    ------
    GraphError
        Where functions call themselves, nest or grow beyond any sensible model, or do not fit their calls. Inlining
        itself would not notice the first three before the stack or the memory ends.
    """
    import onnx.inliner

    functions = {(function.domain, function.name): function for function in model.functions}
    size = _size(model.graph.node, functions, {}, 0)
    if size > _MAX_NODES:
        raise GraphError(f"[onnx] the model's functions grow to {size} nodes; export the model without functions")
    try:
        return onnx.inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:  # the inliner's C++ errors have no common class
        raise GraphError(f"[onnx] cannot inline the model's functions: {error}; export it without functions") from None


def _size(nodes: Iterable[onnx.NodeProto], functions: Functions, sizes: dict[tuple[str, str], int], depth: int) -> int:
    """Return the number of nodes after inlining; ``sizes`` holds the functions seen, 0 while one is being counted."""
    total = 0
    for node in nodes:
        key = (node.domain, node.op_type)
        if key not in functions:
            bodies = (body for attribute in node.attribute for body in all_bodies_of(attribute))
            total += 1 + sum(_size(body.node, functions, sizes, depth) for body in bodies)
            continue
        if depth > _MAX_DEPTH or sizes.get(key) == 0:
            raise GraphError(
                f"[onnx] function '{node.domain}::{node.op_type}' calls itself or nests more than {_MAX_DEPTH} deep; "
                "export the model without functions"
            )
        if key not in sizes:
            sizes[key] = 0
            sizes[key] = 1 + _size(functions[key].node, functions, sizes, depth + 1)
        total += sizes[key]
    return total
