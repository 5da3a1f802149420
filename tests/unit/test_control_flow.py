"""If, Loop and data-dependent shapes, against onnxruntime, in every mode, interleaving what changes."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import ascendsched as asc

from . import onnx_models

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")

MODES = ["host", "sink", "auto"]
pytestmark = pytest.mark.sanitize


def check(model, feeds, mode):
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    exe = asc.compile(model, mode=mode, threads=1)
    for _ in range(3):
        for feed in feeds:
            got = exe.run(feed)
            for name, want in zip(names, session.run(None, feed), strict=True):
                assert got[name].shape == want.shape
                assert got[name].dtype == want.dtype
                np.testing.assert_allclose(got[name], want, rtol=1e-6, atol=1e-6)
    for feed in feeds:
        run = exe.run_async(feed)
        got = run.wait(60)
        for name, want in zip(names, session.run(None, feed), strict=True):
            np.testing.assert_allclose(got[name], want, rtol=1e-6, atol=1e-6)
    return exe


@pytest.mark.parametrize("mode", MODES)
def test_branches_follow_the_data_and_give_their_own_shapes(mode):
    rng = np.random.default_rng(1)
    feeds = [{"x": (rng.standard_normal((n, 3)) + shift).astype(np.float32)} for n in (1, 4, 4) for shift in (-2, 2)]
    exe = check(onnx_models.branches(), feeds, mode)
    assert exe.stats()["syncs"] > 0


@pytest.mark.parametrize("mode", MODES)
def test_loops_carry_grow_scan_and_stop(mode):
    rng = np.random.default_rng(2)
    feeds = [
        {"x": rng.uniform(0.1, 1, n).astype(np.float32), "trips": np.array(t, np.int64)}
        for n in (3, 5)
        for t in (1, 2, 5, 200)
    ]
    check(onnx_models.counted_loop(), feeds, mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_without_iterations_returns_its_initial_values(mode):
    exe = asc.compile(onnx_models.counted_loop(), mode=mode, threads=1)
    x = np.array([1, 2], np.float32)
    got = exe.run({"x": x, "trips": np.array(0, np.int64)})
    np.testing.assert_array_equal(got["a"], x)
    np.testing.assert_array_equal(got["g"], x)
    assert got["s"].shape[0] == 0


@pytest.mark.parametrize("mode", MODES)
def test_nonzero_gives_the_extent_that_the_data_has(mode):
    rng = np.random.default_rng(3)
    feeds = [{"x": rng.standard_normal(s).astype(np.float32)} for s in ((3, 4), (1, 1), (20, 7), (3, 4))]
    feeds += [{"x": np.full((3, 4), -1, np.float32)}, {"x": np.zeros((0, 4), np.float32)}]
    exe = check(onnx_models.nonzero(), feeds, mode)
    assert any("depends on data" in reason for reason in exe.plan.dynamic_reasons)


def test_a_loop_that_cannot_end_is_refused():
    from onnx import TensorProto as T
    from onnx import helper as h

    body = onnx_models.body(
        [h.make_node("Identity", ["always"], ["go_on"]), h.make_node("Add", ["a", "a"], ["b"])],
        [onnx_models.info("i", T.INT64, []), onnx_models.info("c", T.BOOL, []), onnx_models.info("a")],
        [onnx_models.info("go_on", T.BOOL, []), onnx_models.info("b")],
    )
    model = onnx_models.model(
        [h.make_node("Loop", ["", "", "x"], ["y"], body=body)],
        [onnx_models.info("x", shape=["n"])],
        [onnx_models.info("y", shape=["n"])],
        {"always": np.array(True)},
    )
    exe = asc.compile(model, threads=1)
    with pytest.raises(asc.GraphError, match="never ends"):
        exe.run({"x": np.ones(2, np.float32)})


@pytest.mark.parametrize("mode", MODES)
def test_an_endless_loop_can_be_interrupted(mode):
    from onnx import TensorProto as T
    from onnx import helper as h

    body = onnx_models.body(
        [h.make_node("And", ["go_on", "c"], ["again"]), h.make_node("Add", ["a", "a"], ["b"])],
        [onnx_models.info("i", T.INT64, []), onnx_models.info("c", T.BOOL, []), onnx_models.info("a")],
        [onnx_models.info("again", T.BOOL, []), onnx_models.info("b")],
    )
    model = onnx_models.model(
        [h.make_node("Loop", ["", "go_on", "x"], ["y"], body=body)],
        [onnx_models.info("x", shape=["n"]), onnx_models.info("go_on", T.BOOL, [])],
        [onnx_models.info("y", shape=["n"])],
    )
    exe = asc.compile(model, mode=mode, threads=1)
    x = np.zeros(2, np.float32)

    def interrupt(*_):
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            exe.run({"x": x, "go_on": np.array(True)})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    np.testing.assert_array_equal(exe.run({"x": x, "go_on": np.array(False)})["y"], x)


@pytest.mark.parametrize("mode", MODES)
def test_each_iteration_of_a_long_loop_reads_its_own_number(mode):
    from onnx import TensorProto as T
    from onnx import helper as h

    body = onnx_models.body(
        [
            h.make_node("Cast", ["i"], ["number"], to=T.FLOAT),
            h.make_node("Add", ["number", "x"], ["piece"]),
            h.make_node("Identity", ["go_on"], ["goes_on"]),
        ],
        [onnx_models.info("i", T.INT64, []), onnx_models.info("go_on", T.BOOL, [])],
        [onnx_models.info("goes_on", T.BOOL), onnx_models.info("piece")],
    )
    made = onnx_models.model(
        [h.make_node("Loop", ["trips", ""], ["pieces"], body=body)],
        [onnx_models.info("x", shape=["n"]), onnx_models.info("trips", T.INT64, [])],
        [onnx_models.info("pieces")],
    )
    exe = asc.compile(made, mode=mode, threads=1)
    x = np.zeros(3, np.float32)
    for trips in (0, 1, 63, 64, 65, 200):
        feed = {"x": x, "trips": np.array(trips, np.int64)}
        want = np.repeat(np.arange(trips, dtype=np.float32)[:, None], 3, axis=1)
        for got in (exe.run(feed), exe.run_async(feed).wait(60)):
            np.testing.assert_array_equal(got["pieces"].reshape(trips, 3), want)
