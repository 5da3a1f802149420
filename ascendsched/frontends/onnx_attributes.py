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


# AttributeProto.AttributeType, whose own constants are slow to read.
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = range(1, 9)
_TYPE_PROTO = 13


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
    kind = attribute.type
    if attribute.ref_attr_name:
        raise GraphError(
            f"{where}: attribute '{attribute.name}' refers to '{attribute.ref_attr_name}' outside a function; "
            "the file is damaged"
        )
    if kind == _INT:
        return attribute.i
    if kind == _FLOAT:
        return attribute.f
    if kind == _INTS:
        return list(attribute.ints)
    if kind == _FLOATS:
        return list(attribute.floats)
    if kind == _STRING:
        return _text(attribute.s, attribute.name, where)
    if kind == _STRINGS:
        return [_text(text, attribute.name, where) for text in attribute.strings]
    if kind == _TENSOR:
        return reader.read(attribute.t, f"{where.removeprefix('[onnx] ')}, attribute '{attribute.name}'")
    if kind == _GRAPH:
        return attribute.g
    if kind == _TYPE_PROTO:
        return type_name(attribute.tp, f"{where.removeprefix('[onnx] ')}, attribute '{attribute.name}'")
    what = type(attribute).AttributeType.Name(kind).lower()
    raise UnsupportedError(f"{where}: attribute '{attribute.name}' of kind {what} is not supported; export without it")


def _text(raw: bytes, name: str, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise GraphError(f"{where}: attribute '{name}' is not UTF-8 text: {raw[:20]!r}; the file is damaged") from None
