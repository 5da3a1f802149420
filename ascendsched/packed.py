"""Values that are no tensors of numbers: strings, sequences and optionals, packed into bytes.

The core knows tensors only. It carries such a value as a *packed value*, a vector of bytes that says what it holds, and
hands it to host calls; callers see strings, lists and None. What a value is, its *kind*, is text: "string",
"sequence(float32)", "optional(int64)", "optional(sequence(string))".
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from ascendsched.arrays import normalize, numpy_dtype, typed_results
from ascendsched.errors import AscendSchedError, GraphError

Array = np.ndarray[Any, Any]
Value = Array | list[Array] | None

STRING = "string"
UNKNOWN = "?"  # element type of a sequence of which nothing tells it
DTYPE = "uint8"  # of packed values in the core
_MAGIC = b"ascv"
_NONE, _TENSOR, _SEQUENCE = range(3)
_HEAD = struct.Struct("<4sBxxxQ")  # magic, form, number of tensors
_TENSOR_HEAD = struct.Struct("<12sIQ")  # element type, rank, bytes
_NAMES = (
    *("float32", "float64", "float16", "bfloat16", "bool", STRING),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)


_TYPE = "|".join((*_NAMES, r"\?"))
_KIND = re.compile(rf"string|sequence\((?:{_TYPE})\)|optional\((?:{_TYPE}|sequence\((?:{_TYPE})\))\)")


def is_known(kind: object) -> bool:
    """Return whether a text, from a file, is one of the kinds that there are."""
    return isinstance(kind, str) and _KIND.fullmatch(kind) is not None


def is_kind(name: str | None) -> bool:
    """Return whether a type's name is the kind of a packed value, not an element type of tensors in the core."""
    return name is not None and (name == STRING or name.endswith(")"))


def sequence_of(dtype: str) -> str:
    """Return the kind of sequences of tensors of an element type."""
    return f"sequence({dtype})"


def optional_of(kind: str) -> str:
    """Return the kind of optionals of a kind, or of tensors of an element type."""
    return f"optional({kind})"


def is_sequence(kind: str) -> bool:
    """Return whether values of a kind are sequences."""
    return kind.startswith("sequence(")


def is_optional(kind: str) -> bool:
    """Return whether values of a kind may be absent."""
    return kind.startswith("optional(")


def inner(kind: str) -> str:
    """Return what a sequence or an optional holds: a kind or an element type."""
    return kind[kind.index("(") + 1 : -1]


def joined(one: str, two: str) -> str | None:
    """Return the kind of a value that may be of one kind or of the other; None where they have nothing in common."""
    if one == two or UNKNOWN in (one, two):
        return two if one == UNKNOWN else one
    if is_optional(one) or is_optional(two):
        held = joined(inner(one) if is_optional(one) else one, inner(two) if is_optional(two) else two)
        return optional_of(held) if held else None
    if is_sequence(one) and is_sequence(two):
        element = joined(inner(one), inner(two))
        return sequence_of(element) if element else None
    return None


def pack(value: Value) -> Array:
    """Return a value as bytes; equal values give equal bytes."""
    if value is None:
        parts = [_HEAD.pack(_MAGIC, _NONE, 0)]
    elif isinstance(value, list):
        parts = [_HEAD.pack(_MAGIC, _SEQUENCE, len(value)), *(part for each in value for part in _tensor_parts(each))]
    else:
        parts = [_HEAD.pack(_MAGIC, _TENSOR, 1), *_tensor_parts(value)]
    return np.frombuffer(b"".join(parts), np.uint8)


def dtype_of(array: Array) -> str:
    """Return our name of an array's element type."""
    return STRING if array.dtype.kind in "OU" else array.dtype.name


def _tensor_parts(array: Array) -> list[bytes]:
    name = dtype_of(array)
    if name not in _NAMES:
        raise ValueError(f"element type {name} in a sequence or an optional")
    if name == STRING:
        texts = [str(text).encode() for text in array.ravel().tolist()]
        data = np.array([len(text) for text in texts], "<u8").tobytes() + b"".join(texts)
    else:
        data = array.tobytes()
    dims = np.array(array.shape, "<u8").tobytes()
    return [_TENSOR_HEAD.pack(name.encode(), array.ndim, len(data)), dims, data]


def unpack(packed: Array) -> Value:
    """Return what `pack` has packed; its arrays are views of the bytes.

    Raises
    ------
    ValueError
        For bytes that are no packed value.
    """
    data = np.ascontiguousarray(packed).data.cast("B")
    try:
        magic, form, count = _HEAD.unpack_from(data)
        if magic != _MAGIC or form > _SEQUENCE or count > len(data):
            raise ValueError
        at, tensors = _HEAD.size, []
        for _ in range(count):
            array, at = _tensor_at(data, at)
            tensors.append(array)
        if at != len(data) or (form == _NONE and count) or (form == _TENSOR and count != 1):
            raise ValueError
    except (struct.error, ValueError, OverflowError, UnicodeDecodeError):
        raise ValueError(f"{len(data)} bytes that hold no string, sequence or optional") from None
    return None if form == _NONE else tensors if form == _SEQUENCE else tensors[0]


