"""What callers are told of an input or output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TensorInfo:
    """What an input or output is.

    Strings are arrays of text, sequences lists of arrays, and an absent optional is None.

    Attributes
    ----------
    name : str
        Its name.
    dtype : str
        Element type as NumPy spells it, or "bfloat16"; "string", "sequence(float32)", "optional(float32)" and the like
        for what is no tensor of numbers.
    shape : tuple, optional
        Dimensions: an int, a str (a symbol: equal symbols are equal sizes) or None (unknown). None: of unknown rank, or
        no tensor of numbers.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


def info_of(kinds: Mapping[str, str], name: str, dtype: str, shape: tuple[int | str | None, ...] | None) -> TensorInfo:
    """Return what is told of a value of the core; `kinds` has those that are packed there."""
    return TensorInfo(name, kinds[name], None) if name in kinds else TensorInfo(name, dtype, shape)
