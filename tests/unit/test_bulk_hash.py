"""The hash of files against its definition in plain arithmetic: every CPU must compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascendsched import _core

BLOCK, WORDS = 256, 32
FACTOR = 0x9E3779B1
U64 = (1 << 64) - 1
Words = np.ndarray[Any, np.dtype[np.uint32]]


def mixed(a: int, b: int) -> int:
    product = (a ^ 0x9E3779B97F4A7C15) * (b ^ 0xE7037ED1A0B428DB)
    return (product ^ (product >> 64)) & U64


def hash_of_rest(data: bytes) -> int:
    h = 0x2D358DCCAA6C78A5 ^ len(data)
    while len(data) >= 8:
        h, data = mixed(h, int.from_bytes(data[:8], "little")), data[8:]
    return mixed(h ^ int.from_bytes(data, "little"), len(data))


def defined_hash(data: bytes) -> int:
    factor = np.uint32(FACTOR)
    a, b = (np.arange(1, 2 * WORDS + 1, dtype=np.uint32) * factor).reshape(2, WORDS)
    whole = len(data) // BLOCK * BLOCK
    for block in np.frombuffer(data[:whole], np.uint32).reshape(-1, 2, WORDS):
        b = b ^ block[1]
        a = (a ^ block[0]) + b * factor
        b = b ^ ((a << np.uint32(13)) | (a >> np.uint32(19)))
    ends = [*np.concatenate([a, b]).view(np.uint64).tolist(), hash_of_rest(data[whole:]), len(data)]
    h = 0xA0761D6478BD642F ^ len(ends)
    for one, two in zip(ends[::2], ends[1::2], strict=True):
        h = mixed(h ^ one, two)
    return mixed(h, len(ends))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 72, 255, 256, 257, 511, 512, 1000, 4096, 10_001])
def test_the_hash_is_the_one_that_is_defined(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert _core.bytes_hash(data) == defined_hash(data)


def test_every_flipped_bit_and_every_length_gives_another_hash() -> None:
    data = bytearray(700)
    seen = {_core.bytes_hash(bytes(data[:size])) for size in range(len(data) + 1)}
    assert len(seen) == len(data) + 1
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        seen.add(_core.bytes_hash(bytes(data)))
        data[bit // 8] ^= 1 << bit % 8
    assert len(seen) == 9 * len(data) + 1


def test_what_changes_places_or_is_wiped_gives_another_hash() -> None:
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, 64 * BLOCK, dtype=np.uint8)
    seen = {_core.bytes_hash(data.tobytes())}
    for size in (4, 8, 64, 128, BLOCK, 4 * BLOCK):
        pieces = data.reshape(-1, size)
        for _ in range(50):
            one, two = rng.choice(len(pieces), 2, replace=False)
            swapped, wiped = pieces.copy(), pieces.copy()
            swapped[[one, two]] = pieces[[two, one]]
            wiped[min(one, two) : max(one, two)] = 0
            for changed in (swapped, wiped):
                if (changed != pieces).any():
                    assert _core.bytes_hash(changed.tobytes()) not in seen
