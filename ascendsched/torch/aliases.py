"""Results that share memory in torch: views of one tensor that leave the graph side by side."""

from __future__ import annotations

import operator
from collections import defaultdict

import torch
from torch import fx

aten = torch.ops.aten

_VIEWS = frozenset({
    aten.view.default, aten.permute.default, aten.transpose.int, aten.t.default, aten.unsqueeze.default,
    aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default, aten.expand.default, aten.slice.Tensor,
    aten.select.int, aten.alias.default, aten.detach.default, aten.split.Tensor, aten.split_with_sizes.default,
    aten.unbind.int, aten.as_strided.default, aten.diagonal.default, operator.getitem,
})  # fmt: skip


def shared_views(module: fx.GraphModule, updates: int) -> set[fx.Node]:
    """The view operators through which two results share memory; torch has to make them of one result of ours.

    Results that are views of arguments are not among them: AOTAutograd makes those itself. Nor are the last `updates`
    results, which are copied to arguments.
    """
    (results,) = next(node for node in module.graph.nodes if node.op == "output").args
    ways: dict[fx.Node, list[list[fx.Node]]] = defaultdict(list)
    results = results if isinstance(results, (tuple, list)) else (results,)
    for result in results[: len(results) - updates]:
        if isinstance(result, fx.Node):
            base, way = _base(result)
            ways[base].append(way)
    return {node for found in ways.values() if len(found) > 1 for way in found for node in way}


def _base(node: fx.Node) -> tuple[fx.Node, list[fx.Node]]:
    """The operator that owns the memory of a result, and the views between them."""
    way: list[fx.Node] = []
    while node.op == "call_function" and node.target in _VIEWS and isinstance(node.args[0], fx.Node):
        source = node.args[0]
        if node.target is operator.getitem and source.target not in _VIEWS:
            break  # one of several tensors that an operator makes
        way.append(node)
        node = source
    return node, way