def _tensor_at(data: memoryview, at: int) -> tuple[Array, int]:
    raw, rank, nbytes = _TENSOR_HEAD.unpack_from(data, at)
    name = raw.rstrip(b"\0").decode("ascii")
    start = at + _TENSOR_HEAD.size + 8 * rank
    end = start + nbytes
    if name not in _NAMES or end > len(data):
        raise ValueError
    dims = tuple(int(dim) for dim in np.frombuffer(data[at + _TENSOR_HEAD.size : start], "<u8"))
    if name == STRING:
        return _texts(data[start:end], dims), end
    return np.frombuffer(data[start:end], numpy_dtype(name)).reshape(dims), end


def _texts(data: memoryview, dims: tuple[int, ...]) -> Array:
    count = 1
    for dim in dims:
        count *= dim
    if 8 * count > len(data):
        raise ValueError
    ends = np.cumsum(np.frombuffer(data[: 8 * count], "<u8")).tolist()
    body = bytes(data[8 * count :])
    if (ends[-1] if ends else 0) != len(body):
        raise ValueError
    texts = np.empty(count, object)
    texts[:] = [body[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]
    return texts.reshape(dims)


def pack_input(name: str, kind: str, value: Any) -> Array:
    """Return a caller's value of a declared kind as a packed value.

    Parameters
    ----------
    name
        Name of the input, for messages.
    kind
        "string": an array or nested lists of text; "sequence(…)": a list or tuple of such tensors; "optional(…)": one
        of these, or None.
    value
        What the caller passed.

    Raises
    ------
    GraphError
        For anything else.
    """
    try:
        return pack(_taken(name, kind, value))
    except AscendSchedError:
        raise
    except Exception as error:  # what a caller's own class raises while it is looked at
        raise GraphError(
            f"[run] input '{name}': {type(value).__name__} is no {kind}: {type(error).__name__}: {error}; "
            "pass text in arrays or lists, sequences as lists of arrays, absent optionals as None"
        ) from error


def _taken(name: str, kind: str, value: Any) -> Value:
    if is_optional(kind):
        return None if value is None else _taken(name, inner(kind), value)
    if is_sequence(kind):
        if not isinstance(value, (list, tuple)):
            raise GraphError(f"[run] input '{name}': {type(value).__name__}; a {kind} is a list of arrays")
        return [_tensor(f"{name}[{index}]", inner(kind), each) for index, each in enumerate(value)]
    return _tensor(name, kind, value)


def _tensor(name: str, dtype: str, value: Any) -> Array:
    if dtype != STRING:
        return normalize(name, dtype, value)
    array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value, object)
    if array.dtype.kind not in "OUST" or not all(isinstance(text, (str, bytes)) for text in array.ravel().tolist()):
        raise GraphError(f"[run] input '{name}': {array.dtype} values that are not text; pass strings")
    texts = np.empty(array.size, object)
    texts[:] = [text.decode("utf-8") if isinstance(text, bytes) else str(text) for text in array.ravel().tolist()]
    return texts.reshape(array.shape)


def is_converted(types: list[str]) -> bool:
    """Return whether callers see results of these types in another form than the core has them."""
    return any(dtype == "bfloat16" or is_kind(dtype) for dtype in types)


def results_of(results: list[Array], types: list[str]) -> list[Any]:
    """Return what the core gave as callers see it: typed arrays, and what packed values hold in arrays of their own.

    Raises
    ------
    GraphError
        Where bytes are none that `pack` made.
    """
    typed = typed_results(results, types)
    return [_result(array) if is_kind(kind) else array for array, kind in zip(typed, types, strict=True)]


def named_results(results: dict[str, Array], types: dict[str, str]) -> dict[str, Any]:
    """Return what `results_of` does for results by name; an output that the model lists twice is there once."""
    return dict(zip(results, results_of(list(results.values()), [types[name] for name in results]), strict=True))


def _result(packed: Array) -> Value:
    try:
        value = unpack(packed)
    except ValueError as error:
        raise GraphError(f"[run] a result is {error}; feed the model's inputs as their kinds say") from None
    return [each.copy() for each in value] if isinstance(value, list) else None if value is None else value.copy()


class InputTypes:
    """Brings a caller's inputs into the form that the core reads, as `arrays.normalize` does, packing where needed."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self._kinds = kinds

    def __call__(self, name: str, dtype: str, value: Any) -> Array:
        """See `normalize`."""
        kind = self._kinds.get(name)
        return normalize(name, dtype, value) if kind is None else pack_input(name, kind, value)
