"""Attention operators of com.microsoft against onnxruntime, at random inputs of many shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

_TYPES = {"float32": T.FLOAT, "int32": T.INT32, "int64": T.INT64}


def one_node(
    op: str, feeds: dict[str, np.ndarray], inputs: Sequence[str], outputs: Sequence[str], known: bool, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node, with shapes that it states, or only ranks."""
    node = h.make_node(op, list(inputs), list(outputs), domain="com.microsoft", **attributes)
    declared = [
        h.make_tensor_value_info(name, _TYPES[str(x.dtype)], x.shape if known else [None] * x.ndim)
        for name, x in feeds.items()
    ]
    results = [h.make_tensor_value_info(name, T.FLOAT, None) for name in outputs if name]
    graph = h.make_graph([node], "g", declared, results)
    imports = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
    return h.make_model(graph, opset_imports=imports, ir_version=9)


def compute(
    op: str, feeds: dict[str, np.ndarray], inputs: Sequence[str], outputs: Sequence[str] = ("y",), **attributes: Any
) -> dict[str, np.ndarray]:
    """What we compute."""
    model = one_node(op, feeds, inputs, outputs, known=True, **attributes)
    return asc.compile(model, mode="host", threads=1).run(feeds)


def unpack(packed: np.ndarray) -> list[np.ndarray]:
    """Parts of [batch, rows, heads, parts, width] as [batch, rows, heads * width]."""
    parts = np.moveaxis(packed, 3, 0)
    return [np.ascontiguousarray(part.reshape(*part.shape[:2], -1)) for part in parts]


