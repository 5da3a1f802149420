"""Attributes of ONNX nodes as Python values, and the values of constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import Tensor, text
from ascendsched.frontends.onnx_tensors import TEXT, TensorReader
from ascendsched.frontends.onnx_types import type_name
from ascendsched.packed import STRING

if TYPE_CHECKING:
    import onnx


def attributes_of(node: onnx.NodeProto, reader: TensorReader, where: str) -> dict[str, Any]:
    """Return the attributes of a node: numbers, strings, lists of them, ``Tensor``, names of types; a body stays a
    GraphProto.

    Raises
    ------
    GraphError
        For references to function parameters outside a function, and for text that is not UTF-8.
    UnsupportedError
        For lists of tensors, graphs or types, and for sparse tensors.
    """
    return {text(attribute.name): _value(attribute, reader, where) for attribute in node.attribute}


def constant_of(source: onnx.TensorProto | onnx.NodeProto, reader: TensorReader) -> Tensor:
    """Return the value of an initializer or of a Constant node."""
    import onnx

    if isinstance(source, onnx.TensorProto):
        return reader.read(source, f"initializer '{source.name}'")
    where = f"[onnx] node '{source.name}' (Constant)"
    if len(source.attribute) != 1:
        raise GraphError(f"{where}: has {len(source.attribute)} values instead of one; the file is damaged")
    name = source.attribute[0].name
    value = _value(source.attribute[0], reader, where)
    if isinstance(value, Tensor):
        return value
    if name in ("value_float", "value_floats"):
        return Tensor(np.array(value, np.float32), "float32")
    if name in ("value_int", "value_ints"):
        return Tensor(np.array(value, np.int64), "int64")
    if name not in ("value_string", "value_strings"):
        raise UnsupportedError(f"{where}: attribute '{name}' is not supported; store the value as a tensor")
    words = value if isinstance(value, list) else [value]
    texts = np.empty(len(words), object)
    texts[:] = words
    return Tensor(texts if isinstance(value, list) else texts.reshape(()), STRING)


def is_text(source: onnx.TensorProto | onnx.NodeProto) -> bool:
    """Return whether an initializer or a Constant node holds strings, without reading it."""
    import onnx

    if isinstance(source, onnx.TensorProto):
        return source.data_type == TEXT
    return any(a.name in ("value_string", "value_strings") or a.t.data_type == TEXT for a in source.attribute)


def _value(attribute: onnx.AttributeProto, reader: TensorReader, where: str) -> Any:
    kinds = type(attribute)
    if attribute.ref_attr_name:
        raise GraphError(
            f"{where}: attribute '{attribute.name}' refers to '{attribute.ref_attr_name}' outside a function; "
            "the file is damaged"
        )
    if attribute.type == kinds.INT:
        return attribute.i
    if attribute.type == kinds.FLOAT:
        return attribute.f
    if attribute.type == kinds.INTS:
        return list(attribute.ints)
    if attribute.type == kinds.FLOATS:
        return list(attribute.floats)
    if attribute.type == kinds.STRING:
        return _text(attribute.s, attribute.name, where)
    if attribute.type == kinds.STRINGS:
        return [_text(text, attribute.name, where) for text in attribute.strings]
    if attribute.type == kinds.TENSOR:
        return reader.read(attribute.t, f"{where.removeprefix('[onnx] ')}, attribute '{attribute.name}'")
    if attribute.type == kinds.GRAPH:
        return attribute.g
    if attribute.type == kinds.TYPE_PROTO:
        return type_name(attribute.tp, f"{where.removeprefix('[onnx] ')}, attribute '{attribute.name}'")
    kind = kinds.AttributeType.Name(attribute.type).lower()
    raise UnsupportedError(f"{where}: attribute '{attribute.name}' of kind {kind} is not supported; export without it")


def _text(raw: bytes, name: str, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise GraphError(f"{where}: attribute '{name}' is not UTF-8 text: {raw[:20]!r}; the file is damaged") from None
