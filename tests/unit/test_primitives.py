"""The cache, the ring and the tiling counters as Python sees them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import ascendsched as asc

from . import onnx_models


def test_a_cache_gives_back_what_was_put_under_equal_keys_only():
    cache = asc.Cache(1 << 20)
    assert cache.put((1, 2, b"abc"), "value", bytes=10)
    assert not cache.put([1, 2, b"abc"], "other", bytes=10)
    assert cache.get([1, 2, b"abc"]) == "value"
    for key in ((1, 2), (1, 2, b"abd"), (2, 1, b"abc"), (1, 2, b"abc", 0), (), (1, 2, b"abc\0")):
        assert cache.get(key) is None
    assert cache.counters["hits"] == 2  # put looks as well


def test_a_cache_keeps_its_bound_whatever_happens_to_it():
    rng = random.Random(7)
    cache, kept = asc.Cache(20_000), {}
    for step in range(20_000):
        key = (rng.randrange(60), rng.randrange(4))
        found = cache.get(key)
        assert found is None or found == kept[key]
        if found is None:
            kept[key] = step
            cache.put(key, step, bytes=rng.choice([0, 100, 1000, 30_000]))
        if rng.random() < 0.01:
            cache.resize(rng.choice([0, 500, 5_000, 20_000]))
        counters = cache.counters
        assert counters["bytes"] <= counters["limit_bytes"]
    assert cache.counters["evictions"] > 0
    assert cache.counters["hits"] > 0


def test_a_scan_does_not_drive_out_what_is_used_again():
    cache = asc.Cache(100 * 400)
    for i in range(5):
        cache.put((i,), i, bytes=100)
    for _ in range(2):
        assert [cache.get((i,)) for i in range(5)] == list(range(5))
    for i in range(1000, 3000):
        cache.put((i,), i, bytes=100)
        cache.get((i % 5,))
    assert [cache.get((i,)) for i in range(5)] == list(range(5))


@pytest.mark.parametrize("key", [(1.5,), ("text",), (None,)])
def test_keys_of_other_types_are_refused(key):
    with pytest.raises(asc.GraphError, match="whole numbers and bytes"):
        asc.Cache(100).get(key)


def test_hashes_of_near_keys_spread():
    hashes = {asc.hash_key((a, b)) for a in range(100) for b in range(100)}
    assert len(hashes) == 10_000
    assert len({h & 0xFFFF for h in hashes}) > 8_500


def test_a_ring_keeps_order_and_refuses_more_than_fits():
    ring = asc.Ring(3)
    assert [ring.push(i) for i in range(5)] == [True] * 3 + [False] * 2
    assert [ring.pop() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(IndexError):
        ring.pop()
    with pytest.raises(asc.AscendSchedError, match="capacity"):
        asc.Ring(0)


def test_tilings_are_counted_by_operator():
    before = asc.tiling_counters().get("Softmax", {"hits": 0, "misses": 0, "bypasses_off": 0})
    model = onnx_models.model(
        [onnx_models.h.make_node("Softmax", ["x"], ["y"])],
        [onnx_models.info("x", shape=["n", 77])],
        [onnx_models.info("y")],
    )
    off = asc.compile(model, mode="host", threads=1, options=asc.Options(tiling_cache_bytes=0))
    on = asc.compile(model, mode="host", threads=1)
    for n in (2, 3, 2, 3):
        on(np.ones((n, 77), np.float32))
    off(np.ones((2, 77), np.float32))
    after = asc.tiling_counters()["Softmax"]
    assert after["misses"] - before["misses"] == 2
    assert after["bypasses_off"] - before["bypasses_off"] == 1
    assert after["bytes"] > 0
    assert after["made_ns"] > 0
    with pytest.raises(asc.DeviceUnavailableError):
        asc.tiling_counters("gpu")
