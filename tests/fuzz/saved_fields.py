"""Where a saved file's structure has its numbers: as the reader walks it, so that one of them can be changed."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

NO_CONSTANT = 0xFFFFFFFF


class Field(NamedTuple):
    """A number of the structure."""

    at: int
    form: str  # of `struct`
    kind: str  # count, id, type, dim, constant, offset, flag, attribute or number


class _Walker:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.fields: list[Field] = []
        self.texts: list[tuple[int, int]] = []

    def number(self, form: str, kind: str) -> Any:
        self.fields.append(Field(self.at, form, kind))
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return value

    def text(self) -> None:
        size = self.number("I", "count")
        self.texts.append((self.at, size))
        self.at += size

    def numbers(self, form: str, kind: str) -> None:
        for _ in range(self.number("I", "count")):
            self.number(form, kind)

    def run(self) -> None:
        for _ in range(self.number("I", "count")):
            self.number("B", "type")
            for _ in range(self.number("B", "count")):
                self.number("q", "dim")
            self.number("Q", "offset")
        self.graph()

    def graph(self) -> None:
        self.text()
        self.number("B", "flag")
        self.number("B", "flag")
        for _ in range(self.number("I", "count")):
            self.value()
        self.numbers("i", "id")
        self.numbers("i", "id")
        for _ in range(self.number("I", "count")):
            self.node()
        for _ in range(self.number("I", "count")):
            self.number("I", "id")
            self.number("I", "count")
            self.node()

    def value(self) -> None:
        self.text()
        self.number("B", "type")
        self.number("B", "flag")
        for _ in range(self.number("I", "count")):
            self.number("q", "dim")
            self.text()
        self.number("I", "constant")

    def node(self) -> None:
        self.text()
        self.text()
        self.numbers("i", "id")
        self.numbers("i", "id")
        for _ in range(self.number("I", "count")):
            self.text()
            self.attribute(self.number("B", "attribute"))

    def attribute(self, kind: int) -> None:
        if kind == 7:
            self.graph()
        elif kind == 6:
            self.number("I", "constant")
        elif kind == 5:
            for _ in range(self.number("I", "count")):
                self.text()
        elif kind in (3, 4):
            self.numbers("q" if kind == 3 else "d", "number")
        elif kind == 2:
            self.text()
        else:
            self.number("q" if kind == 0 else "d", "number")


def fields_of(structure: bytes) -> tuple[list[Field], list[tuple[int, int]]]:
    """The numbers of a structure that `save` wrote, and where its texts are: (begin, bytes)."""
    walker = _Walker(structure)
    walker.run()
    if walker.at != len(structure):
        raise ValueError(f"the structure has {len(structure)} bytes, {walker.at} were understood; adapt this reader")
    return walker.fields, walker.texts