def compare(
    op: str,
    feeds: dict[str, np.ndarray],
    inputs: Sequence[str],
    outputs: Sequence[str] = ("y",),
    known: bool = True,
    **attributes: Any,
) -> None:
    """Runs one node in both modes and in onnxruntime."""
    model = one_node(op, feeds, inputs, outputs, known, **attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    want = dict(zip(names, session.run(names, feeds), strict=True))
    for mode in ("host", "sink"):
        got = asc.compile(model, mode=mode, threads=1).run(feeds)
        for name in names:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def tables(length: int, half: int) -> dict[str, np.ndarray]:
    angles = np.arange(length)[:, None] * 10.0 ** -np.arange(half)
    return {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("batch", "rows", "keys", "heads", "width"), [(1, 1, 9, 2, 8), (2, 5, 5, 3, 16), (1, 7, 4, 1, 4)]
)
def test_multi_head_attention_of_three_operands(batch, rows, keys, heads, width, known):
    hidden = heads * width
    feeds = {
        "q": normal(batch, rows, hidden),
        "k": normal(batch, keys, hidden, seed=1),
        "v": normal(batch, keys, hidden),
    }
    compare("MultiHeadAttention", feeds, ("q", "k", "v"), num_heads=heads, known=known)
    compare("MultiHeadAttention", feeds, ("q", "k", "v"), num_heads=heads, known=known, scale=0.3)
    biased = {**feeds, "bias": normal(3 * hidden)}
    compare("MultiHeadAttention", biased, ("q", "k", "v", "bias"), num_heads=heads, known=known)
    shifted = {**feeds, "add": normal(1, heads, rows, keys)}
    compare("MultiHeadAttention", shifted, ("q", "k", "v", "", "", "add"), num_heads=heads, known=known)


def test_multi_head_attention_of_packed_operands():
    qkv = normal(2, 5, 3, 3, 8)
    apart = compute("MultiHeadAttention", dict(zip("qkv", unpack(qkv), strict=True)), ("q", "k", "v"), num_heads=3)
    packed = compute("MultiHeadAttention", {"q": qkv}, ("q",), num_heads=3)  # which onnxruntime has on GPUs only
    np.testing.assert_array_equal(packed["y"], apart["y"])
    q, kv = normal(2, 4, 24), normal(2, 6, 3, 2, 8)
    keys, values = unpack(kv)
    apart = compute("MultiHeadAttention", {"q": q, "k": keys, "v": values}, ("q", "k", "v"), num_heads=3)
    packed = compute("MultiHeadAttention", {"q": q, "kv": kv}, ("q", "kv"), num_heads=3)
    np.testing.assert_array_equal(packed["y"], apart["y"])


def test_multi_head_attention_with_a_past_and_with_keys_by_head():
    feeds = {"q": normal(2, 3, 24), "k": normal(2, 3, 24, seed=1), "v": normal(2, 3, 24, seed=2)}
    past = {"pk": normal(2, 3, 6, 8), "pv": normal(2, 3, 6, 8, seed=1)}
    names = ("q", "k", "v", "", "", "", "pk", "pv")
    compare("MultiHeadAttention", {**feeds, **past}, names, ("y", "present_k", "present_v"), num_heads=3)
    cross = {"q": feeds["q"], "k": normal(2, 3, 6, 8), "v": normal(2, 3, 6, 8, seed=1)}
    compare("MultiHeadAttention", cross, ("q", "k", "v"), num_heads=3)


def test_multi_head_attention_with_masks():
    feeds = {"q": normal(2, 4, 16), "k": normal(2, 4, 16, seed=1), "v": normal(2, 4, 16, seed=2)}
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    compare("MultiHeadAttention", {**feeds, "mask": mask}, ("q", "k", "v", "", "mask"), num_heads=2)
    compare("MultiHeadAttention", feeds, ("q", "k", "v"), num_heads=2, unidirectional=1)


@pytest.mark.parametrize("known", [True, False])
def test_attention_of_one_input(known):
    feeds = {"x": normal(2, 5, 12), "w": normal(12, 48), "b": normal(48)}
    compare("Attention", feeds, ("x", "w", "b"), num_heads=4, known=known)
    compare("Attention", feeds, ("x", "w", "b"), num_heads=4, known=known, unidirectional=1)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    compare("Attention", {**feeds, "m": mask}, ("x", "w", "b", "m"), num_heads=4, known=known)
    lengths = np.array([3, 5], np.int32)
    compare("Attention", {**feeds, "m": lengths}, ("x", "w", "b", "m"), num_heads=4, known=known)
    sized = {"x": feeds["x"], "w": normal(12, 16 + 16 + 8), "b": normal(40)}
    compare("Attention", sized, ("x", "w", "b"), num_heads=2, qkv_hidden_sizes=[16, 16, 8])
    past = {**feeds, "past": normal(2, 2, 4, 3, 4)}
    compare("Attention", past, ("x", "w", "b", "", "past"), ("y", "present"), num_heads=4, known=known)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("known", [True, False])
def test_rotary_embedding(interleaved, known):
    positions = np.array([[4, 5, 6], [0, 1, 2]])
    attributes = {"interleaved": interleaved, "known": known}
    for x in (normal(2, 3, 32), normal(2, 4, 3, 8)):
        feeds = {"x": x, "p": positions, **tables(16, 4)}
        compare("RotaryEmbedding", feeds, ("x", "p", "cos", "sin"), **attributes)
        compare("RotaryEmbedding", {**feeds, "p": np.array([7])}, ("x", "p", "cos", "sin"), **attributes)
    partial = {"x": normal(2, 3, 32), "p": positions, **tables(16, 2)}
    names = ("x", "p", "cos", "sin")
    compare("RotaryEmbedding", partial, names, num_heads=4, rotary_embedding_dim=4, **attributes)


def cached(batch: int, past: int, rows: int, room: int = 0, heads: int = 4, shared: int = 2) -> dict[str, np.ndarray]:
    return {
        "q": normal(batch, rows, heads * 16),
        "k": normal(batch, rows, shared * 16, seed=1),
        "v": normal(batch, rows, shared * 16, seed=2),
        "pk": normal(batch, shared, past + room, 16, seed=3),
        "pv": normal(batch, shared, past + room, 16, seed=4),
        "last": np.full(batch, past + rows - 1, np.int32),
        "total": np.array(past + rows, np.int32),
        **tables(64, 8),
    }


CACHED = ("q", "k", "v", "pk", "pv", "last", "total")
PRESENT = ("y", "present_k", "present_v")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("batch", "past", "rows"), [(1, 0, 6), (2, 0, 3), (1, 9, 1), (3, 5, 1), (1, 6, 4)])
def test_group_query_attention(batch, past, rows, known):
    feeds = cached(batch, past, rows)
    plain = {name: feeds[name] for name in CACHED}
    heads = {"num_heads": 4, "kv_num_heads": 2, "known": known}
    compare("GroupQueryAttention", plain, CACHED, PRESENT, **heads)
    compare("GroupQueryAttention", plain, CACHED, PRESENT, local_window_size=4, **heads)
    compare("GroupQueryAttention", plain, CACHED, PRESENT, softcap=5.0, scale=0.2, **heads)
    for interleaved in (0, 1):
        rotary = {"do_rotary": 1, "rotary_interleaved": interleaved, **heads}
        compare("GroupQueryAttention", feeds, (*CACHED, "cos", "sin"), PRESENT, **rotary)


def test_group_query_attention_of_packed_operands():
    feeds = cached(2, 3, 1)
    packed = np.concatenate([feeds.pop("q"), feeds.pop("k"), feeds.pop("v")], axis=2)
    names = ("q", "", "", *CACHED[3:], "cos", "sin")
    attributes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    compare("GroupQueryAttention", {"q": packed, **feeds}, names, PRESENT, **attributes)


