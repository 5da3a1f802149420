"""Tables of tilings count where they are kept: under the limit of memory, and in the caches of schedules."""

from __future__ import annotations

import numpy as np
import pytest

import ascendsched as asc

LENGTH = 100_003  # prime: the tables of its transform take some 4 MB
MODES = ("host", "sink")


def spectra(lengths: list[int] | None = None) -> asc.Graph:
    """The transform of each of these lengths, or of the input's own."""
    g = asc.Graph("spectra")
    x = g.input("x", "float32", (1, "n", 1))
    for length in [None] if lengths is None else lengths:
        size = None if length is None else g.constant(np.int64(length))
        y = g.op("DFT", x, size, g.constant(np.int64(1)), name=f"of_{length}")
        g.output(g.op("ReduceMax", y, keepdims=0, name=f"max_{length}"), f"y{length}")
    return g


def samples(count: int) -> dict[str, np.ndarray]:
    return {"x": np.ones((1, count, 1), np.float32)}


@pytest.mark.parametrize("mode", MODES)
def test_tables_of_many_nodes_count_towards_the_limit(mode: str) -> None:
    lengths = [LENGTH + 2 * k for k in range(8)]
    options = asc.Options(memory_limit_bytes=16 << 20)
    exe = asc.compile(spectra(lengths), mode=mode, threads=1, options=options)
    for _ in range(2):
        with pytest.raises(asc.OutOfMemoryError, match=r"DFT 'of_1000.*its tables take .* limit 16777216 bytes"):
            exe.run(samples(8))
    few = asc.compile(spectra(lengths[:2]), mode=mode, threads=1, options=options)
    assert few.run(samples(8))[f"y{LENGTH}"] == pytest.approx(8)


@pytest.mark.parametrize("mode", MODES)
def test_tables_of_former_shapes_are_given_back(mode: str) -> None:
    options = asc.Options(memory_limit_bytes=16 << 20, schedule_cache_bytes=10 << 20, tiling_cache_bytes=1 << 20)
    exe = asc.compile(spectra(), mode=mode, threads=1, options=options)
    for k in range(12):
        assert exe.run(samples(LENGTH + 2 * k))["yNone"] == pytest.approx(LENGTH + 2 * k)
    stats = exe.stats()
    assert stats["schedule_bytes"] <= 10 << 20
    assert stats["schedule_entries"] <= 3
