"""Sequences whose length is known when the model is read: they are lists of names, and no node is left of them."""

from __future__ import annotations

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_MOST_PIECES = 1 << 12


def construct(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """SequenceConstruct and SequenceEmpty."""
    ctx.set_sequence(node.outputs[0], list(node.inputs))
    return []


def insert(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Before a position, at the end without one."""
    elements = list(_elements(node, ctx))
    place = _position(node, ctx, 2, len(elements), True) if node.input(2) else len(elements)
    elements.insert(place, node.inputs[1])
    ctx.set_sequence(node.outputs[0], elements)
    return []


def erase(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """At a position, the last one without it."""
    elements = list(_elements(node, ctx))
    if not elements:
        raise GraphError(f"{node.where()}: the sequence is empty; the file is damaged")
    del elements[_position(node, ctx, 1, len(elements)) if node.input(1) else -1]
    ctx.set_sequence(node.outputs[0], elements)
    return []


def at(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """One element."""
    elements = _elements(node, ctx)
    element = elements[_position(node, ctx, 1, len(elements))]
    return [NodeDef("Identity", [element], node.outputs[:1], {}, node.name)]


def length(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The number of elements."""
    count = ctx.constant(np.array(len(_elements(node, ctx)), np.int64), f"{node.name}_length")
    return [NodeDef("Identity", [count], node.outputs[:1], {}, node.name)]


def concat(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Along an axis that the elements have, or a new one."""
    elements = _elements(node, ctx)
    if not elements:
        raise GraphError(f"{node.where()}: the sequence is empty; nothing to concatenate")
    r = Replacement(node, ctx)
    axis = node.attributes.get("axis", 0)
    parts = list(elements)
    if node.attributes.get("new_axis", 0):
        parts = [r.make("Unsqueeze", part, r.constant([axis])) for part in parts]
    r.make("Concat", *parts, output=node.outputs[0], axis=axis)
    return r.nodes


def split(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """SplitToSequence, by sizes that the model states along an axis whose dimension it states."""
    data, axis = node.inputs[0], node.attributes.get("axis", 0)
    r = Replacement(node, ctx)
    lists = ctx.dims_of(node.inputs[1]) if node.input(1) else None
    if lists is not None and len(lists) == 1 and lists[0] is not None:
        sizes, count = node.inputs[1], lists[0]
    else:
        pieces = _sizes(node, ctx, axis)
        sizes, count = r.constant(pieces), len(pieces)
    if not 1 <= count <= _MOST_PIECES:
        raise UnsupportedError(f"{node.where()}: {count} pieces; expected 1 to {_MOST_PIECES}")
    parts = r.make_several("Split", [data, sizes], [None] * count, axis=axis)
    if not node.input(1) and not node.attributes.get("keepdims", 1):
        parts = [r.make("Squeeze", part, r.constant([axis])) for part in parts]
    ctx.set_sequence(node.outputs[0], parts)
    return r.nodes


def _sizes(node: NodeDef, ctx: AdapterContext, axis: int) -> list[int]:
    dims = ctx.dims_of(node.inputs[0])
    dim = dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None
    if dim is None:
        raise UnsupportedError(f"{node.where()}: the dimension of axis {axis} is not known; declare it in the model")
    size = 1
    if node.input(1):
        given = ctx.constant_value(node.inputs[1])
        if given is None:
            raise UnsupportedError(f"{node.where()}: sizes that are computed are not supported; make them a constant")
        size = int(given.array.ravel()[0])
    if size < 1 or dim // size > _MOST_PIECES:
        raise GraphError(f"{node.where()}: pieces of {size} of {dim} elements; the file is damaged")
    return [min(size, dim - start) for start in range(0, dim, size)]


def _elements(node: NodeDef, ctx: AdapterContext) -> list[str]:
    elements = ctx.sequence(node.inputs[0])
    if elements is None:
        raise UnsupportedError(
            f"{node.where()}: the length of sequence '{node.inputs[0]}' is not known before the model runs; "
            "use tensors instead"
        )
    return elements


def _position(node: NodeDef, ctx: AdapterContext, index: int, count: int, takes_end: bool = False) -> int:
    value = ctx.constant_value(node.input(index))
    if value is None:
        raise UnsupportedError(f"{node.where()}: a position that is computed is not supported; make it a constant")
    position = int(value.array.ravel()[0]) if value.array.size == 1 else count + 1
    if not -count <= position < count + takes_end:
        raise GraphError(f"{node.where()}: position {position} of {count}; the file is damaged")
    return position + count if position < 0 else position
