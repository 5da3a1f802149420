"""RotaryEmbedding of ``com.microsoft``: rotary position embeddings, in simpler operators."""

from __future__ import annotations

from ascendsched.errors import UnsupportedError
from ascendsched.frontends.attention_parts import AttentionParts, refuse
from ascendsched.frontends.node import AdapterContext, NodeDef


def rotary_embedding(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Rotate pairs of elements by angles that grow with the position."""
    r = AttentionParts(node, ctx)
    refuse(node, {}, {}, ("is_packed_batching",))
    if node.attributes.get("scale", 1.0) != 1.0:
        raise UnsupportedError(f"{node.where()}: a scale other than 1 is not supported; export without it")
    data, positions, cos, sin = node.inputs[:4]
    by_head = r.rank(data, 3) == 4  # [batch, heads, rows, width]
    if not by_head:
        if heads := node.attributes.get("num_heads", 0):
            turned = r.by_head(data, heads)
        else:
            width = r.make("Mul", r.dim(cos, 1), r.constant([2]))
            turned = r.make("Reshape", data, r.make("Concat", r.constant([0, 0, -1]), width, axis=0))
        data_shape = r.make("Shape", data)
        data = turned
    if r.rank(positions) == 1:  # where the first row stands
        rows = r.dim(data, 2 if by_head else 1)
        positions = r.make("Unsqueeze", r.make("Add", positions, r.positions(rows)), r.constant([0]))
    interleaved = bool(node.attributes.get("interleaved", 0))
    partial = node.attributes.get("rotary_embedding_dim", 0) or None
    turned = rotate(r, data, positions, cos, sin, heads_axis=1 if by_head else 2, interleaved=interleaved, part=partial)
    if by_head:
        r.make("Identity", turned, output=node.outputs[0])
    else:
        r.make("Reshape", turned, data_shape, output=node.outputs[0])
    return r.nodes


def rotate(
    r: AttentionParts,
    data: str,
    positions: str,
    cos: str,
    sin: str,
    *,
    heads_axis: int,
    interleaved: bool,
    part: int | None = None,
) -> str:
    """Rotate ``data`` of rank 4 by the rows of the tables that ``positions`` [batch or 1, rows] name.

    Tables are as wide as half the rotated elements, which come first; ``part`` tells that others follow.
    """
    axis, last = r.constant([heads_axis]), r.constant([3])
    half = r.dim(cos, 1)
    zero, whole = r.constant([0]), r.make("Add", half, half)
    rest = ""
    if part is not None:
        rest = r.make("Slice", data, whole, r.constant([2**62]), last)
        data = r.make("Slice", data, zero, whole, last)
    angles = [r.make("Unsqueeze", r.make("Gather", table, positions, axis=0), axis) for table in (cos, sin)]
    if interleaved:
        turned = _rotate_pairs(r, data, *angles)
    else:
        wide_cos, wide_sin = (r.make("Concat", angle, angle, axis=3) for angle in angles)
        first = r.make("Slice", data, zero, half, last)
        second = r.make("Slice", data, half, whole, last)
        swapped = r.make("Concat", r.make("Neg", second), first, axis=3)
        turned = r.make("Add", r.make("Mul", data, wide_cos), r.make("Mul", swapped, wide_sin))
    return r.make("Concat", turned, rest, axis=3) if rest else turned


def _rotate_pairs(r: AttentionParts, data: str, cos: str, sin: str) -> str:
    """Pairs are neighbours, not elements of the two halves."""
    last, two, end = r.constant([3]), r.constant([2]), r.constant([2**62])
    even = r.make("Slice", data, r.constant([0]), end, last, two)
    odd = r.make("Slice", data, r.constant([1]), end, last, two)
    low = r.make("Sub", r.make("Mul", even, cos), r.make("Mul", odd, sin))
    high = r.make("Add", r.make("Mul", even, sin), r.make("Mul", odd, cos))
    axis = r.constant([4])
    pairs = r.make("Concat", r.make("Unsqueeze", low, axis), r.make("Unsqueeze", high, axis), axis=4)
    return r.make("Reshape", pairs, r.make("Shape", data))
