"""Independent branches on several streams where operators are launched one by one, serially and pipelined."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from .onnx_models import info, model
from .test_streams import branches, failing_model, random_graph

pytestmark = pytest.mark.sanitize
WORKERS = [0, 1, 2]  # 0: serial
WAIT_S = 60.0


def compiled(graph, streams, workers=0, device="cpu", threads=3, **options):
    """Always node by node: no schedule is kept."""
    settings = asc.Options(streams=streams, pipeline_workers=workers, schedule_cache_bytes=0, **options)
    return asc.compile(graph, device=device, mode="host", threads=threads, options=settings)


def rows(n, width=16, seed=0):
    return np.random.default_rng(seed + n).uniform(-1, 1, (n, width)).astype(np.float32)


def assert_equal(got, want):
    for name, array in want.items():
        assert np.array_equal(got[name], array), name


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_give_the_bits_of_one_stream(workers, seed):
    graph = random_graph(seed, 30)
    one, several = compiled(graph, 1, fuse=bool(seed % 2)), compiled(graph, 2 + seed % 2, workers, fuse=bool(seed % 2))
    rng = np.random.default_rng(seed)
    for n in [int(n) for n in rng.integers(1, 60, 25)]:
        feeds = {"x": rows(n)}
        assert_equal(several.run_async(feeds).wait(WAIT_S), one.run(feeds))
        assert several._core.find_race() == ""
    sizes = [int(n) for n in rng.integers(1, 300, 25)]
    runs = [several.run_async({"x": rows(n)}) for n in sizes]
    for n, run in zip(sizes, runs, strict=True):
        assert_equal(run.wait(WAIT_S), one.run({"x": rows(n)}))
    assert several._core.find_race() == ""
    assert several.stats()["stream_waits"] > 0
    assert several.stats()["replays"] == 0


@pytest.mark.parametrize("seed", range(15))
def test_no_places_of_a_random_graph_race(seed):
    for streams in (2, 4):
        exe = compiled(random_graph(seed, 60), streams, device="null", threads=1)
        for n in (4, 9, 3, 200, 5):
            exe.run_async({"x": rows(n)}).wait(WAIT_S)
            assert exe._core.find_race() == ""
        assert exe.stats()["stream_waits"] > 0


@pytest.mark.parametrize("workers", WORKERS)
def test_branches_of_runs_with_new_shapes_overlap_by_the_clock_of_the_device(workers):
    exe = compiled(branches(2, 6), 2, workers, device="timed:us=2000")
    exe.run({"x": rows(1, 32)})  # the order comes from what the runs before were like
    with exe.profile() as profile:
        exe.run({"x": rows(2, 32)})
    device = profile.recording.device
    assert sorted(set(device.worker.tolist())) == [0, 1]
    first, second = (device.take(device.worker == stream) for stream in (0, 1))
    assert len(second) == 12
    assert max(first.start[0], second.start[0]) < min(first.end[11], second.end[11])
    for stream in (first, second):
        assert (stream.start[1:] >= stream.end[:-1]).all(), "one stream executes one task at a time"
    last = device.take(device.node == device.node.max())
    assert len(last) == 1
    assert last.start[0] >= max(first.end[11], second.end[11]), "the sum comes after both branches"
    assert exe.stats()["launches"] == 2 * 25


def test_runs_use_the_fewest_events_that_the_order_needs():
    exe = compiled(branches(3, 5), 3, device="timed:us=50")
    for n in (1, 2, 3, 4):
        exe.run({"x": rows(n, 32)})
    before = exe.stats()["stream_waits"]
    exe.run({"x": rows(5, 32)})
    found = re.search(r"node by node: .*3 streams.* (\d+) events, (\d+) waits", exe.explain())
    assert found, exe.explain()
    events, waits = (int(n) for n in found.groups())
    assert exe.stats()["stream_waits"] - before == waits
    # The start, and the ends of the two further branches, which the sum waits for.
    assert (events, waits) == (3, 4)


def test_explain_says_why_there_is_one_stream_or_which_stream_has_a_node():
    exe = compiled(branches(2, 6), None, device="timed:us=4000")
    assert "one stream: no run has been measured yet" in exe.explain()
    exe.run({"x": rows(1, 32)})
    assert re.search(
        r"2 streams: estimated [0-9.]+ us, one stream [0-9.]+ us;.* a launch every [0-9.]+ us", exe.explain()
    )
    assert re.search(r"MatMul 'branch\d_0': task, .*, on stream 1", exe.explain())
    chain = compiled(branches(1, 6), None, device="timed:us=500", fuse=False)
    assert "one stream: no task is independent of the others" in chain.explain()
    assert "one stream: asked for" in compiled(branches(2, 6), 1, device="timed:us=500").explain()
    assert "one stream: one thread" in compiled(branches(2, 6), 2, threads=1).explain()


def test_a_host_that_is_slower_than_the_device_keeps_to_one_stream():
    """Streams cannot hasten what is launched too late."""
    exe = compiled(branches(2, 6), None, device="timed:us=20,tiling=400")
    for n in (1, 2, 3, 4):
        exe.run({"x": rows(n, 32)})
    assert exe.stats()["streams"] == 1
    assert "one stream: " in exe.explain()


def test_runs_on_the_caller_s_thread_take_several_streams_only_where_asked_to():
    graph = branches(3, 4)
    decided, asked = compiled(graph, None, threads=2), compiled(graph, 2, threads=2)
    for n in (1, 2, 3):
        assert np.array_equal(decided(rows(n, 32)), asked(rows(n, 32)))
    assert decided.stats()["stream_waits"] == 0
    assert asked.stats()["stream_waits"] > 0


def test_a_kernel_that_comes_to_need_all_threads_ends_the_branches_of_its_run():
    graph = branches(3, 4, 256)
    one, two = compiled(graph, 1, threads=2), compiled(graph, 2, threads=2)
    for n in (1, 1, 1, 1, 3000, 1, 3000, 3000, 2, 2500):
        feeds = {"x": rows(n, 256)}
        assert_equal(two.run_async(feeds).wait(WAIT_S), one.run_async(feeds).wait(WAIT_S))
    assert two._core.find_race() == ""


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("branch", "ab")
def test_a_kernel_that_fails_on_either_stream_is_raised_once_with_its_name(workers, branch):
    exe = compiled(failing_model(), 2, workers, fuse=False)
    good = {"index_a": np.array([1, 2]), "index_b": np.array([3, 4])}
    bad = {**good, "index_" + branch: np.array([1, 99])}
    want = exe.run(good)
    for _ in range(4):
        before, failing, after = (exe.run_async(feeds) for feeds in (good, bad, good))
        assert_equal(before.wait(WAIT_S), want)
        with pytest.raises(asc.GraphError, match=f"lookup_{branch}"):
            failing.wait(WAIT_S)
        assert_equal(after.wait(WAIT_S), want)
    assert exe.stats()["stream_waits"] > 0


def reshaping_branches(links=4):
    """Two branches that reshape to a given size; one that does not fit fails in infer_shape."""
    nodes = []
    for b in "ab":
        before = "x"
        for i in range(links):
            nodes.append(h.make_node("Tanh", [before], [f"t{b}{i}"]))
            nodes.append(h.make_node("Reshape", [f"t{b}{i}", f"s{b}{i}"], [f"x{b}{i}"], name=f"shape_{b}{i}"))
            nodes.append(h.make_node("Softmax", [f"x{b}{i}"], [f"y{b}{i}"]))
            before = f"y{b}{i}"
    nodes.append(h.make_node("Add", [f"ya{links - 1}", f"yb{links - 1}"], ["y"]))
    inputs = [info("x", shape=["n", 16])] + [info(f"s{b}{i}", T.INT64, [2]) for b in "ab" for i in range(links)]
    return model(nodes, inputs, [info("y")]), {f"s{b}{i}": np.array([-1, 16]) for b in "ab" for i in range(links)}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("at", ["a0", "b0", "b2", "b3"])
def test_a_stage_that_fails_anywhere_leaves_the_next_run_right(workers, at):
    graph, fits = reshaping_branches()
    exe, one = compiled(graph, 2, workers, fuse=False), compiled(graph, 1, fuse=False)
    exe.run({"x": rows(2)} | fits)
    for n in (3, 40, 5):
        good = {"x": rows(n)} | fits
        flying = exe.run_async(good)
        with pytest.raises(asc.GraphError, match=f"shape_{at}"):
            exe.run_async(good | {f"s{at}": np.array([5, 7])}).wait(WAIT_S)
        after = exe.run_async(good)
        assert_equal(flying.wait(WAIT_S), one.run(good))
        assert_equal(after.wait(WAIT_S), one.run(good))
        assert exe._core.find_race() == ""
    assert exe.stats()["stream_waits"] > 0


@pytest.mark.parametrize("workers", WORKERS)
def test_cancelled_runs_leave_the_others_alone(workers):
    exe = compiled(branches(3, 3), 3, workers, device="timed:us=200")
    exe.run({"x": rows(1, 32)})
    for _ in range(5):
        runs = [exe.run_async({"x": rows(n, 32)}) for n in (2, 3, 4, 5)]
        was_cancelled = runs[1].cancel()
        runs[0].wait(WAIT_S)
        if was_cancelled:
            with pytest.raises(asc.RunCancelledError):
                runs[1].wait(WAIT_S)
        runs[2].wait(WAIT_S)
        runs[3].wait(WAIT_S)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_executable_dropped_with_runs_in_flight_completes_them(workers):
    for _ in range(5):
        exe = compiled(branches(3), 3, workers, device="timed:us=50")
        runs = [exe.run_async({"x": rows(n, 32)}) for n in (1, 2, 2, 3)]
        runs[2].cancel()
        del exe
        runs[3].wait(WAIT_S)
        del runs


@pytest.mark.parametrize("workers", WORKERS)
def test_exhausted_memory_waits_for_all_streams_before_it_is_an_error(workers):
    graph = branches(3, 5)
    exe, one = compiled(graph, 3, workers, memory_limit_bytes=1 << 20), compiled(graph, 1)
    for n in (8, 100, 700, 1200, 900, 1300, 300):
        feeds = {"x": rows(n, 32)}
        assert_equal(exe.run_async(feeds).wait(WAIT_S), one.run(feeds))
    with pytest.raises(asc.OutOfMemoryError, match="limit 1048576"):
        exe.run_async({"x": rows(20_000, 32)}).wait(WAIT_S)
    assert_equal(exe.run_async({"x": rows(8, 32)}).wait(WAIT_S), one.run({"x": rows(8, 32)}))
    assert exe.stats()["pool_retries"] > 0
    assert exe.stats()["device_bytes"] <= 1 << 20


@pytest.mark.parametrize("workers", WORKERS)
def test_bodies_of_loops_and_data_dependent_shapes_work_on_streams(workers):
    body_nodes = [
        h.make_node("Tanh", ["v"], ["p"]),
        h.make_node("Softmax", ["p"], ["q"]),
        h.make_node("Sin", ["v"], ["r"]),
        h.make_node("Softmax", ["r"], ["s"]),
        h.make_node("Add", ["q", "s"], ["out"]),
        h.make_node("Identity", ["go"], ["still"]),
    ]
    body = h.make_graph(
        body_nodes,
        "body",
        [info("i", T.INT64, []), info("go", T.BOOL, []), info("v", shape=None)],
        [info("still", T.BOOL, []), info("out", shape=None)],
    )
    nodes = [
        h.make_node("Loop", ["count", "", "x"], ["looped"], body=body),
        h.make_node("Cos", ["looped"], ["c"]),
        h.make_node("Exp", ["looped"], ["e"]),
        h.make_node("Sub", ["c", "e"], ["d"]),
        h.make_node("NonZero", ["d"], ["where"]),
        h.make_node("Cast", ["where"], ["y"], to=T.FLOAT),
    ]
    inputs = [info("x", shape=["n", 16]), info("count", T.INT64, [])]
    graph = model(nodes, inputs, [info("y"), info("d")])
    one, several = compiled(graph, 1, fuse=False), compiled(graph, 2, workers, fuse=False)
    for n, count in ((3, 2), (5, 4), (2, 1), (40, 5), (3, 0), (7, 3)):
        feeds = {"x": rows(n), "count": np.array(count)}
        assert_equal(several.run_async(feeds).wait(WAIT_S), one.run(feeds))
    assert several.stats()["stream_waits"] > 0
