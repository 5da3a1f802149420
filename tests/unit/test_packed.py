"""Packed values: what goes in comes out, and damaged bytes are refused."""

from __future__ import annotations

from contextlib import suppress

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ascendsched import GraphError
from ascendsched.packed import joined, pack, pack_input, unpack

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
TYPES = st.sampled_from(["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
BFLOAT16 = hnp.arrays("u2", SHAPES).map(lambda array: array.view(ml_dtypes.bfloat16))
TENSORS = st.one_of(hnp.arrays(TYPES, SHAPES), BFLOAT16)
TEXTS = hnp.arrays(object, SHAPES, elements=st.text(st.characters(codec="utf-8"), max_size=4))
VALUES = st.one_of(st.none(), TENSORS, TEXTS, st.lists(st.one_of(TENSORS, TEXTS), max_size=4))


def same(one, two):
    if one is None or isinstance(one, list):
        return one is two or (len(one) == len(two) and all(map(same, one, two)))
    is_text = one.dtype.kind == "O"
    return (one.shape, one.dtype) == (two.shape, two.dtype) and (
        one.tolist() == two.tolist() if is_text else one.tobytes() == two.tobytes()
    )


@given(VALUES)
def test_a_value_comes_out_as_it_went_in(value):
    packed = pack(value)
    assert same(value, unpack(packed))
    assert pack(unpack(packed)).tobytes() == packed.tobytes()


@given(VALUES, st.data())
def test_damaged_bytes_are_refused_or_hold_a_value(value, data):
    raw = bytearray(pack(value).tobytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    with suppress(ValueError):  # no other error
        unpack(np.frombuffer(bytes(raw), np.uint8))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 1),
        ("string", [1.5]),
        ("string", ["a", None]),
        ("string", ["\ud800"]),
        ("string", b"\xff"),
        ("string", None),
        ("sequence(float32)", np.zeros(2, np.float32)),
        ("sequence(float32)", None),
        ("sequence(float32)", [np.zeros(2, np.int64)]),
        ("sequence(float32)", [None]),
        ("sequence(string)", [["a"], [1]]),
        ("optional(float32)", "text"),
        ("optional(sequence(int64))", [[1.5]]),
    ],
)
def test_values_that_are_not_of_their_kind_are_refused(kind, value):
    with pytest.raises(GraphError, match=r"^\[run\] input 'x"):
        pack_input("x", kind, value)


def test_values_are_taken_in_the_forms_that_callers_have():
    texts = unpack(pack_input("x", "string", np.array(["a", "bc"])))
    assert texts.tolist() == unpack(pack_input("x", "string", [b"a", "bc"])).tolist() == ["a", "bc"]
    (one, two) = unpack(pack_input("x", "sequence(int64)", (1, [[2, 3]])))
    assert (one.shape, two.tolist()) == ((), [[2, 3]])
    assert unpack(pack_input("x", "optional(float32)", None)) is None


def test_kinds_are_joined_where_they_agree():
    assert joined("sequence(?)", "sequence(float32)") == "sequence(float32)"
    assert joined("sequence(int8)", "optional(sequence(?))") == "optional(sequence(int8))"
    assert joined("string", "string") == "string"
    assert joined("string", "sequence(string)") is None
    assert joined("sequence(int8)", "sequence(int16)") is None
