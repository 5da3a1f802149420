"""Iterations that differ in contents only: nothing is looked up, scanned outputs lie where they stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from .onnx_models import info, model

pytestmark = pytest.mark.sanitize
MODES = ["host", "sink", "auto"]
n = h.make_node


def looped(nodes: list[Any], carried: int, scanned: int, constants: dict[str, Any] | None = None) -> Any:
    """`nodes` make `next…` and `scan…` of `state…`, the number `i` and `x`."""
    states = [f"state{k}" for k in range(carried)]
    body = h.make_graph(
        [n("Identity", ["go_on"], ["again"]), *nodes],
        "body",
        [info("i", T.INT64, []), info("go_on", T.BOOL, []), *(info(s) for s in states)],
        [info("again", T.BOOL, []), *(info(f"next{k}") for k in range(carried))]
        + [info(f"scan{k}") for k in range(scanned)],
    )
    results = [f"last{k}" for k in range(carried)] + [f"all{k}" for k in range(scanned)]
    return model(
        [n("Loop", ["trips", "", *(f"first{k}" for k in range(carried))], results, body=body)],
        [info("trips", T.INT64, []), *(info(f"first{k}", shape=None) for k in range(carried)), info("x", shape=["w"])],
        [info(r, shape=None) for r in results],
        constants or {},
    )


def summing() -> Any:
    return looped(
        [
            n("Cast", ["i"], ["number"], to=T.FLOAT),
            n("Mul", ["x", "number"], ["scan0"]),
            n("Add", ["state0", "scan0"], ["next0"]),
            n("Sub", ["state1", "state0"], ["next1"]),
            n("ReduceSum", ["state0"], ["scan1"], keepdims=1),
        ],
        carried=2,
        scanned=2,
    )


def feeds_of(trips: int, width: int) -> dict[str, Any]:
    rng = np.random.default_rng([trips, width])
    values = [rng.standard_normal(width).astype(np.float32) for _ in range(3)]
    return dict(zip(["first0", "first1", "x"], values, strict=True), trips=np.array(trips, np.int64))


def wanted(feeds: dict[str, Any]) -> dict[str, Any]:
    a, b, x = (feeds[k].astype(np.float64) for k in ("first0", "first1", "x"))
    scans: list[list[Any]] = [[], []]
    for i in range(int(feeds["trips"])):
        scans[0].append(x * i)
        scans[1].append(a.sum(keepdims=True))
        a, b = a + x * i, b - a
    return {
        "last0": a,
        "last1": b,
        "all0": np.array(scans[0]).reshape(-1, *x.shape) if scans[0] else None,
        "all1": np.array(scans[1]) if scans[1] else None,
    }


def assert_same(got: Any, want: dict[str, Any]) -> None:
    for name, value in want.items():
        if value is None:
            assert got[name].shape[0] == 0
            continue
        assert got[name].shape == value.shape
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [1, 5, 16, 48])
def test_results_are_those_of_every_number_of_iterations(mode, width):
    exe = asc.compile(summing(), mode=mode, threads=1)
    exe.run(feeds_of(3, width))
    used = exe.stats()["pool_used_blocks"]
    for trips in (3, 1, 0, 2, 65, 200, 64, 3):
        feeds = feeds_of(trips, width)
        want = wanted(feeds)
        for _ in range(3):
            assert_same(exe.run(feeds), want)
        for run in [exe.run_async(feeds) for _ in range(3)]:
            assert_same(run.wait(60), want)
    assert exe.stats()["pool_used_blocks"] == used


@pytest.mark.parametrize("mode", MODES)
def test_widths_take_turns(mode):
    exe = asc.compile(summing(), mode=mode, threads=1)
    for k in range(12):
        feeds = feeds_of(4 + k % 3, (16, 5, 32)[k % 3])
        assert_same(exe.run(feeds), wanted(feeds))


def test_iterations_look_nothing_up():
    exe = asc.compile(summing(), mode="sink", threads=1)
    exe.run(feeds_of(2, 16))

    def looked_up(trips: int) -> float:
        before = exe.stats()
        exe.run(feeds_of(trips, 16))
        after = exe.stats()
        assert after["submits"] - before["submits"] >= trips
        return after["schedule_hits"] - before["schedule_hits"]

    assert looked_up(10) == looked_up(100) > 0


@pytest.mark.parametrize("mode", MODES)
def test_a_shape_that_settles_after_some_iterations(mode):
    grown = looped(
        [
            n("Concat", ["state0", "x"], ["longer"], axis=0),
            n("Slice", ["longer", "from", "to"], ["next0"]),
            n("Add", ["state1", "state1"], ["next1"]),
        ],
        carried=2,
        scanned=0,
        constants={"from": np.array([-7], np.int64), "to": np.array([1 << 40], np.int64)},
    )
    exe = asc.compile(grown, mode=mode, threads=1)
    for trips in (1, 2, 3, 6, 20, 3):
        feeds = feeds_of(trips, 3)
        row = feeds["first0"]
        for _ in range(trips):
            row = np.concatenate([row, feeds["x"]])[-7:]
        want = {"last0": row, "last1": feeds["first1"] * 2.0**trips}
        assert_same(exe.run(feeds), want)
        assert_same(exe.run_async(feeds).wait(60), want)


@pytest.mark.parametrize("mode", MODES)
def test_an_error_in_a_later_iteration_is_raised_and_leaves_nothing(mode):
    picking = looped(
        [n("Gather", ["x", "i"], ["picked"], axis=0), n("Add", ["state0", "picked"], ["next0"])],
        carried=1,
        scanned=0,
    )
    exe = asc.compile(picking, mode=mode, threads=1)
    feeds = {"first0": np.zeros(4, np.float32), "x": np.arange(6, dtype=np.float32), "trips": np.array(6, np.int64)}
    used = None
    for _ in range(3):
        np.testing.assert_array_equal(exe.run(feeds)["last0"], np.full(4, 15, np.float32))
        used = used or exe.stats()["pool_used_blocks"]
        with pytest.raises(asc.GraphError, match="out of range: 6"):
            exe.run(feeds | {"trips": np.array(9, np.int64)})
        with pytest.raises(asc.GraphError, match="out of range: 6"):
            exe.run_async(feeds | {"trips": np.array(9, np.int64)}).wait(60)
    assert exe.stats()["pool_used_blocks"] == used


def test_more_than_there_is_room_for_is_refused_at_once():
    exe = asc.compile(summing(), mode="sink", threads=1, options=asc.Options(memory_limit_bytes=64 << 20))
    with pytest.raises(asc.OutOfMemoryError):
        exe.run(feeds_of(1 << 40, 16))
    with pytest.raises(asc.OutOfMemoryError):
        exe.run(feeds_of((1 << 62) + 1, 16))
    feeds = feeds_of(5, 16)
    assert_same(exe.run(feeds), wanted(feeds))


def test_a_device_that_computes_nothing_gives_cleared_results():
    exe = asc.compile(summing(), device="null", mode="sink")
    for trips in (3, 100, 3):
        got = exe.run(feeds_of(trips, 16))
        assert got["all0"].shape == (trips, 16)
        assert not any(got[name].any() for name in ("last0", "last1", "all0", "all1"))


@pytest.mark.parametrize("mode", MODES)
def test_no_iteration_gives_no_pieces_of_the_shape_that_one_would_have(mode):
    pairing = looped(
        [
            n("Add", ["state0", "x"], ["next0"]),
            n("Concat", ["state0", "x"], ["pair"], axis=0),
            n("Unsqueeze", ["pair", "first"], ["scan0"]),
            n("ReduceMax", ["x"], ["scan1"], keepdims=0),
        ],
        carried=1,
        scanned=2,
        constants={"first": np.array([0], np.int64)},
    )
    exe = asc.compile(pairing, mode=mode, threads=1)
    feeds = {"first0": np.zeros(3, np.float32), "x": np.ones(3, np.float32)}
    for trips in (0, 2, 0):
        got = exe.run(feeds | {"trips": np.array(trips, np.int64)})
        assert got["all0"].shape == (trips, 1, 6)
        assert got["all1"].shape == (trips,)
        np.testing.assert_array_equal(got["last0"], np.full(3, trips, np.float32))


def test_a_carried_value_that_grows_takes_the_memory_of_two():
    growing = looped([n("Concat", ["state0", "x"], ["next0"], axis=0)], carried=1, scanned=0)
    exe = asc.compile(growing, mode="host", threads=1, options=asc.Options(memory_limit_bytes=45 << 20))
    x = np.ones(1 << 18, np.float32)
    got = exe.run({"first0": x, "x": x, "trips": np.array(20, np.int64)})
    np.testing.assert_array_equal(got["last0"], np.ones(21 << 18, np.float32))


SETTINGS = [("host", {"schedule_cache_bytes": 0}), ("host", {}), ("auto", {}), ("sink", {})]


@pytest.mark.parametrize(("mode", "settings"), SETTINGS)
def test_with_too_little_memory_results_are_right_or_refused(mode, settings):
    tasks = looped(
        [
            n("Softmax", ["state0"], ["inner"]),
            n("Softmax", ["x"], ["scan0"]),
            n("CumSum", ["inner", "axis"], ["next0"]),
        ],
        carried=1,
        scanned=1,
        constants={"axis": np.array(0)},
    )

    def feeds_with(trips: int, width: int) -> dict[str, Any]:
        x = np.random.default_rng(width).random(width).astype(np.float32)
        return {"first0": x, "x": x, "trips": np.array(trips, np.int64)}

    large, small = feeds_with(3, 1024), feeds_with(60, 20)
    plenty = asc.compile(tasks, mode="host", threads=1)
    want = {id(feeds): plenty.run(feeds) for feeds in (large, small)}
    refused = 0
    for limit in range(12_000, 64_000, 1_000):
        options = asc.Options(memory_limit_bytes=limit, **settings)
        exe = asc.compile(tasks, mode=mode, threads=1, options=options)
        for feeds in (small, large, small, small):
            try:
                got = exe.run(feeds)
            except asc.OutOfMemoryError:
                refused += 1
                continue
            for name, value in want[id(feeds)].items():
                np.testing.assert_array_equal(got[name], value)
    assert refused > 0


def test_a_run_that_fits_runs_after_one_that_did_not():
    softmaxes = looped(
        [
            n("Softmax", ["state0"], ["a"]),
            n("CumSum", ["a", "axis"], ["b"]),
            n("Softmax", ["b"], ["d"]),
            n("CumSum", ["d", "axis"], ["next0"]),
        ],
        carried=1,
        scanned=0,
        constants={"axis": np.array(0)},
    )
    exe = asc.compile(softmaxes, mode="sink", threads=1, options=asc.Options(memory_limit_bytes=18_000))

    def feeds_with(width: int) -> dict[str, Any]:
        x = np.ones(width, np.float32)
        return {"first0": x, "x": x[:1], "trips": np.array(5, np.int64)}

    with pytest.raises(asc.OutOfMemoryError):
        exe.run(feeds_with(2000))
    for _ in range(3):
        assert exe.run(feeds_with(1000))["last0"].shape == (1000,)
