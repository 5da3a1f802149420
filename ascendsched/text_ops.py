"""Operators on tensors of strings, with the newest ONNX semantics; a tensor of strings is an array of Python text."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from ascendsched import text_movement
from ascendsched.arrays import numpy_dtype
from ascendsched.element_types import ONNX_TYPES
from ascendsched.text_movement import Attributes, Function, check_count

Array = np.ndarray[Any, Any]

_TEXT = 8  # TensorProto.STRING
_NAMES = {number: name for name, number in ONNX_TYPES.items()}
_NAN = object()  # as a key, equal to itself


def _texts(values: list[str], shape: tuple[int, ...]) -> Array:
    """An array of objects, which NumPy would else make of strings of one width."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def _equal(inputs: list[Any], attributes: Attributes) -> list[Any]:
    check_count(np.broadcast_shapes(*(each.shape for each in inputs)))
    return [np.asarray(np.equal(inputs[0], inputs[1])).astype(bool)]


def _string_concat(inputs: list[Any], attributes: Attributes) -> list[Any]:
    check_count(np.broadcast_shapes(*(each.shape for each in inputs)))
    return [np.asarray(np.add(inputs[0], inputs[1]), object)]


def _string_split(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, limit = inputs[0], attributes.get("maxsplit")
    delimiter = attributes.get("delimiter") or None
    # No text has no pieces, as in onnxruntime; the standard leaves it open.
    pieces = [text.split(delimiter, -1 if limit is None else limit) if text else [] for text in data.ravel().tolist()]
    width = max(map(len, pieces), default=0)
    check_count([*data.shape, width])
    padded = [text for each in pieces for text in [*each, *[""] * (width - len(each))]]
    return [
        _texts(padded, (*data.shape, width)),
        np.array([len(each) for each in pieces], np.int64).reshape(data.shape),
    ]


def _string_normalizer(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data = inputs[0]
    if data.ndim not in (1, 2) or (data.ndim == 2 and data.shape[0] != 1):
        raise ValueError(f"strings of shape {list(data.shape)}; expected [C] or [1, C]")
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes.get(attributes.get("case_change_action", "NONE"))
    if change is None:
        raise ValueError(f"case_change_action {attributes['case_change_action']!r}; expected NONE, LOWER or UPPER")
    fold: Callable[[str], str] = str if attributes.get("is_case_sensitive", 0) else str.lower
    stops = {fold(word) for word in attributes.get("stopwords", [])}
    kept = [change(text) for text in data.ravel().tolist() if fold(text) not in stops] or [""]
    return [_texts(kept, (len(kept),) if data.ndim == 1 else (1, len(kept)))]


@lru_cache(maxsize=64)
def _pattern(text: str) -> Any:
    try:
        import re2
    except ImportError:
        raise ValueError("its patterns are in the syntax of RE2; pip install google-re2") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise ValueError(f"pattern {text!r}: {error}") from None


def _regex_full_match(inputs: list[Any], attributes: Attributes) -> list[Any]:
    pattern = _pattern(attributes.get("pattern", ""))
    matches = [pattern.fullmatch(text) is not None for text in inputs[0].ravel().tolist()]
    return [np.array(matches, bool).reshape(inputs[0].shape)]


def _unique(inputs: list[Any], attributes: Attributes) -> list[Any]:
    if "axis" in attributes:
        raise ValueError("an axis is not supported for strings; flatten them before")
    values, firsts, inverse, counts = np.unique(inputs[0].ravel(), True, True, True)
    if not attributes.get("sorted", 1):
        order = np.argsort(firsts)
        rank = np.argsort(order)
        values, firsts, counts, inverse = values[order], firsts[order], counts[order], rank[inverse.ravel()]
    return [values, firsts.astype(np.int64), inverse.ravel().astype(np.int64), counts.astype(np.int64)]


# Numbers as text and back


def _cast(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data, to = inputs[0], attributes["to"]
    values = data.ravel().tolist()
    if data.dtype.kind == "O":
        if to == _TEXT:
            return [data]
        return [np.array([_number(text, to) for text in values], numpy_dtype(_NAMES[to])).reshape(data.shape)]
    digits = 17 if data.dtype.itemsize == 8 else 8
    return [_texts([_text(value, digits) for value in values], data.shape)]


def _number(text: str, to: int) -> float | int | bool:
    kind = numpy_dtype(_NAMES[to]).kind
    if kind == "f":
        return float(text)
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _text(value: Any, digits: int) -> str:
    """As C prints it: that is what other runtimes give."""
    if not isinstance(value, float):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    return f"{value:.{digits}g}" if math.isfinite(value) else "INF" if value > 0 else "-INF"


# Tables


def _label_encoder(inputs: list[Any], attributes: Attributes) -> list[Any]:
    data = inputs[0]
    keys, values, default = _table(attributes, data.dtype.kind == "O")
    table = {_key(key): value for key, value in zip(keys, values, strict=True)}
    found = [table.get(_key(key), default) for key in data.ravel().tolist()]
    if isinstance(default, str):
        return [_texts(found, data.shape)]
    wanted = attributes.get("values_tensor")
    dtype = wanted.dtype if wanted is not None else np.int64 if isinstance(default, int) else np.float32
    return [np.array(found, dtype).reshape(data.shape)]


def _table(attributes: Attributes, is_text: bool) -> tuple[list[Any], list[Any], Any]:
    for names in ("classes_strings", "cats_strings"):
        if names in attributes:
            words = attributes[names]
            numbers = attributes.get("cats_int64s", list(range(len(words))))
            if is_text:
                return words, numbers, attributes.get("default_int64", -1)
            return numbers, words, attributes.get("default_string", "_Unused")
    found: list[Any] = []
    for side in ("keys", "values"):
        kinds = [kind for kind in ("strings", "int64s", "floats", "tensor") if f"{side}_{kind}" in attributes]
        if len(kinds) != 1:
            raise ValueError(f"{side} in {len(kinds)} attributes instead of one")
        listed = attributes[f"{side}_{kinds[0]}"]
        found.append(listed.ravel().tolist() if kinds[0] == "tensor" else listed)
    defaults = {"strings": "_Unused", "int64s": -1, "floats": -0.0}
    if kinds[0] != "tensor":
        name = {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}[kinds[0]]
        return found[0], found[1], attributes.get(name, defaults[kinds[0]])
    values = attributes["values_tensor"]
    given = attributes.get("default_tensor")
    unset = "_Unused" if values.dtype.kind == "O" else -1 if values.dtype.kind in "iu" else -0.0
    return found[0], found[1], given.ravel().tolist()[0] if given is not None else unset


def _key(key: Any) -> Hashable:
    return _NAN if isinstance(key, float) and math.isnan(key) else key


OPERATORS: dict[str, Function] = {
    "Cast": _cast,
    "Equal": _equal,
    "RegexFullMatch": _regex_full_match,
    "StringConcat": _string_concat,
    "StringNormalizer": _string_normalizer,
    "StringSplit": _string_split,
    "Unique": _unique,
    "ai.onnx.ml::CategoryMapper": _label_encoder,
    "ai.onnx.ml::LabelEncoder": _label_encoder,
    **text_movement.OPERATORS,
}
