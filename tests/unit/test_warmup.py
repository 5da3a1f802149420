"""Warm-up makes an executable ready for shapes, and the shapes that ran last are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from ascendsched import _core

from . import onnx_models as models


def rows(count: int) -> dict[str, Any]:
    return {"x": np.ones((count, 8), np.float32)}


def test_warmup_loads_the_schedule_in_mode_auto() -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), mode="auto", threads=1)
    exe.warmup([{"x": (5, 8)}, {"x": (2, 8)}])
    before = exe.stats()
    assert (before["warmups"], before["runs"], before["loads"]) == (2, 0, 2)
    exe.run(rows(5))
    exe.run(rows(2))
    after = exe.stats()
    assert (after["loads"], after["launches"]) == (2, before["launches"])


def test_warmup_fills_the_tiling_cache_in_host_mode() -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), mode="host", threads=1)
    exe.warmup([{"x": (5, 8)}])
    before = exe.stats()
    exe.run(rows(5))
    assert exe.stats()["tiling_misses"] == before["tiling_misses"]
    assert exe.stats()["replays"] == before["replays"] + 1


def test_warmup_takes_values_for_inputs_whose_contents_matter() -> None:
    exe = asc.compile(models.counted_loop(), threads=1)
    exe.warmup([{"x": (2,)}], values={"trips": np.int64(3)})
    assert exe.stats()["warmups"] == 1


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"y": (1, 8)}, "unknown inputs"),
        ({"x": (1, 7)}, "dim 1 is 8"),
        ({}, "every dimension"),
        ({"x": (-1, 8)}, "negative"),
    ],
)
def test_warmup_refuses_shapes_that_do_not_fit(shapes: dict[str, Any], text: str) -> None:
    with pytest.raises(asc.GraphError, match=text):
        asc.compile(models.mlp(width=8, layers=2), threads=1).warmup([shapes])


def test_the_shapes_kept_are_bounded_and_the_latest() -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), threads=1)
    for count in [*range(1, 40), 30]:
        exe.run(rows(count))
    kept = [signature[0][0][0] for signature in _core.hot_shapes(exe._core)]
    assert kept[:3] == [30, 39, 38]
    assert len(kept) == len(set(kept)) == 16


@pytest.mark.parametrize("mode", ["host", "auto"])
def test_memory_fits_after_a_warmup_with_larger_shapes(mode: str) -> None:
    """The branch of x is current after the warm-up, but has been placed for the first run only."""
    nodes = [
        h.make_node("Tanh", ["x"], ["a"]),
        h.make_node("MatMul", ["a", "w"], ["b"]),
        h.make_node("Tanh", ["b"], ["y"]),
    ]
    nodes += [h.make_node("Neg", ["z"], ["v"])]
    model = models.model(
        nodes,
        [models.info("x", shape=["n", 64]), models.info("z", shape=["m"])],
        [models.info("y", shape=["n", 64]), models.info("v", shape=["m"])],
        {"w": np.eye(64, dtype=np.float32)},
    )
    exe = asc.compile(model, mode=mode, threads=1, options=asc.Options(fuse=False))

    def run(n: int, m: int) -> None:
        results = exe.run({"x": np.ones((n, 64), np.float32), "z": np.ones(m, np.float32)})
        np.testing.assert_allclose(results["y"], np.full((n, 64), np.tanh(np.tanh(1))), rtol=1e-5)
        assert results["v"].shape == (m,)

    run(2, 2)
    exe.warmup([{"x": (20_000, 64), "z": (3,)}])
    run(20_000, 5)
    for n in (1, 3, 30_000, 7):
        _core.resolve_ahead(exe._core, [[n, 64], [2]])
        run(n, 9)
