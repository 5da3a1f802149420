"""Large initializers of an ONNX file, left where they lie while protobuf reads the rest.

Protobuf copies every byte field twice on its way into Python. A file that is mostly weights is read several times
faster when the weights are cut out before; each leaves a ticket in its place, by which `Weights.find` knows it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

# Field numbers of onnx.proto: ModelProto.graph, GraphProto.initializer, TensorProto.raw_data.
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_BYTES_FIELD = 2  # wire type of messages, strings and byte fields
_CUT_BYTES = 1 << 14  # below, copying costs less than cutting


class Weights:
    """Contents that were cut out of a model, by ticket."""

    def __init__(self) -> None:
        self._secret = os.urandom(16)  # no file can hold a ticket of its own
        self._cut: list[memoryview] = []

    def add(self, contents: memoryview) -> bytes:
        """Keep `contents` and return the ticket that stands for them."""
        self._cut.append(contents)
        return self._secret + (len(self._cut) - 1).to_bytes(4, "little")

    def find(self, raw: bytes) -> bytes | memoryview:
        """Return what a ticket stands for; other bytes as they are."""
        if len(raw) != 20 or raw[:16] != self._secret:
            return raw
        return self._cut[int.from_bytes(raw[16:], "little")]


class _Field(NamedTuple):
    number: int
    wire_type: int
    start: int  # of the tag
    payload: int
    end: int


class _DamagedError(Exception):
    """The bytes are no protobuf message; protobuf itself says so best."""


def cut(data: memoryview, weights: Weights) -> bytes | memoryview:
    """Return a serialized ModelProto without its large initializers, which `weights` takes.

    Anything unusual, damage included, comes back as it is.
    """
    try:
        graphs = [field for field in _fields(data, 0, len(data)) if field.number == _GRAPH]
        if len(graphs) != 1 or graphs[0].wire_type != _BYTES_FIELD:
            return data
        graph = graphs[0]
        pieces = _cut_graph(data, graph, weights)
    except _DamagedError:
        return data
    return b"".join([data[: graph.start], *_message(_GRAPH, pieces), data[graph.end :]])


def _cut_graph(data: memoryview, graph: _Field, weights: Weights) -> list[bytes | memoryview]:
    pieces: list[bytes | memoryview] = []
    copied = graph.payload
    for field in _fields(data, graph.payload, graph.end):
        if field.number != _INITIALIZER or field.wire_type != _BYTES_FIELD or field.end - field.start < _CUT_BYTES:
            continue
        raw = [inner for inner in _fields(data, field.payload, field.end) if inner.number == _RAW_DATA]
        if len(raw) != 1 or raw[0].wire_type != _BYTES_FIELD or raw[0].end - raw[0].payload < _CUT_BYTES:
            continue
        ticket = weights.add(data[raw[0].payload : raw[0].end])
        tensor = [data[field.payload : raw[0].start], *_message(_RAW_DATA, [ticket]), data[raw[0].end : field.end]]
        pieces += [data[copied : field.start], *_message(_INITIALIZER, tensor)]
        copied = field.end
    pieces.append(data[copied : graph.end])
    return pieces


def _message(number: int, pieces: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Return a byte field: tag, length, contents."""
    return [bytes([number << 3 | _BYTES_FIELD]), _encoded(sum(map(len, pieces))), *pieces]


def _encoded(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _fields(data: memoryview, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        wire_type = tag & 7
        payload = at
        if wire_type == _BYTES_FIELD:
            size, payload = _varint(data, at, end)
            at = payload + size
        elif wire_type == 0:
            _, at = _varint(data, at, end)
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            raise _DamagedError
        if at > end:
            raise _DamagedError
        yield _Field(tag >> 3, wire_type, start, payload, at)


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _DamagedError
