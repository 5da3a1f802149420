"""An FX graph of ATen operators as one of our graphs, and what of it can be one."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ascendsched import plugins
from ascendsched.errors import UnsupportedError
from ascendsched.graph import Graph, Tensor
from ascendsched.native import core as _core
from ascendsched.torch import (  # noqa: F401 - they register lowerings
    ops_create,
    ops_division,
    ops_groups,
    ops_index,
    ops_math,
    ops_nn,
    ops_norm,
    ops_pool,
    ops_reduce,
    ops_shape,
    ops_size,
    ops_sort,
    ops_strided,
)
from ascendsched.torch.lowering import Lowering, Value, dtype_name, is_same_size, refuse


@dataclass(frozen=True)
class Output:
    """One result of the FX graph.

    Attributes
    ----------
    index : int
        Its place among the results of our graph; -1: the FX graph returns None there.
    is_number : bool
        Whether torch wants a Python int or float.
    order : tuple of int, optional
        Our result is laid out with these axes in this order; None: in their own.
    """

    index: int
    is_number: bool = False
    order: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Converted:
    """A graph and how the arguments and results of the FX graph map to its inputs and outputs."""

    graph: Graph
    inputs: list[int]  # argument of each input
    outputs: list[Output]


def convert(module: fx.GraphModule, name: str, updates: int = 0) -> Converted:
    """Converts a whole FX graph; its last `updates` results are for arguments, hence in the order of their axes.

    Raises
    ------
    UnsupportedError
        Where `reasons` finds one.
    """
    graph = Graph(name)
    lowering = Lowering(graph)
    env: dict[fx.Node, Any] = {}
    arguments = [node for node in module.graph.nodes if node.op == "placeholder"]
    inputs = [i for i, node in enumerate(arguments) if node.users]
    sizes = _sizes_of_arguments(arguments)
    bound: list[int] = []
    for i in sorted(inputs, key=lambda i: arguments[i] in sizes):
        node = arguments[i]
        if node in sizes:
            source, axis = sizes[node]
            lowering._node = node.name
            axes = lowering.constant([0])
            value = lowering.op("Squeeze", lowering.dim(env[source].tensor, axis), axes)
        else:
            value = declare(graph, node)
            bound.append(i)
        env[node] = Value(value, node.meta["val"])
    for node in module.graph.nodes:
        if node.op in {"call_function", "get_attr"}:
            env[node] = _convert_node(module, lowering, node, env)
    outputs = _convert_outputs(graph, lowering, module, env, updates)
    return Converted(graph, bound, outputs)


def reasons(module: fx.GraphModule, device: str) -> dict[fx.Node, str]:
    """The nodes that cannot be converted for a device, each with the reason."""
    graph = Graph("probe")
    lowering = Lowering(graph)
    found: dict[fx.Node, str] = {}
    nodes = {node.name: node for node in module.graph.nodes}
    for node in module.graph.nodes:
        if node.op not in {"call_function", "get_attr"}:
            continue
        try:
            env = {n: _stand_in(graph, n) for n in node.all_input_nodes}
            made = _convert_node(module, lowering, node, env)
            _check_types(node)
            _check_used(node, made)
        except UnsupportedError as error:
            found[node] = str(error)
    plugins.load(device)
    for op, name, _, why_not in _core.check_support(graph.core, device):
        node = nodes.get(name.partition("/")[0])
        if why_not and node is not None:
            found.setdefault(node, f"{op}: {why_not}")
    return found


def _stand_in(graph: Graph, node: fx.Node) -> Any:
    meta = node.meta.get("val")
    if isinstance(meta, (tuple, list)):
        return tuple(None if m is None else Value(_declared(graph, node.name, m), m) for m in meta)
    return Value(declare(graph, node), meta)


def _check_types(node: fx.Node) -> None:
    meta = node.meta.get("val")
    for m in meta if isinstance(meta, (tuple, list)) else [meta]:
        if isinstance(m, torch.Tensor):
            if m.device.type != "cpu" or m.layout != torch.strided:
                raise refuse(f"{node.target} on {m.device}, {m.layout}")
            dtype_name(m.dtype)
        elif m is not None and not isinstance(m, (int, torch.SymInt, torch.SymFloat)):
            raise refuse(f"{node.target} gives {type(m).__name__}")


def _check_used(node: fx.Node, made: Any) -> None:
    """Refuses a node of which a result is read that its lowering does not give."""
    if not isinstance(made, tuple):
        return
    for user in node.users:
        if user.target is operator.getitem and made[user.args[1]] is None:
            raise refuse(f"{node.target} with result {user.args[1]}")


def declare(graph: Graph, node: fx.Node) -> Tensor:
    """An input of our graph for a value of the FX graph."""
    return _declared(graph, node.name, node.meta.get("val"))


def _declared(graph: Graph, name: str, meta: Any) -> Tensor:
    if isinstance(meta, (int, torch.SymInt)) and not isinstance(meta, bool):
        return graph.input(name, "int64", ())
    if isinstance(meta, (float, torch.SymFloat)):
        return graph.input(name, "float64", ())
    if not isinstance(meta, torch.Tensor):
        raise refuse(f"'{name}' is {type(meta).__name__}, no tensor")
    if meta.device.type != "cpu" or meta.layout != torch.strided:
        raise refuse(f"'{name}' is on {meta.device}, {meta.layout}")
    if meta.is_conj() or meta.is_neg():
        raise refuse(f"'{name}' is a lazy conjugate or negative")
    return graph.input(name, dtype_name(meta.dtype), [_dim(size) for size in meta.shape])


def _dim(size: Any) -> int | str | None:
    if isinstance(size, int):
        return size
    return str(size.node.expr) if size.node.expr.is_symbol else None


def _sizes_of_arguments(arguments: list[fx.Node]) -> dict[fx.Node, tuple[fx.Node, int]]:
    """For arguments that are sizes of others: of which tensor, and which axis. They need not be passed."""
    places: dict[Any, tuple[fx.Node, int]] = {}
    for node in arguments:
        meta = node.meta.get("val")
        if isinstance(meta, torch.Tensor) and node.users:
            for axis, size in enumerate(meta.shape):
                if isinstance(size, torch.SymInt):
                    places.setdefault(size.node.expr, (node, axis))
    return {
        node: places[node.meta["val"].node.expr]
        for node in arguments
        if isinstance(node.meta.get("val"), torch.SymInt) and node.meta["val"].node.expr in places
    }


def _convert_node(module: fx.GraphModule, lowering: Lowering, node: fx.Node, env: dict[fx.Node, Any]) -> Any:
    meta = node.meta.get("val")
    if node.op == "get_attr":
        tensor = _attribute(module, str(node.target))
        lowering._node = node.name
        return Value(lowering.add_constant(tensor), tensor)
    if node.target is operator.getitem:
        source, index = node.args
        value = env[source][index] if isinstance(source, fx.Node) else None
        if value is None:
            raise refuse(f"result {index} of {source} is not computed")
        return value
    args = fx.map_arg(node.args, lambda n: env[n])
    kwargs = fx.map_arg(node.kwargs, lambda n: env[n])
    made = lowering.lower(node, args, kwargs)
    if isinstance(made, tuple):
        return tuple(None if t is None else Value(t, m) for t, m in zip(made, meta, strict=True))
    return Value(made, meta)


def _attribute(module: fx.GraphModule, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part)
    if not isinstance(found, torch.Tensor):
        raise refuse(f"attribute '{path}' is {type(found).__name__}, no tensor")
    return found


def _convert_outputs(
    graph: Graph, lowering: Lowering, module: fx.GraphModule, env: dict[fx.Node, Any], updates: int
) -> list[Output]:
    (results,) = next(node for node in module.graph.nodes if node.op == "output").args
    lowering._node = "output"
    outputs: list[Output] = []
    count = 0
    results = results if isinstance(results, (tuple, list)) else (results,)
    for i, result in enumerate(results):
        if result is None:
            outputs.append(Output(-1))
            continue
        value = env[result] if isinstance(result, fx.Node) else Value(lowering.constant(result), result)
        order = _order(value.meta) if i < len(results) - updates else None
        tensor = value.tensor if order is None else lowering.op("Transpose", value.tensor, perm=list(order))
        graph.output(tensor, f"result_{count}")
        outputs.append(Output(count, not isinstance(value.meta, torch.Tensor), order))
        count += 1
    return outputs


def _order(meta: Any) -> tuple[int, ...] | None:
    """The axes in the order in which torch would lay the result out; None: in their own order."""
    if not isinstance(meta, torch.Tensor):
        return None
    strides = [s if isinstance(s, int) else s.node.hint for s in meta.stride()]
    wide = [axis for axis, size in enumerate(meta.shape) if not is_same_size(size, 1)]
    if any(not strides[axis] for axis in wide):  # expanded, or of a size without an example
        return None
    laid_out = iter(sorted(wide, key=lambda axis: -strides[axis]))
    order = tuple(next(laid_out) if axis in wide else axis for axis in range(meta.dim()))
    return None if order == tuple(range(meta.dim())) else order
