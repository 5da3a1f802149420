"""Attention, MultiHeadAttention and GroupQueryAttention of ``com.microsoft``, in simpler operators."""

from __future__ import annotations

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.adapters_quantized import scaled_product
from ascendsched.frontends.adapters_rotary import rotate
from ascendsched.frontends.attention_parts import AttentionParts, head_count, output_of, refuse
from ascendsched.frontends.node import AdapterContext, NodeDef

_INT64 = 7  # TensorProto.INT64


def attention(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Attention of one input that a single product projects to queries, keys and values."""
    r = AttentionParts(node, ctx)
    refuse(node, {6: "past_sequence_length"}, {}, ("do_rotary", "past_present_share_buffer"))
    data, weights, bias = node.inputs[0], node.inputs[1], node.input(2)
    projected = r.make("MatMul", data, weights)
    if bias:
        projected = r.make("Add", projected, bias)
    _attend_projected(r, node, projected, padding=node.input(3), past=node.input(4), bias=node.input(5))
    return r.nodes


def q_attention(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Attention whose input and weights are bytes."""
    r = AttentionParts(node, ctx)
    refuse(node, {}, {}, ("do_rotary", "past_present_share_buffer"))
    data, weights, bias, data_scale, weight_scale = node.inputs[:5]
    projected = scaled_product(r, None, data, node.input(6), data_scale, weights, node.input(7), weight_scale, bias)
    _attend_projected(r, node, projected, padding=node.input(5), past=node.input(8), bias="")
    return r.nodes


def _attend_projected(r: AttentionParts, node: NodeDef, projected: str, *, padding: str, past: str, bias: str) -> None:
    heads, weights = head_count(node, "num_heads"), node.inputs[1]
    sizes = list(node.attributes.get("qkv_hidden_sizes", ()))
    if sizes and (len(sizes) != 3 or min(sizes) < 1):
        raise GraphError(f"{node.where()}: qkv_hidden_sizes is {sizes}; expected three positive numbers")
    if not sizes:
        parts = r.make_several("Split", [projected], [None] * 3, axis=2, num_outputs=3)
    else:
        parts = r.make_several("Split", [projected, r.constant(sizes)], [None] * 3, axis=2)
    split = [r.make("Reshape", part, r.constant([0, 0, heads, -1])) for part in parts]
    query, key, value = (r.make("Transpose", part, perm=[0, 2, 1, 3]) for part in split)
    present = output_of(node, 1)
    if past:
        past_key, past_value = (r.make("Gather", past, r.constant(i), axis=0) for i in (0, 1))
        key, value = r.extended(past_key, key, None), r.extended(past_value, value, None)
    if present:
        both = [r.make("Unsqueeze", x, r.constant([0])) for x in (key, value)]
        r.make("Concat", *both, axis=0, output=present)
    columns = sizes[0] if sizes else (r.size(weights, 1) or 0) // 3
    width = columns // heads or None
    masks = _masks(r, node, query, key, padding=padding, bias=bias)
    r.attend(query, key, value, node.outputs[0], width=width, masks=masks)


def multi_head_attention(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Attention of queries, keys and values that are projected already, packed or apart."""
    r = AttentionParts(node, ctx)
    refuse(node, {8: "past_sequence_length", 9: "cache_indirection"}, {3: "qk"}, ())
    heads = head_count(node, "num_heads")
    query, key, value, bias = node.inputs[0], node.input(1), node.input(2), node.input(3)
    width = _width(r, node, heads)
    keys_by_head = bool(value) and r.rank(key, 3) == 4  # [batch, heads, keys, width]
    if not key:
        query, key, value = _unpacked(r, node, query, 3)
    else:
        query = r.by_head(query, heads)
        if not value:
            key, value = _unpacked(r, node, key, 2)
        elif not keys_by_head:
            key, value = r.by_head(key, heads), r.by_head(value, heads)
    if bias:
        if keys_by_head:
            raise UnsupportedError(f"{node.where()}: a bias to keys by head is not supported; add it before")
        query, key, value = _biased(r, (query, key, value), bias, heads)
    query = r.make("Transpose", query, perm=[0, 2, 1, 3])
    if not keys_by_head:
        key, value = (r.make("Transpose", x, perm=[0, 2, 1, 3]) for x in (key, value))
    key = r.extended(node.input(6), key, output_of(node, 1))
    value = r.extended(node.input(7), value, output_of(node, 2))
    masks = _masks(r, node, query, key, padding=node.input(4), bias=node.input(5))
    r.attend(query, key, value, node.outputs[0], width=width, masks=masks)
    return r.nodes


def _width(r: AttentionParts, node: NodeDef, heads: int) -> int | None:
    """How many elements a head's query has, None where the model does not say."""
    query, past = node.inputs[0], node.input(6)
    if not node.input(1):
        return r.size(query, 4)
    hidden = r.size(query, 2)
    return hidden // heads if hidden else r.size(past, 3) if past else None


def _unpacked(r: AttentionParts, node: NodeDef, packed: str, count: int) -> list[str]:
    """Parts of a value [batch, rows, heads, count, width]."""
    if r.rank(packed, 5) != 5:
        raise GraphError(f"{node.where()}: '{packed}' has rank {r.rank(packed)}, expected 5 of what is packed")
    parts = r.make_several("Split", [packed, r.constant([1] * count)], [None] * count, axis=3)
    return [r.make("Squeeze", part, r.constant([3])) for part in parts]


def _biased(r: AttentionParts, values: tuple[str, ...], bias: str, heads: int) -> list[str]:
    """Add the parts of one bias to queries, keys and values [batch, rows, heads, width]."""
    results, start = [], r.constant([0])
    for value in values:
        size = r.make("Mul", r.dim(value, -1), r.constant([heads]))
        end = r.make("Add", start, size)
        part = r.make("Slice", bias, start, end, r.constant([0]))
        results.append(r.make("Add", value, r.make("Reshape", part, r.constant([heads, -1]))))
        start = end
    return results


def _masks(r: AttentionParts, node: NodeDef, query: str, key: str, *, padding: str, bias: str) -> list[str]:
    masks = []
    keys = r.dim(key, 2)
    if padding:
        hidden = node.attributes.get("mask_filter_value", -10000.0)
        masks.append(r.padding(padding, r.dim(query, 0), keys, query, hidden))
    if node.attributes.get("unidirectional", 0):
        masks.append(r.causal(r.dim(query, 2), keys, query))
    if bias:
        masks.append(bias)
    return masks


def group_query_attention(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Causal attention with a cache, where several query heads share keys and values."""
    r = AttentionParts(node, ctx)
    refuse(
        node,
        {11: "head_sink", 12: "k_scale", 13: "v_scale"},
        {3: "output_qk"},
        ("smooth_softmax", "qk_output", "k_quant_type", "v_quant_type", "kv_cache_bit_width"),
    )
    heads, shared = head_count(node, "num_heads"), head_count(node, "kv_num_heads")
    if heads % shared:
        raise GraphError(f"{node.where()}: {heads} heads do not divide by kv_num_heads {shared}; the file is damaged")
    query, key, value = node.inputs[0], node.input(1), node.input(2)
    hidden = r.size(query, 2)
    if not key:  # queries, keys and values side by side
        packed = r.make("Reshape", query, r.constant([0, 0, heads + 2 * shared, -1]))
        sizes = r.constant([heads, shared, shared])
        parts = r.make_several("Split", [packed, sizes], [None] * 3, axis=2)
        width = hidden // (heads + 2 * shared) if hidden else None
    else:
        counts = (heads, shared, shared)
        parts = [r.by_head(x, n) for x, n in zip((query, key, value), counts, strict=True)]
        width = hidden // heads if hidden else None
    if width is None and node.input(3):
        width = r.size(node.inputs[3], 3)
    rows = r.dim(query, 1)
    total = r.make("Reshape", r.make("Cast", node.inputs[6], to=_INT64), r.constant([1]))
    place = _places(r, node.inputs[5], rows, total)
    if node.attributes.get("do_rotary", 0):
        positions = node.input(9) or place
        parts[:2] = [_turned(r, node, x, positions, width) for x in parts[:2]]
    query, key, value = (r.make("Transpose", x, perm=[0, 2, 1, 3]) for x in parts)
    key = _cached(r, node.input(3), key, place, total, output_of(node, 1))
    value = _cached(r, node.input(4), value, place, total, output_of(node, 2))
    masks = [_visible(r, place, r.dim(key, 2), query, node.attributes.get("local_window_size", -1))]
    if bias := node.input(10):
        masks.append(bias)
    repeats = heads // shared
    key, value = (r.repeated(x, heads, repeats) for x in (key, value))
    softcap = node.attributes.get("softcap", 0.0)
    r.attend(query, key, value, node.outputs[0], width=width, masks=masks, softcap=softcap)
    return r.nodes


def _turned(r: AttentionParts, node: NodeDef, data: str, positions: str, width: int | None) -> str:
    """Rotate queries or keys; no more of each than the tables have, where that may be less than all."""
    cos, sin = node.input(7), node.input(8)
    if not cos or not sin:
        raise GraphError(f"{node.where()}: do_rotary needs cos_cache and sin_cache; the file is damaged")
    half = r.size(cos, 1)
    part = None if half is not None and width is not None and 2 * half == width else 2 * (half or 0)
    interleaved = bool(node.attributes.get("rotary_interleaved", 0))
    return rotate(r, data, positions, cos, sin, heads_axis=2, interleaved=interleaved, part=part)


def _places(r: AttentionParts, last: str, rows: str, total: str) -> str:
    """Where each row's key goes in the cache, [batch, rows]: behind what is there, from 0 in a prompt."""
    lengths = r.make("Add", r.make("Reshape", r.make("Cast", last, to=_INT64), r.constant([-1, 1])), r.constant(1))
    is_prompt = r.make("Equal", rows, total)
    first = r.make("Where", is_prompt, r.constant([[0]]), r.make("Sub", lengths, rows))
    return r.make("Add", first, r.positions(rows))


def _cached(r: AttentionParts, past: str, new: str, place: str, total: str, present: str | None) -> str:
    """The cache [batch, heads, keys, width] with new rows at their places, as long as asked or as it was."""
    if not past:
        return r.passed_on(new, present)
    missing = r.make("Max", r.make("Sub", total, r.dim(past, 2)), r.constant([0]))
    shape = r.make("Shape", past)
    head, tail = r.make("Slice", shape, r.constant([0]), r.constant([2])), r.dim(past, 3)
    room = r.make("Concat", head, missing, tail, axis=0)
    grown = r.make("Concat", past, r.make("Expand", r.number(0.0, past), room), axis=2)
    index = r.make("Unsqueeze", place, r.constant([1, 3]))
    places = r.make("Expand", index, r.make("Shape", new))
    return r.make("ScatterElements", grown, places, new, axis=2, output=present)


def _visible(r: AttentionParts, place: str, keys: str, like: str, window: int) -> str:
    """The mask [batch, 1, rows, keys]: each row sees what lies before it, and no more than `window` rows."""
    row = r.make("Unsqueeze", place, r.constant([1, 3]))
    columns = r.positions(keys)
    keeps = r.make("LessOrEqual", columns, row)
    if window > 0:
        keeps = r.make("And", keeps, r.make("Greater", columns, r.make("Sub", row, r.constant(window))))
    return r.mask(keeps, like)
