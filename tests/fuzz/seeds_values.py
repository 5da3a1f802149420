"""Seeds on strings, sequences and optionals."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

from tests.unit import onnx_models

info, node, body = onnx_models.info, h.make_node, onnx_models.body
NUMBERS = {
    "cut": [5, -1], "ends": [-9, -9], "axes": [0, 1], "steps": [-1, 2], "shape": [0, -1, 1], "both": [2, 2, 3],
    "pieces": [1, 2], "times": [2, 1], "places": [[2, -1]], "one": 1, "last": -1,
}  # fmt: skip


def sequence(name: str, dtype: int = T.FLOAT) -> onnx.ValueInfoProto:
    return h.make_tensor_sequence_value_info(name, dtype, None)


def optional(name: str) -> onnx.ValueInfoProto:
    return h.make_value_info(name, h.make_optional_type_proto(h.make_tensor_type_proto(T.FLOAT, ["n"])))


def build(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
) -> onnx.ModelProto:
    used = {name for each in nodes for name in each.input}
    constants = {name: np.array(value, np.int64) for name, value in NUMBERS.items() if name in used}
    model = onnx_models.model(nodes, inputs, outputs, constants, opset=21)
    model.graph.initializer.append(h.make_tensor("words", T.STRING, [3], [b"a", b"", "é".encode()]))
    model.opset_import.append(h.make_opsetid("ai.onnx.ml", 4))
    return model


def _text(op: str, *operands: str, outputs: int = 1, result: int = T.STRING, **attributes: object) -> onnx.ModelProto:
    domain = "ai.onnx.ml" if op == "LabelEncoder" else ""
    names = [f"y{k}" for k in range(outputs)]
    made = node(op, ["x", *operands], names, domain=domain, **attributes)
    types = [result, *[T.INT64 if op != "Split" else result] * (outputs - 1)]
    return build([made], [info("x", T.STRING, ["n", 3])], [info(*pair) for pair in zip(names, types, strict=True)])


def _texts() -> list[onnx.ModelProto]:
    normalizer = node("StringNormalizer", ["v"], ["y"], case_change_action="LOWER", stopwords=["a"])
    number = node("Cast", ["f"], ["y"], to=T.STRING)
    return [
        _text("Concat", "x", axis=0),
        _text("StringConcat", "words"),
        _text("StringSplit", outputs=2, delimiter="a", maxsplit=2),
        _text("RegexFullMatch", result=T.BOOL, pattern="(a|b)+"),
        _text("Equal", "words", result=T.BOOL),
        _text("Gather", "places", axis=1),
        _text("GatherND", "places"),
        _text("GatherElements", "places", axis=1),
        _text("Slice", "cut", "ends", "axes", "steps"),
        _text("Split", "pieces", outputs=2, axis=1),
        _text("Expand", "both"),
        _text("Tile", "times"),
        _text("Reshape", "shape"),
        _text("Unsqueeze", "axes"),
        _text("Transpose", perm=[1, 0]),
        _text("Shape", result=T.INT64),
        _text("Unique", outputs=4),
        _text("LabelEncoder", result=T.INT64, keys_strings=["a", ""], values_int64s=[1, 2]),
        _text("Cast", result=T.FLOAT, to=T.FLOAT),
        build([number], [info("f", T.FLOAT, ["n"])], [info("y", T.STRING)]),
        build([normalizer], [info("v", T.STRING, ["n"])], [info("y", T.STRING)]),
    ]


def _collecting() -> onnx.ModelProto:
    """A loop around an If that collects rows in a sequence."""
    steps = [
        node("Gather", ["x", "i"], ["row"]),
        node("ReduceSum", ["row"], ["sum"], keepdims=0),
        node("Cast", ["sum"], ["is_kept"], to=T.BOOL),
        node(
            "If", ["is_kept"], ["s2"],
            then_branch=body([node("SequenceInsert", ["s1", "row"], ["t"])], [], [sequence("t")]),
            else_branch=body([node("Identity", ["s1"], ["e"])], [], [sequence("e")]),
        ),
        node("Identity", ["c"], ["c2"]),
    ]  # fmt: skip
    inner = body(
        steps,
        [info("i", T.INT64, []), info("c", T.BOOL, []), sequence("s1")],
        [info("c2", T.BOOL, []), sequence("s2")],
    )
    nodes = [
        node("Shape", ["x"], ["count"], end=1),
        node("Squeeze", ["count"], ["n"]),
        node("SequenceEmpty", [], ["s"]),
        node("Loop", ["n", "", "s"], ["kept"], body=inner),
        node("SequenceAt", ["kept", "last"], ["y"]),
        node("SequenceErase", ["kept", "last"], ["rest"]),
        node("ConcatFromSequence", ["rest"], ["z"], axis=0),
    ]
    return build(nodes, [info("x", T.FLOAT, ["n", 3])], [sequence("kept"), info("y"), info("z")])


def value_models() -> list[onnx.ModelProto]:
    """Every seed of this kind."""
    at = info("at", T.INT64, [])
    mapped = body([node("Neg", ["e"], ["m"])], [info("e")], [info("m")])
    other = body([node("Identity", ["f"], ["b"])], [], [info("b")])
    branch = node(
        "If", ["h"], ["y"],
        then_branch=body([node("OptionalGetElement", ["x"], ["t"])], [], [info("t")]), else_branch=other,
    )  # fmt: skip
    split = [node("SplitToSequence", ["x", "sizes"], ["s"]), node("SequenceAt", ["s", "at"], ["y"])]
    insert = [node("SequenceInsert", ["s", "x", "at"], ["t"]), node("SequenceLength", ["t"], ["n"])]
    known = [node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceAt", ["s", "one"], ["y"])]
    floats = info("x", T.FLOAT, ["n", 2])
    return [
        *_texts(),
        _collecting(),
        build(split, [floats, info("sizes", T.INT64, ["k"]), at], [info("y"), sequence("s")]),
        build(insert, [sequence("s"), floats, at], [sequence("t"), info("n", T.INT64, [])]),
        build(known, [floats], [info("y"), sequence("s")]),
        build([node("SequenceMap", ["s"], ["t"], body=mapped)], [sequence("s")], [sequence("t")]),
        build(
            [node("OptionalHasElement", ["x"], ["h"]), branch], [optional("x"), info("f", T.FLOAT, ["k"])], [info("y")]
        ),
        build([node("Optional", ["x"], ["y"])], [floats], [optional("y")]),
    ]