def test_group_query_attention_in_a_cache_with_room():
    feeds = cached(1, 5, 1, room=6)
    plain = {name: feeds[name] for name in CACHED}
    for name in ("pk", "pv"):
        plain[name][:, :, 5:] = 0  # onnxruntime clears what is not in use
    compare("GroupQueryAttention", plain, CACHED, PRESENT, num_heads=4, kv_num_heads=2)


def test_group_query_attention_of_batches_of_several_lengths():
    feeds = {name: x for name, x in cached(3, 5, 1).items() if name in CACHED}
    feeds["last"] = np.array([5, 2, 4], np.int32)
    for batch, last in enumerate(feeds["last"]):
        feeds["pk"][batch, :, last:] = feeds["pv"][batch, :, last:] = 0
    compare("GroupQueryAttention", feeds, CACHED, PRESENT, num_heads=4, kv_num_heads=2)


def test_embed_layer_normalization():
    ids, kinds = np.array([[1, 2, 3], [4, 0, 1]], np.int32), np.array([[0, 0, 1], [1, 1, 0]], np.int32)
    feeds = {
        "i": ids,
        "s": kinds,
        "w": normal(5, 8),
        "p": normal(4, 8),
        "k": normal(2, 8),
        "g": normal(8),
        "b": normal(8),
    }
    names = ("i", "s", "w", "p", "k", "g", "b")
    node = h.make_node("EmbedLayerNormalization", names, ["y", "m"], domain="com.microsoft", epsilon=1e-5)
    model = one_node("EmbedLayerNormalization", feeds, names, ("y",), known=True)
    model.graph.node[0].CopyFrom(node)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = asc.compile(model, mode="sink", threads=1).run(feeds)["y"]
    np.testing.assert_allclose(got, session.run(["y"], feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "params"),
    [("Relu", ()), ("Tanh", ()), ("LeakyRelu", (0.1,)), ("Clip", (-0.5, 0.5)), ("HardSigmoid", (0.2, 0.5))],
)
def test_fused_conv_and_gemm(kind, params):
    feeds = {"x": normal(1, 3, 6, 5), "w": normal(4, 3, 3, 3), "b": normal(4)}
    given = {"activation_params": list(params)} if params else {}
    compare("FusedConv", feeds, ("x", "w", "b"), activation=kind, **given)
    if kind == "Relu":
        added = {**feeds, "z": normal(1, 4, 4, 3)}
        compare("FusedConv", added, ("x", "w", "b", "z"), activation=kind)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "what"),
    [
        ("GroupQueryAttention", (*CACHED, "", "", "", "", "sink"), {"num_heads": 4, "kv_num_heads": 2}, "head_sink"),
        ("GroupQueryAttention", CACHED, {"num_heads": 4, "kv_num_heads": 2, "smooth_softmax": 1}, "smooth_softmax"),
        ("MultiHeadAttention", ("q", "k", "v", "", "", "", "", "", "n"), {"num_heads": 2}, "past_sequence_length"),
        ("Attention", ("q", "w"), {"num_heads": 2, "do_rotary": 1}, "do_rotary"),
        ("RotaryEmbedding", ("q", "p", "c", "s"), {"is_packed_batching": 1}, "is_packed_batching"),
        ("FusedConv", ("q", "w"), {"activation": "Mish"}, "Mish"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(op, inputs, attributes, what):
    node = h.make_node(op, inputs, ["y"], domain="com.microsoft", **attributes)
    declared = [h.make_tensor_value_info(name, T.FLOAT, [None] * 3) for name in dict.fromkeys(inputs) if name]
    model = h.make_model(
        h.make_graph([node], "g", declared, [h.make_tensor_value_info("y", T.FLOAT, None)]),
        opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)],
    )
    with pytest.raises(asc.UnsupportedError, match=what):
        asc.compile(model, mode="host", threads=1)


def test_a_number_of_heads_that_makes_no_sense_is_refused():
    value = h.make_tensor_value_info("q", T.FLOAT, [1, 2, 8])
    for op, attributes in (("MultiHeadAttention", {"num_heads": 0}), ("Attention", {"num_heads": -1})):
        node = h.make_node(op, ["q", "q", "q"], ["y"], domain="com.microsoft", **attributes)
        graph = h.make_graph([node], "g", [value], [h.make_tensor_value_info("y", T.FLOAT, None)])
        imports = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
        with pytest.raises(asc.GraphError, match="num_heads"):
            asc.compile(onnx.helper.make_model(graph, opset_imports=imports), mode="host", threads=1)
