"""Sequences whose length is known when the model is read: they are lists of names, and no node is left of them.

A node that needs what only a run can tell, such as a position that is computed, stays as it is: a host call computes
it (`onnx_values`). Optionals that are none, because what they hold is known to be there, go the same way.
"""

from __future__ import annotations

import numpy as np

from ascendsched.errors import GraphError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement
from ascendsched.packed import is_optional

_MOST_PIECES = 1 << 12

Nodes = list[NodeDef] | None  # None: the node stays


def construct(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """SequenceConstruct."""
    if any(ctx.kind(name) for name in node.inputs):  # strings
        return None
    ctx.set_sequence(node.outputs[0], list(node.inputs))
    return []


def empty(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """SequenceEmpty: a sequence of the element type comes with what is inserted."""
    ctx.set_sequence(node.outputs[0], [])
    return []


def insert(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """Before a position, at the end without one."""
    elements = ctx.sequence(node.inputs[0])
    if elements is None or ctx.kind(node.inputs[1]):
        return None
    place = _position(node, ctx, 2, len(elements), True) if node.input(2) else len(elements)
    if place is None:
        return None
    ctx.set_sequence(node.outputs[0], [*elements[:place], node.inputs[1], *elements[place:]])
    return []


def erase(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """At a position, the last one without it."""
    elements = ctx.sequence(node.inputs[0])
    if elements is None:
        return None
    if not elements:
        raise GraphError(f"{node.where()}: the sequence is empty; the file is damaged")
    place = _position(node, ctx, 1, len(elements)) if node.input(1) else len(elements) - 1
    if place is None:
        return None
    ctx.set_sequence(node.outputs[0], [*elements[:place], *elements[place + 1 :]])
    return []


def at(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """One element."""
    elements = ctx.sequence(node.inputs[0])
    place = None if elements is None else _position(node, ctx, 1, len(elements))
    if elements is None or place is None:
        return None
    return [NodeDef("Identity", [elements[place]], node.outputs[:1], {}, node.name)]


def length(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """The number of elements."""
    elements = ctx.sequence(node.inputs[0])
    if elements is None:
        return None
    count = ctx.constant(np.array(len(elements), np.int64), f"{node.name}_length")
    return [NodeDef("Identity", [count], node.outputs[:1], {}, node.name)]


def concat(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """Along an axis that the elements have, or a new one."""
    elements = ctx.sequence(node.inputs[0])
    if elements is None:
        return None
    if not elements:
        raise GraphError(f"{node.where()}: the sequence is empty; nothing to concatenate")
    r = Replacement(node, ctx)
    axis = node.attributes.get("axis", 0)
    parts = list(elements)
    if node.attributes.get("new_axis", 0):
        parts = [r.make("Unsqueeze", part, r.constant([axis])) for part in parts]
    r.make("Concat", *parts, output=node.outputs[0], axis=axis)
    return r.nodes


def split(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """SplitToSequence, by sizes that the model states along an axis whose dimension it states."""
    data, axis = node.inputs[0], node.attributes.get("axis", 0)
    if ctx.kind(data):
        return None
    r = Replacement(node, ctx)
    lists = ctx.dims_of(node.inputs[1]) if node.input(1) else None
    if lists is not None and len(lists) == 1 and lists[0] is not None:
        sizes, count = node.inputs[1], lists[0]
    else:
        pieces = _sizes(node, ctx, axis)
        if pieces is None:
            return None
        sizes, count = r.constant(pieces), len(pieces)
    if not 1 <= count <= _MOST_PIECES:
        return None
    parts = r.make_several("Split", [data, sizes], [None] * count, axis=axis)
    if not node.input(1) and not node.attributes.get("keepdims", 1):
        parts = [r.make("Squeeze", part, r.constant([axis])) for part in parts]
    ctx.set_sequence(node.outputs[0], parts)
    return r.nodes


def has_element(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """A tensor or a sequence is there, an absent input is not; optionals tell at each run."""
    if node.input(0) and is_optional(ctx.kind(node.inputs[0]) or ""):
        return None
    answer = ctx.constant(np.array(bool(node.input(0))), f"{node.name}_answer")
    return [NodeDef("Identity", [answer], node.outputs[:1], {}, node.name)]


def get_element(node: NodeDef, ctx: AdapterContext) -> Nodes:
    """A tensor or a sequence is what it holds."""
    if is_optional(ctx.kind(node.inputs[0]) or ""):
        return None
    return [NodeDef("Identity", node.inputs[:1], node.outputs[:1], {}, node.name)]


def _sizes(node: NodeDef, ctx: AdapterContext, axis: int) -> list[int] | None:
    """The sizes of the pieces; None where only a run tells them."""
    dims = ctx.dims_of(node.inputs[0])
    dim = dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None
    size = 1
    if node.input(1):
        given = ctx.constant_value(node.inputs[1])
        if given is None or given.array.size != 1:
            return None
        size = int(given.array.ravel()[0])
    if dim is None:
        return None
    if size < 1 or dim // size > _MOST_PIECES:
        raise GraphError(f"{node.where()}: pieces of {size} of {dim} elements; the file is damaged")
    return [min(size, dim - start) for start in range(0, dim, size)]


def _position(node: NodeDef, ctx: AdapterContext, index: int, count: int, takes_end: bool = False) -> int | None:
    """A position that the model states; None where it is computed."""
    value = ctx.constant_value(node.input(index))
    if value is None:
        return None
    position = int(value.array.ravel()[0]) if value.array.size == 1 and value.array.dtype.kind in "iu" else count + 1
    if not -count <= position < count + takes_end:
        raise GraphError(f"{node.where()}: position {position} of {count}; the file is damaged")
    return position + count if position < 0 else position
