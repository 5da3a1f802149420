"""Operators of opset 1 to 6, from before broadcasting was NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef

BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Greater", "Less", "Equal")


def drop(attribute: str) -> Callable[[NodeDef, AdapterContext], None]:
    """Return an adapter that removes an attribute without a meaning in inference."""

    def adapt(node: NodeDef, ctx: AdapterContext) -> None:
        node.attributes.pop(attribute, None)

    return adapt


def aligned_at_axis(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """With ``broadcast`` the second operand's axes stand at ``axis`` of the first; the last ones without it."""
    is_broadcast, axis = node.attributes.pop("broadcast", 0), node.attributes.pop("axis", None)
    if not is_broadcast or axis is None:
        return None
    return _with_trailing_ones(node, ctx, axis)


def channel_slope(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """One slope for all, or one for each channel."""
    slope = ctx.type_of(node.inputs[1])
    value = ctx.constant_value(node.inputs[1])
    if slope.rank == 0 or (value is not None and value.array.size == 1):
        return None
    return _with_trailing_ones(node, ctx, 1)


def _with_trailing_ones(node: NodeDef, ctx: AdapterContext, axis: int) -> list[NodeDef] | None:
    ranks = [ctx.rank_of(name) for name in node.inputs[:2]]
    if ranks[0] is None or ranks[1] is None:
        raise UnsupportedError(f"{node.where()}: the ranks of its operands are not known; declare them in the model")
    if axis < 0:
        axis += ranks[0]
    missing = ranks[0] - axis - ranks[1]
    if not 0 <= missing <= ranks[0]:
        raise GraphError(
            f"{node.where()}: an operand of rank {ranks[1]} at axis {axis} of rank {ranks[0]}; the file is damaged"
        )
    if missing == 0:
        return None
    axes = ctx.constant(np.arange(ranks[1], ranks[1] + missing), f"{node.name}_axes")
    spread = ctx.fresh(f"{node.name}_aligned")
    before = NodeDef("Unsqueeze", [node.inputs[1], axes], [spread], {}, f"{node.name}/Unsqueeze")
    node.inputs[1] = spread
    return [before, node]


def cast(node: NodeDef, ctx: AdapterContext) -> None:
    """The element type was a name."""
    import onnx

    name = str(node.attributes.get("to", ""))
    if name not in list(onnx.TensorProto.DataType.keys()):
        raise GraphError(f"{node.where()}: '{name}' is no element type; the file is damaged")
    node.attributes["to"] = onnx.TensorProto.DataType.Value(name)


def concat(node: NodeDef, ctx: AdapterContext) -> None:
    """The axis was optional."""
    node.attributes.setdefault("axis", 1)


def pad(node: NodeDef, ctx: AdapterContext) -> None:
    """Pads had another name."""
    node.attributes["pads"] = node.attributes.pop("paddings", [])


def reshape(node: NodeDef, ctx: AdapterContext) -> None:
    """The shape was an attribute."""
    shape = np.array(node.attributes.pop("shape", []), np.int64)
    node.inputs = [node.inputs[0], ctx.constant(shape, f"{node.name}_shape")]


def selu(node: NodeDef, ctx: AdapterContext) -> None:
    """The defaults had fewer digits."""
    node.attributes.setdefault("alpha", 1.6732)
    node.attributes.setdefault("gamma", 1.0507)


def split(node: NodeDef, ctx: AdapterContext) -> None:
    """The sizes could be an input of the element type of the data."""
    if not node.input(1):
        return
    sizes = ctx.constant_value(node.inputs[1])
    if sizes is None:
        raise UnsupportedError(f"{node.where()}: sizes that are computed are not supported; export with a newer opset")
    node.inputs = node.inputs[:1]
    node.attributes["split"] = [int(size) for size in sizes.array.astype(np.int64).ravel()]


def tile(node: NodeDef, ctx: AdapterContext) -> None:
    """One axis was repeated."""
    rank = ctx.rank_of(node.inputs[0])
    given = [ctx.constant_value(name) for name in node.inputs[1:3]]
    if rank is None or len(given) != 2 or given[0] is None or given[1] is None:
        raise UnsupportedError(f"{node.where()}: tiles or axis that are computed are not supported; use a newer opset")
    axis = int(given[1].array.ravel()[0])
    if not -rank <= axis < rank:
        raise GraphError(f"{node.where()}: axis {axis} of rank {rank}; the file is damaged")
    repeats = np.ones(rank, np.int64)
    repeats[axis] = int(given[0].array.ravel()[0])
    node.inputs = [node.inputs[0], ctx.constant(repeats, f"{node.name}_repeats")]


def upsample(node: NodeDef, ctx: AdapterContext) -> None:
    """Height and width had attributes of their own."""
    if "scales" not in node.attributes:
        scales = [node.attributes.pop(f"{name}_scale", 1.0) for name in ("height", "width")]
        node.attributes["scales"] = [1.0, 1.0, *scales]
