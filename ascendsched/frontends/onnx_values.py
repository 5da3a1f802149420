"""Nodes on strings, sequences and optionals as host calls, and the kinds of what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ascendsched.element_types import ONNX_TYPES
from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef, Tensor
from ascendsched.frontends.onnx_tensors import TEXT
from ascendsched.packed import (
    DTYPE,
    STRING,
    UNKNOWN,
    inner,
    is_kind,
    is_optional,
    is_sequence,
    joined,
    optional_of,
    sequence_of,
)
from ascendsched.value_ops import NAME, OPERATORS, payload_of

_NAMES = {number: name for name, number in ONNX_TYPES.items()}
# What they give whatever they take: tensors, but for those of strings. Other operators give what they take.
_RESULTS = {
    "Equal": ("bool",),
    "OptionalHasElement": ("bool",),
    "RegexFullMatch": ("bool",),
    "SequenceLength": ("int64",),
    "Shape": ("int64",),
    "Size": ("int64",),
    "StringSplit": (STRING, "int64"),
    "Unique": (STRING, "int64", "int64", "int64"),
}
_SEQUENCE_OPS = frozenset({"SequenceErase", "SequenceInsert"})
_TAKES_SEQUENCE = frozenset({"ConcatFromSequence", "SequenceAt", "SequenceLength", *_SEQUENCE_OPS})
# Those that are host calls even where every input is a tensor of numbers.
_ALWAYS = frozenset(
    {
        "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "RegexFullMatch", "SequenceAt",
        "SequenceConstruct", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence", "StringConcat",
        "StringNormalizer", "StringSplit",
        "ai.onnx.ml::CategoryMapper", "ai.onnx.ml::LabelEncoder",
    }
)  # fmt: skip
VALUE_OPS = frozenset(OPERATORS)


def is_value_node(node: NodeDef, kinds: list[str | None]) -> bool:
    """Return whether a node whose inputs have these kinds is one that a host call computes."""
    if node.op in _ALWAYS or (node.op == "Cast" and node.attributes.get("to") == TEXT):
        return True
    return any(kinds) and node.op in VALUE_OPS


def value_call(node: NodeDef, kinds: list[str | None], ctx: AdapterContext) -> NodeDef:
    """Return the host call that computes a node, and note the kinds of its results.

    Raises
    ------
    GraphError
        Where an input is not of the kind that the operator takes.
    UnsupportedError
        Where the element type of a result is not known.
    """
    _check_inputs(node, kinds)
    given = _types(node, kinds, ctx)
    if len(node.outputs) > len(given):
        raise GraphError(f"{node.where()}: {len(node.outputs)} outputs of {len(given)}; the file is damaged")
    types = [_known(node, dtype, output, ctx) for dtype, output in zip(given, node.outputs, strict=False)]
    for output, dtype in zip(node.outputs, types, strict=True):
        if output and is_kind(dtype):
            ctx.set_kind(output, dtype)
    plain = {key: value.array if isinstance(value, Tensor) else value for key, value in node.attributes.items()}
    for key, value in plain.items():
        if not isinstance(value, int | float | str | list | np.ndarray):
            raise GraphError(f"{node.where()}: attribute '{key}' is a {type(value).__name__}; the file is damaged")
    attributes: dict[str, Any] = {
        "callable": NAME,
        "operator": node.op,
        "payload": payload_of(node.op, plain, [kind is not None for kind in kinds], types),
        "output_types": [ONNX_TYPES[DTYPE if is_kind(dtype) else dtype] for dtype in types],
    }
    return NodeDef("HostCall", node.inputs, node.outputs, attributes, node.name)


def _check_inputs(node: NodeDef, kinds: list[str | None]) -> None:
    wrong = None
    if node.op in _TAKES_SEQUENCE:
        wrong = None if kinds and kinds[0] is not None and is_sequence(kinds[0]) else "a sequence"
    elif node.op in ("OptionalGetElement", "OptionalHasElement"):
        wrong = None if kinds and kinds[0] is not None and is_optional(kinds[0]) else "an optional"
    elif node.op != "Optional" and any(kind not in (None, STRING) for kind in kinds):
        wrong = "tensors"
    elif node.op in ("StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "Equal", "Concat", "Where"):
        taken = kinds[1:] if node.op == "Where" else kinds
        wrong = None if all(kind == STRING for kind in taken) else "strings"
    elif node.op not in _ALWAYS and node.op != "Cast":
        wrong = None if kinds[0] == STRING and not any(kinds[1:]) else "strings first, then numbers"
    if node.op == "SequenceInsert" and wrong is None and not _fits(kinds):
        wrong = f"an element of {kinds[0]}"
    if wrong:
        found = [kind or "tensor" for kind in kinds]
        raise GraphError(f"{node.where()}: takes {wrong}, got {found}; the file is damaged")


def _fits(kinds: list[str | None]) -> bool:
    element = inner(kinds[0] or "")
    return element == UNKNOWN or (element == STRING) == (kinds[1] == STRING)


def _types(node: NodeDef, kinds: list[str | None], ctx: AdapterContext) -> list[str]:
    """Return what the results are, by what the inputs are; `UNKNOWN` for an element type."""
    first = kinds[0] if kinds else None
    if node.op in _RESULTS:
        return list(_RESULTS[node.op])
    if node.op == "Cast":
        to = node.attributes.get("to", 0)
        if to != TEXT and to not in _NAMES:
            raise UnsupportedError(f"{node.where()}: strings are not converted to element type {to}; use another type")
        return [STRING if to == TEXT else _NAMES[to]]
    if node.op in ("SequenceAt", "ConcatFromSequence", "OptionalGetElement"):
        return [inner(first or "")]
    if node.op == "SequenceConstruct":
        return [sequence_of(element_type(node.inputs, ctx))]
    if node.op == "SplitToSequence":
        return [sequence_of(element_type(node.inputs[:1], ctx))]
    if node.op == "SequenceInsert":
        made = sequence_of(element_type(node.inputs[1:2], ctx))
        return [joined(first or made, made) or first or made]
    if node.op == "SequenceErase":
        return [first or ""]
    if node.op == "Optional":
        declared = node.attributes.pop("type", None)
        held = first or (element_type(node.inputs, ctx) if node.inputs else None) or declared
        return [optional_of(held or UNKNOWN)]
    if node.op.startswith("ai.onnx.ml::"):
        return [_label_type(node, first)]
    return [STRING] * len(node.outputs)


def input_kind(name: str, declared: str | None, carried: Sequence[str | None], index: int, is_body: bool) -> str | None:
    """Return the kind of a graph's input, None for a tensor.

    Parameters
    ----------
    name, index
        The input's.
    declared
        What the model says that it is, None where it does not.
    carried
        What the node brings to its body's inputs.
    is_body
        Whether the graph is a body.

    Raises
    ------
    GraphError
        Where the input of a body is another kind of value than what the node brings.
    UnsupportedError
        For what callers could not tell from bytes.
    """
    kind = declared if is_kind(declared) else None
    if not is_body:
        if kind == optional_of(DTYPE):
            raise UnsupportedError(f"[onnx] input '{name}' is {kind}, which is refused; make it {optional_of('int32')}")
        return kind
    brought = carried[index] if index < len(carried) else None
    if kind is None and brought is None:
        return None
    both = joined(kind or brought or "", brought or "") if brought and declared in (None, kind) else None
    if both is None:
        raise GraphError(
            f"[onnx] a body's input '{name}' is {declared or 'untyped'}, its node brings {brought or 'a tensor'}; "
            "the file is damaged"
        )
    return both


def refuse_kinds(node: NodeDef, ctx: AdapterContext) -> None:
    """Refuse a node of the core that reads what is no tensor of numbers.

    Raises
    ------
    UnsupportedError
        With the node and the value.
    """
    for name in node.inputs:
        if name and (kind := ctx.kind(name)):
            printable = name.partition("\n")[0]
            raise UnsupportedError(
                f"{node.where()}: reads '{printable}', a {kind}, which is not supported there; "
                "do this step outside the model"
            )
    if any(isinstance(value, Tensor) and value.dtype == STRING for value in node.attributes.values()):
        raise UnsupportedError(f"{node.where()}: strings are not supported there; do this step outside the model")


def element_type(names: list[str], ctx: AdapterContext) -> str:
    """Return the element type of tensors that have one in common, `UNKNOWN` where nothing tells it."""
    for name in names:
        if ctx.kind(name) == STRING:
            return STRING
        found = ctx.type_of(name).dtype
        if found is not None:
            return found
    return UNKNOWN


def _label_type(node: NodeDef, kind: str | None) -> str:
    attributes = node.attributes
    if "classes_strings" in attributes or "cats_strings" in attributes:
        return "int64" if kind == STRING else STRING
    table = attributes.get("values_tensor")
    if isinstance(table, Tensor):
        return table.dtype
    for name, dtype in (("strings", STRING), ("int64s", "int64"), ("floats", "float32")):
        if f"values_{name}" in attributes:
            return dtype
    raise GraphError(f"{node.where()}: has attributes {sorted(attributes)}, values are not among them")


def _known(node: NodeDef, dtype: str, output: str, ctx: AdapterContext) -> str:
    if dtype != UNKNOWN or not output:
        return dtype if dtype != UNKNOWN else DTYPE
    found = ctx.type_of(output).dtype
    if found is None:
        raise UnsupportedError(f"{node.where()}: the element type of '{output}' is not known; declare it in the model")
    return found
