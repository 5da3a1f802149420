"""Seeded mutators of saved executables: of bytes, and of what they mean with the checksums made right again."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.mutate import REALS, number
from tests.fuzz.saved_fields import Field, fields_of
from tests.unit.saved_files import HEADER_BYTES, SIZES, seal

Sections = list[bytes]  # structure, description and constants
COUNTS = [0, 1, 2, 3, 255, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 2]
TEXTS = [b"", b"x", b"MatMul", b"If", b"body", b"\x00" * 8, b"\xff", "\u00e9".encode(), b"QuantizedConv", b"y" * 300]
JSON_VALUES: list[Any] = [None, True, False, 0, -1, 1, 7, 2**31, 2**63, 2**70, 1e308, float("nan"), float("inf")]
JSON_VALUES += ["", "x", "\x00", "\ud800", "cpu", "null", "sim", "sim:../x", "host", "..", "/", "ff", "f", [], {}]
JSON_VALUES += [[1] * 20, [[[[]]]], {"x": 1}, "optional(sequence(string))", "sequence(" * 500, [2**40], [0, 2**62]]


def sections(data: bytes) -> Sections:
    """The parts of a file."""
    parts, begin = [], HEADER_BYTES
    for size in SIZES.unpack_from(data, 16):
        parts.append(data[begin : begin + size])
        begin += size
    return parts


def joined(header: bytes, parts: Sections) -> bytes:
    """A file of these parts whose checksums are right, and whose constants are aligned."""
    structure, text, constants = parts
    text += b" " * (-(HEADER_BYTES + len(structure) + len(text)) % 64)
    data = bytearray(header + structure + text + constants)
    SIZES.pack_into(data, 16, len(structure), len(text), len(constants))
    seal(data)
    return bytes(data)


def damaged(r: random.Random, data: bytes, other: bytes) -> bytes:
    """Bytes that are no longer what was written, under the old checksums."""
    at, end = sorted((r.randrange(len(data)), r.randrange(len(data))))
    way = r.randrange(7)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + other[at:]
    if way == 2:
        return data[:at] + data[end:]
    if way == 3:
        return data + other[: r.choice([1, 8, 64, 4096])]
    if way == 4:
        parts = sections(data)
        i, k = r.sample(range(3), 2)
        parts[i], parts[k] = parts[k], parts[i]
        return data[:HEADER_BYTES] + b"".join(parts)
    changed = bytearray(data)
    if way == 5:
        changed[at:end] = bytes(end - at)
    else:
        for _ in range(r.choice([1, 1, 3, 20])):
            changed[r.randrange(len(changed))] ^= 1 << r.randrange(8)
    return bytes(changed)


def lengths(r: random.Random, data: bytes) -> bytes:
    """A header with other lengths or hashes, itself under the right checksum."""
    forged = bytearray(data)
    at = r.randrange(8, HEADER_BYTES - 8, 8)
    old = struct.unpack_from("<Q", data, at)[0]
    choices = [0, 1, old - 1, old + 1, old ^ 64, old + 64, 2**32, 2**63, 2**64 - 1, 2**64 - 64, len(data)]
    struct.pack_into("<Q", forged, at, r.choice(choices) % 2**64)
    from ascendsched import _core

    struct.pack_into("<Q", forged, HEADER_BYTES - 8, _core.bytes_hash(bytes(forged[: HEADER_BYTES - 8])))
    return bytes(forged)


def _value(r: random.Random, field: Field, fields: Sequence[Field], structure: bytes) -> Any:
    """Another value for a field: one that a field of its kind has elsewhere, a neighbour, or an odd one."""
    same = [f for f in fields if f.kind == field.kind and f.form == field.form]
    old = struct.unpack_from("<" + field.form, structure, field.at)[0]
    if field.form == "d":
        return r.choice([*REALS, old + 1, -old])
    way = r.random()
    if way < 0.4:
        return struct.unpack_from("<" + field.form, structure, r.choice(same).at)[0]
    if way < 0.7:
        return old + r.choice([-1, 1, 2, -2, 16, 64])
    return r.choice(COUNTS) if field.form == "I" else number(r)


def _fields(r: random.Random, parts: Sections) -> None:
    structure = bytearray(parts[0])
    fields, _ = fields_of(parts[0])
    for _ in range(r.choice([1, 1, 1, 2, 4])):
        kind = r.choice(sorted({f.kind for f in fields}))  # rare kinds as often as frequent ones
        field = r.choice([f for f in fields if f.kind == kind] if r.random() < 0.7 else fields)
        value = _value(r, field, fields, parts[0])
        if field.form != "d":
            bits = 8 * struct.calcsize(field.form)
            value %= 1 << bits
            if field.form in "iq" and value >> (bits - 1):
                value -= 1 << bits
        struct.pack_into("<" + field.form, structure, field.at, value)
    parts[0] = bytes(structure)


def _texts(r: random.Random, parts: Sections) -> None:
    _, texts = fields_of(parts[0])
    at, size = r.choice(texts)
    other, other_size = r.choice(texts)
    text = parts[0][other : other + other_size] if r.random() < 0.6 else r.choice(TEXTS)
    parts[0] = parts[0][: at - 4] + struct.pack("<I", len(text)) + text + parts[0][at + size :]


def _bytes(r: random.Random, parts: Sections) -> None:
    structure = bytearray(parts[0])
    for _ in range(r.choice([1, 2, 8])):
        structure[r.randrange(len(structure))] = r.randrange(256)
    parts[0] = bytes(structure)


def _pieces(r: random.Random, parts: Sections) -> None:
    """A piece of the structure left out, doubled or elsewhere."""
    s = parts[0]
    at, size, to = r.randrange(len(s)), r.choice([1, 4, 8, 30, 100]), r.randrange(len(s))
    piece = s[at : at + size]
    parts[0] = r.choice([s[:at] + s[at + size :], s[:to] + piece + s[to:], s[:to] + piece + s[to + size :], s[:at]])


def _constants(r: random.Random, parts: Sections) -> None:
    data = bytearray(parts[2])
    if len(data) < 8:
        return
    for _ in range(r.choice([1, 1, 3])):
        at = r.randrange(len(data) // 8) * 8
        choices = [number(r) % 2**64, r.getrandbits(64), r.randrange(256), struct.unpack("<Q", struct.pack("<d", 1))[0]]
        struct.pack_into("<Q", data, at, r.choice(choices))
    parts[2] = bytes(data)


def _constant_bytes(r: random.Random, parts: Sections) -> None:
    parts[2] = r.choice([parts[2][: r.randrange(len(parts[2]) + 1)], parts[2] + bytes(64), b"", parts[2] * 2])


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += _places(each, (*path, key))
    return found


def _description(r: random.Random, parts: Sections) -> None:
    meta = json.loads(parts[1])
    for _ in range(r.choice([1, 1, 2])):
        *path, key = r.choice([place for place in _places(meta) if place])
        target = meta
        for step in path:
            target = target[step]
        if r.random() < 0.2 and isinstance(target, dict):
            del target[key]
        elif r.random() < 0.5 and type(target[key]) is int:
            target[key] = number(r)
        else:
            target[key] = r.choice(JSON_VALUES)
    parts[1] = json.dumps(meta).encode()


def _description_bytes(r: random.Random, parts: Sections) -> None:
    text = parts[1]
    at = r.randrange(len(text))
    odd = [b"\xff", b"\x00", b"[" * 50_000, b'{"a":' * 50_000, b"1" * 5000, b"1e999", b"NaN", b'"', b"\xef\xbb\xbf"]
    parts[1] = r.choice([text[:at], text[:at] + r.choice(odd) + text[at:], b"", text.decode().encode("utf-16")])


_MUTATORS: list[tuple[int, Callable[[random.Random, Sections], None]]] = [
    (8, _fields),
    (3, _constants),
    (2, _texts),
    (2, _bytes),
    (2, _pieces),
    (3, _description),
    (1, _description_bytes),
    (1, _constant_bytes),
]


def forged(r: random.Random, data: bytes, other: bytes) -> bytes:
    """A file whose parts do not mean what they did, under right checksums."""
    parts = sections(data)
    way = r.random()
    if way < 0.1:
        for i, part in enumerate(sections(other)):
            if r.random() < 0.5:
                parts[i] = part
    elif way < 0.13:
        r.shuffle(parts)
    else:
        for _ in range(r.choice([1, 1, 1, 2])):
            mutators = [m for weight, m in _MUTATORS for _ in range(weight)]
            try:
                r.choice(mutators)(r, parts)
            except (struct.error, ValueError, IndexError, TypeError, RecursionError):  # two that do not go together
                break
    return joined(data[:HEADER_BYTES], parts)
