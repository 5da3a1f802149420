"""Arguments that a graph writes to: its last operators, as results that a call writes where the arguments lie."""

from __future__ import annotations

import torch
from torch import fx

from ascendsched.torch.lowering import refuse

_WRITES = torch.ops.aten.copy_.default


def take_updates(module: fx.GraphModule) -> list[int]:
    """Removes the operators that write to arguments; what they wrote become further results of the module.

    AOTAutograd leaves pure operators, and ``copy_`` where an argument becomes what was computed.

    Returns
    -------
    list of int
        The arguments that are written to, one for each further result, in order.

    Raises
    ------
    UnsupportedError
        Where the module changes its arguments in another way; it is as it was then.
    """
    graph = module.graph
    arguments = {node: i for i, node in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    writes = [node for node in graph.nodes if _changes_arguments(node)]
    for node in writes:
        if node.target is not _WRITES or node.args[0] not in arguments or not _fits(node):
            raise refuse(f"{node.target} changes its arguments")
    _check_order(module, writes)
    if not writes:
        return []
    output = next(node for node in graph.nodes if node.op == "output")
    taken = [node.args[1] for node in writes]
    places = [arguments[node.args[0]] for node in writes]
    for node in writes:
        node.replace_all_uses_with(node.args[1])
        graph.erase_node(node)
    (results,) = output.args
    output.args = ((*results, *taken),)
    module.recompile()
    return places


def _changes_arguments(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _fits(node: fx.Node) -> bool:
    """Whether the value is as the argument: element type, device and rank; torch does not broadcast or convert here."""
    to, value = node.args[0], node.args[1]
    if not (isinstance(to, fx.Node) and isinstance(value, fx.Node)):
        return False
    a, b = to.meta.get("val"), value.meta.get("val")
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return False
    return a.dtype == b.dtype and a.device == b.device and a.dim() == b.dim()


def _check_order(module: fx.GraphModule, writes: list[fx.Node]) -> None:
    """Nothing may read an argument after it was written: it would be read before, here."""
    written: set[fx.Node] = set()
    pending = set(writes)
    for node in module.graph.nodes:
        if node in pending:
            written.add(node.args[0])
            if node.args[1] in written:
                raise refuse("an argument is read after it was changed")
        elif node.op != "output" and written & set(node.all_input_nodes):
            raise refuse("an argument is read after it was changed")
