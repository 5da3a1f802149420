"""What callers are told of an input or output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TensorInfo:
    """Name, element type and shape of an input or output; in `shape` a str is a symbol, None an unknown dim.

    `dtype` is "string", "sequence(float32)", "optional(float32)" and the like for what is no tensor of numbers; its
    shape is None. Strings are arrays of text, sequences lists of arrays, and an absent optional is None.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


def info_of(kinds: Mapping[str, str], name: str, dtype: str, shape: tuple[int | str | None, ...] | None) -> TensorInfo:
    """Return what is told of a value of the core; `kinds` has those that are packed there."""
    return TensorInfo(name, kinds[name], None) if name in kinds else TensorInfo(name, dtype, shape)
