"""What a file from somebody else may hold instead of what it should: for every reader of files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

ODD_VALUES = ["NaN", "Infinity", "-Infinity", "1e308", "1e999", "-1e308", "1e-320", "9" * 30, "9" * 5000, "-1", "0"]
ODD_VALUES += ["null", "true", '""', '"x"', "[]", "{}", "[[1]]", '{"a": 1}', '"\\ud800"', '"\\u0000"', "1.5", '"1e400"']


def odd_bytes() -> dict[str, bytes]:
    """Contents that are nobody's file, by name."""
    return {
        "nothing": b"",
        "spaces": b" \n\t\r\n",
        "null bytes": b"\0" * 4096,
        "no text": bytes(range(256)) * 16,
        "mark alone": b"\xef\xbb\xbf",
        "mark": b"\xef\xbb\xbf{}",
        "utf-16": '{"a": [1, 2]}\n'.encode("utf-16"),
        "utf-16 lengths": "12\n13\n".encode("utf-16"),
        "utf-32": "[1]".encode("utf-32"),
        "deep list": b"[" * 200_000,
        "deep object": b'{"a":' * 200_000,
        "deep and closed": b"[" * 200_000 + b"]" * 200_000,
        "number": b"1" * 5000,
        "huge exponent": b"1e999999999",
        "true": b"true",
        "null": b"null",
        "list": b"[1, 2, 3]",
        "object": b"{}",
        "quote": b'"',
        "open quote": b'a,b\n"' + b"x" * 200_000,
        "long line": b"x" * (1 << 20),
        "long line of commas": b"," * (1 << 20),
        "gzip": gzip.compress(b"1\n2\n"),
        "bomb": gzip.compress(b"\0" * (32 << 20)),
        "cut gzip": gzip.compress(b"1\n2\n")[:-9],
        "zip": b"PK\x03\x04" + bytes(60),
        "pickle": b"\x80\x04\x95",
        "array": b"\x93NUMPY\x01\x00",
        "database": b"SQLite format 3\0" + bytes(200),
    }


def changed_json(text: str) -> Iterator[str]:
    """A JSON document with each of its values replaced in turn, left out, and given twice."""
    document = json.loads(text)

    def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
        if path:
            yield path
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in items:
            yield from places(each, (*path, key))

    def rebuilt(value: object, path: tuple[object, ...], odd: str | None) -> str:
        if not path:
            return odd if odd is not None else json.dumps(value)
        if isinstance(value, dict):
            parts = [
                (key, rebuilt(each, path[1:], odd) if key == path[0] else json.dumps(each))
                for key, each in value.items()
                if odd is not None or key != path[0] or len(path) > 1
            ]
            if odd == "twice" and len(path) == 1:
                parts = [(key, json.dumps(each)) for key, each in value.items()] + [(str(path[0]), "1")]
            return "{" + ", ".join(f"{json.dumps(key)}: {part}" for key, part in parts) + "}"
        assert isinstance(value, list)
        each_part = [rebuilt(each, path[1:], odd) if i == path[0] else json.dumps(each) for i, each in enumerate(value)]
        if odd is None and len(path) == 1:
            del each_part[int(str(path[0]))]
        return "[" + ", ".join(each_part) + "]"

    for path in places(document):
        for odd in [*ODD_VALUES, None, *(["twice"] if isinstance(path[-1], str) else [])]:
            yield rebuilt(document, path, odd)


def changed_table(text: str) -> Iterator[str]:
    """A table with each of its fields replaced in turn, rows cut and doubled."""
    rows = [line.split(",") for line in text.splitlines()]
    odd = [
        "",
        " ",
        "nan",
        "inf",
        "1e308",
        "1e999",
        "-1",
        "0",
        "9" * 30,
        "9" * 5000,
        "x",
        "\0",
        '"',
        "1.5",
        "0x10",
        "\u0661",
    ]
    for i, row in enumerate(rows):
        for k in range(len(row)):
            for value in odd:
                changed = [*row[:k], value, *row[k + 1 :]]
                yield "\n".join(",".join(r) for r in [*rows[:i], changed, *rows[i + 1 :]])
        yield "\n".join(",".join(r) for r in [*rows[:i], row[:-1], *rows[i + 1 :]])
        yield "\n".join(",".join(r) for r in [*rows, row])
        yield "\n".join(",".join(r) for r in rows[:i])
