"""Results that are views in torch: of one tensor, side by side, or of what was passed in."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._functorch import config


def shared_views(module: fx.GraphModule, updates: int) -> set[fx.Node]:
    """The view operators behind results that torch has to make.

    Those are views through which two results share memory, of one result of ours. AOTAutograd makes views of arguments
    again, as they were when it looked on; where sizes vary it takes strides and offset of what we return, so that this
    must be the view. The last `updates` results, which are copied to arguments, stand for these.
    """
    (results,) = next(node for node in module.graph.nodes if node.op == "output").args
    results = results if isinstance(results, (tuple, list)) else (results,)
    kept = len(results) - updates
    ways: dict[fx.Node, list[list[fx.Node]]] = defaultdict(list)
    for result in results[:kept]:
        if isinstance(result, fx.Node):
            base, way = _base(result)
            ways[base].append(way)
    written = {_base(result)[0] for result in results[kept:]}
    made: set[fx.Node] = set()
    for base, found in ways.items():
        is_argument = base.op == "placeholder" or base in written
        for way in found:
            if len(found) > 1 or (is_argument and _varies([base, *way])):
                made.update(way)
    return made


def _base(node: fx.Node) -> tuple[fx.Node, list[fx.Node]]:
    """The operator that owns the memory of a result, and the views between them."""
    way: list[fx.Node] = []
    while node.op == "call_function" and node.args and isinstance(node.args[0], fx.Node):
        source = node.args[0]
        if not _is_view(node) or (node.target is operator.getitem and not _is_view(source)):
            break  # also at one of several tensors that an operator makes
        way.append(node)
        node = source
    return node, way


def _is_view(node: fx.Node) -> bool:
    return node.target is operator.getitem or bool(getattr(node.target, "is_view", False))


def _varies(nodes: Sequence[fx.Node]) -> bool:
    """Whether AOTAutograd does not know beforehand where views lie."""
    if not config.view_replay_for_aliased_outputs:
        return True
    tensors = [node.meta.get("val") for node in nodes]
    numbers: list[Any] = []
    for t in tensors:
        if isinstance(t, torch.Tensor):
            numbers += [*t.shape, *t.stride(), t.storage_offset()]
    return any(isinstance(number, torch.SymInt) for number in numbers)
