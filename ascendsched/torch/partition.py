"""Compiles what we can run of an FX graph, and leaves the rest to torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

from ascendsched.errors import UnsupportedError
from ascendsched.executable import build
from ascendsched.setup import Setup
from ascendsched.torch.aliases import shared_views
from ascendsched.torch.call import make_call
from ascendsched.torch.convert import convert, reasons
from ascendsched.torch.counters import count, count_fallback
from ascendsched.torch.updates import take_updates

if TYPE_CHECKING:
    from ascendsched.torch.backend import Settings

_log = logging.getLogger("ascendsched")


class _Support:
    """What the partitioner asks: which nodes we run."""

    def __init__(self, refused: Set[fx.Node]) -> None:
        self._refused = refused

    def is_node_supported(self, submodules: Mapping[str, Any], node: fx.Node) -> bool:
        """Whether we run a node."""
        return node.op in {"call_function", "get_attr"} and node not in self._refused


def compile_module(module: fx.GraphModule, settings: Settings) -> Callable[..., Any]:
    """A function of one list of arguments that does what the module does.

    Raises
    ------
    AscendSchedError
        Where a graph that should compile does not.
    """
    count("graphs")
    try:
        updates = take_updates(module)
    except UnsupportedError as error:
        _leave(module, str(error))
        return _boxed(module, ())
    count("updates", len(updates))
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    refused = reasons(module, settings.device)
    shared = shared_views(module, len(updates))
    for node, reason in refused.items():
        count_fallback(reason)
        _log.info("torch: node '%s' is left to torch: %s", node.name, reason)
    count("fallback_nodes", len(refused))
    if not nodes or len(refused) == len(nodes):
        return _boxed(module, updates)
    if not refused and not shared:
        count("nodes", len(nodes))
        return _compile(module, "torch", settings, updates)
    support: Any = _Support(refused.keys() | shared)
    fused = CapabilityBasedPartitioner(module, support, allows_single_node_partition=False).partition_and_fuse()
    for node in fused.graph.nodes:
        if node.op == "call_module":
            _replace(fused, str(node.target), settings)
    return _boxed(fused, updates)


def _replace(fused: Any, name: str, settings: Settings) -> None:
    """Lets a part of a module be computed by us."""
    part = getattr(fused, name)
    count("nodes", sum(node.op == "call_function" for node in part.graph.nodes))
    call = _compile(part, name, settings)
    (results,) = next(node for node in part.graph.nodes if node.op == "output").args
    is_single = not isinstance(results, (tuple, list))

    def forward(*args: Any) -> Any:
        found = call(list(args))
        return found[0] if is_single else tuple(found)

    part.forward = forward


def _leave(module: fx.GraphModule, reason: str) -> None:
    """Counts that torch runs a whole module."""
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    count("fallback_nodes", len(nodes))
    count_fallback(reason)
    _log.info("torch: a graph of %d nodes is left to torch: %s", len(nodes), reason)


def _compile(module: fx.GraphModule, name: str, settings: Settings, updates: Sequence[int] = ()) -> Any:
    converted = convert(module, name, len(updates))
    count("subgraphs")
    setup = Setup(settings.device, settings.mode, settings.threads, settings.options)
    call = make_call(build(converted.graph.core, setup), converted, updates)
    count("updates_in_place", call.updates_in_place)
    return call


def _boxed(module: Any, updates: Sequence[int]) -> Callable[..., Any]:
    """The module by torch, as a function of one list; its last results go to the arguments `updates`."""

    def run(args: list[Any]) -> Any:
        given = tuple(args)
        args.clear()
        results = module(*given)
        if not updates:
            return results
        kept = len(results) - len(updates)
        for argument, value in zip(updates, results[kept:], strict=True):
            given[argument].copy_(value)
        return list(results[:kept])

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
