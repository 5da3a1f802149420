"""Compiles what we can run of an FX graph, and leaves the rest to torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any

from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

from ascendsched.executable import build
from ascendsched.setup import Setup
from ascendsched.torch.aliases import shared_views
from ascendsched.torch.call import make_call
from ascendsched.torch.convert import convert, reasons
from ascendsched.torch.counters import count, count_fallback

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
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    refused = reasons(module, settings.device)
    shared = shared_views(module)
    for node, reason in refused.items():
        count_fallback(reason)
        _log.info("torch: node '%s' is left to torch: %s", node.name, reason)
    count("fallback_nodes", len(refused))
    if not nodes or len(refused) == len(nodes):
        return _boxed(module)
    if not refused and not shared:
        count("nodes", len(nodes))
        return _compile(module, "torch", settings)
    support: Any = _Support(refused.keys() | shared)
    fused = CapabilityBasedPartitioner(module, support, allows_single_node_partition=False).partition_and_fuse()
    for node in fused.graph.nodes:
        if node.op == "call_module":
            _replace(fused, str(node.target), settings)
    return _boxed(fused)


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


def _compile(module: fx.GraphModule, name: str, settings: Settings) -> Any:
    converted = convert(module, name)
    count("subgraphs")
    setup = Setup(settings.device, settings.mode, settings.threads, settings.options)
    return make_call(build(converted.graph.core, setup), converted)


def _boxed(module: Any) -> Callable[..., Any]:
    """The module by torch, as a function of one list."""

    def run(args: list[Any]) -> Any:
        given = tuple(args)
        args.clear()
        return module(*given)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
