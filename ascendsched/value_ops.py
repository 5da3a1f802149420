"""Operators on strings, sequences and optionals: host calls whose packed inputs and results are unpacked here."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ascendsched import host_calls, text_ops
from ascendsched.packed import Array, Value, dtype_of, is_kind, pack, unpack

NAME = "ascendsched.values"
Attributes = dict[str, Any]


class _Call(NamedTuple):
    op: str
    attributes: Attributes
    is_packed: list[bool]  # inputs
    types: list[str]  # of results: element types, or kinds of packed values


def payload_of(op: str, attributes: Attributes, is_packed: list[bool], types: list[str]) -> str:
    """Return what a node's host call needs to know, as text; arrays among the attributes are kept."""
    plain = {
        key: {"packed": base64.b64encode(pack(value).tobytes()).decode()} if isinstance(value, np.ndarray) else value
        for key, value in attributes.items()
    }
    return json.dumps([op, plain, is_packed, types], sort_keys=True)


@lru_cache(maxsize=256)
def _call_of(payload: str) -> _Call:
    op, attributes, is_packed, types = json.loads(payload)
    for key, value in attributes.items():
        if isinstance(value, dict):
            attributes[key] = unpack(np.frombuffer(base64.b64decode(value["packed"]), np.uint8))
    return _Call(op, attributes, is_packed, types)


def _compute(payload: str, inputs: Sequence[Array | None]) -> list[Any]:
    call = _call_of(payload)
    values: list[Any] = [
        unpack(value) if value is not None and packed else value
        for value, packed in zip(inputs, call.is_packed, strict=True)
    ]
    with np.errstate(all="ignore"):
        results = OPERATORS[call.op](values, call.attributes)
    return [_result(result, wanted) for result, wanted in zip(results, call.types, strict=False)]


def _result(value: Value, wanted: str) -> Array:
    if is_kind(wanted):
        return pack(value)
    if not isinstance(value, np.ndarray) or dtype_of(value) != wanted:
        found = dtype_of(value) if isinstance(value, np.ndarray) else "no tensor"
        raise ValueError(f"the result is {found}, the model says {wanted}")
    return value


# Sequences


def _shown(array: Array) -> str:
    return str(array.ravel()[:8].tolist()) if array.size != 1 else str(array.ravel()[0])


def _position(inputs: list[Any], index: int, count: int, default: int) -> int:
    if len(inputs) <= index or inputs[index] is None:
        return default
    position = int(inputs[index].reshape(-1)[0]) if inputs[index].size == 1 else count + 1
    if not -count <= position <= count:
        raise ValueError(f"position {_shown(inputs[index])} in a sequence of {count}")
    return position + count if position < 0 else position


def _construct(inputs: list[Any], attributes: Attributes) -> list[Value]:
    _check_types(inputs)
    return [list(inputs)]


def _check_types(tensors: list[Array]) -> None:
    types = sorted({dtype_of(tensor) for tensor in tensors})
    if len(types) > 1:
        raise ValueError(f"a sequence of {' and '.join(types)}; its tensors have one element type")


def _insert(inputs: list[Any], attributes: Attributes) -> list[Value]:
    sequence, tensor = list(inputs[0]), inputs[1]
    _check_types([*sequence[:1], tensor])
    sequence.insert(_position(inputs, 2, len(sequence), len(sequence)), tensor)
    return [sequence]


def _taken(sequence: list[Array], inputs: list[Any]) -> int:
    position = _position(inputs, 1, len(sequence), len(sequence) - 1)
    if not 0 <= position < len(sequence):
        raise ValueError(f"position {position} in a sequence of {len(sequence)}")
    return position


def _erase(inputs: list[Any], attributes: Attributes) -> list[Value]:
    sequence = list(inputs[0])
    del sequence[_taken(sequence, inputs)]
    return [sequence]


def _at(inputs: list[Any], attributes: Attributes) -> list[Value]:
    return [inputs[0][_taken(inputs[0], inputs)]]


def _length(inputs: list[Any], attributes: Attributes) -> list[Value]:
    return [np.array(len(inputs[0]), np.int64)]


def _concat(inputs: list[Any], attributes: Attributes) -> list[Value]:
    axis = attributes.get("axis", 0)
    join = np.stack if attributes.get("new_axis", 0) else np.concatenate
    return [join(inputs[0], axis=axis)]


def _split(inputs: list[Any], attributes: Attributes) -> list[Value]:
    data, sizes = inputs[0], inputs[1] if len(inputs) > 1 else None
    axis = attributes.get("axis", 0)
    dim = data.shape[axis]
    if sizes is None or sizes.ndim == 0:
        size = 1 if sizes is None else int(sizes)
        if size < 1:
            raise ValueError(f"pieces of {size}")
        ends = list(range(size, dim, size))
    else:
        if (sizes < 0).any() or int(sizes.sum()) != dim:
            raise ValueError(f"pieces of {_shown(sizes)} of an axis of {dim}")
        ends = np.cumsum(sizes)[:-1].tolist()
    parts = np.split(data, ends, axis) if dim else []
    if sizes is None and not attributes.get("keepdims", 1):
        parts = [np.squeeze(part, axis) for part in parts]
    return [[np.asarray(part) for part in parts]]


# Optionals


def _optional(inputs: list[Any], attributes: Attributes) -> list[Value]:
    return [inputs[0] if inputs else None]


def _has_element(inputs: list[Any], attributes: Attributes) -> list[Value]:
    return [np.array(inputs[0] is not None)]


def _get_element(inputs: list[Any], attributes: Attributes) -> list[Value]:
    if inputs[0] is None:
        raise ValueError("the optional holds nothing; ask OptionalHasElement before")
    return [inputs[0]]


OPERATORS: dict[str, Callable[[list[Any], Attributes], list[Value]]] = {
    "ConcatFromSequence": _concat,
    "Optional": _optional,
    "OptionalGetElement": _get_element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
    **text_ops.OPERATORS,
}

host_calls.register(NAME, _compute)
