"""Independent branches on several streams: same bits, ordered memory, errors, what is said about it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx import helper as h

import ascendsched as asc

pytestmark = pytest.mark.sanitize

MODES = ["host", "sink", "auto"]


def branches(count: int = 2, length: int = 4, width: int = 32, rows: object = "n"):
    """y = sum of `count` chains of products and activations on x."""
    rng = np.random.default_rng(count * 100 + length)
    nodes, constants, ends = [], [], []
    for b in range(count):
        value = "x"
        for i in range(length):
            weight, product = f"w{b}_{i}", f"p{b}_{i}"
            constants.append(
                numpy_helper.from_array((rng.standard_normal((width, width)) / 6).astype(np.float32), weight)
            )
            nodes.append(h.make_node("MatMul", [value, weight], [product], name=f"branch{b}_{i}"))
            nodes.append(h.make_node("Softmax" if i % 2 else "Tanh", [product], [f"a{b}_{i}"]))
            value = f"a{b}_{i}"
        ends.append(value)
    nodes.append(h.make_node("Sum", ends, ["y"]))
    info = [h.make_tensor_value_info(n, TensorProto.FLOAT, [rows, width]) for n in ("x", "y")]
    graph = h.make_graph(nodes, "branches", info[:1], info[1:], constants)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9)


def random_graph(seed: int, size: int = 24):
    """A DAG of element-wise operators, reductions and products over equal shapes, with several results."""
    rng = np.random.default_rng(seed)
    nodes, values, constants = [], ["x"], []
    for i in range(size):
        a, b = (values[int(rng.integers(max(0, len(values) - 6), len(values)))] for _ in range(2))
        kind = rng.integers(5)
        out = f"v{i}"
        if kind == 0:
            weight = (rng.standard_normal((16, 16)) / 4).astype(np.float32)
            constants.append(numpy_helper.from_array(weight, f"w{i}"))
            nodes.append(h.make_node("MatMul", [a, f"w{i}"], [out]))
        elif kind == 1:
            nodes.append(h.make_node("Softmax", [a], [out]))
        elif kind == 2:
            nodes.append(h.make_node("Tanh", [a], [out]))
        else:
            nodes.append(h.make_node("Add" if kind == 3 else "Mul", [a, b], [out]))
        values.append(out)
    read = {i for node in nodes for i in node.input}
    results = [v for v in values[1:] if v not in read]
    info = [h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])]
    outs = [h.make_tensor_value_info(v, TensorProto.FLOAT, ["n", 16]) for v in results]
    graph = h.make_graph(nodes, "random", info, outs, constants)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9)


def compiled(model, streams, mode="sink", device="cpu", threads=2, **options):
    return asc.compile(
        model, device=device, mode=mode, threads=threads, options=asc.Options(streams=streams, **options)
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fuse", [True, False])
def test_two_streams_give_the_bits_of_one(mode, fuse):
    model = branches(3)
    one, two = (compiled(model, streams, mode, fuse=fuse) for streams in (1, 2))
    rng = np.random.default_rng(1)
    for n in (1, 7, 7, 7, 3, 7, 3, 3, 1):
        x = rng.standard_normal((n, 32)).astype(np.float32)
        assert np.array_equal(one(x), two(x))
        assert np.array_equal(one(x), two.run_async({"x": x}).wait(60)["y"])
    assert two.stats()["streams"] == 2
    assert two.stats()["stream_waits"] > 0
    assert one.stats()["stream_waits"] == 0
    assert two._core.find_race() == ""


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_on_streams_equal_onnxruntime(seed):
    ort = pytest.importorskip("onnxruntime")
    model = random_graph(seed)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = compiled(model, 2 + seed % 2, "sink" if seed % 3 else "host", threads=3, fuse=bool(seed % 4))
    rng = np.random.default_rng(seed)
    for n in (5, 5, 5, 64, 5, 64, 64):
        x = rng.uniform(-1, 1, (n, 16)).astype(np.float32)
        for got, want in zip(exe.run({"x": x}).values(), session.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert exe._core.find_race() == ""


@pytest.mark.parametrize("seed", range(20))
def test_no_schedule_of_a_random_graph_has_a_race(seed):
    for streams in (1, 2, 4):
        exe = compiled(random_graph(seed, 60), streams, device="null", threads=1)
        exe.warmup([{"x": (4, 16)}])
        assert exe._core.find_race() == ""


@pytest.mark.parametrize("mode", ["sink", "host"])
def test_branches_overlap_on_a_device_whose_kernels_need_no_cpu(mode):
    exe = compiled(branches(2, 6), None, mode, device="timed:us=3000", threads=1)
    feeds = {"x": np.ones((2, 32), np.float32)}
    for _ in range(3):  # host mode keeps a schedule once its shapes came back often enough
        exe.run(feeds)
    with exe.profile() as profile:
        exe.run(feeds)
    device = profile.recording.device
    assert sorted(set(device.worker.tolist())) == [0, 1]
    first, second = (device.take(device.worker == stream) for stream in (0, 1))
    assert len(second) == 12
    assert max(first.start[0], second.start[0]) < min(first.end[11], second.end[11])
    assert (first.start[1:] >= first.end[:-1]).all(), "one stream executes one task at a time"
    wall = device.end.max() - device.start.min()
    assert wall < 0.7 * (device.end - device.start).sum()
    assert "2 streams: estimated" in exe.explain()
    assert ", on stream 1" in exe.explain()


def test_a_trace_has_a_track_for_each_stream(tmp_path):
    exe = compiled(branches(2, 3), 2, device="timed:us=100", threads=1)
    with exe.profile() as profile:
        exe(np.ones((2, 32), np.float32))
    text = (tmp_path / "trace.json").as_posix()
    profile.save_trace(text)
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {"device: timed", "device: timed, stream 1"} <= names
    kernels = [e for e in events if e["ph"] == "X" and e["cat"] == "kernel"]
    assert len(kernels) == 13
    assert len({e["tid"] for e in kernels}) == 2


def test_one_thread_never_uses_several_streams_on_the_cpu():
    exe = compiled(branches(2), 4, threads=1)
    exe(np.ones((2, 32), np.float32))
    assert exe.stats()["streams"] == 1
    assert "one stream: one thread" in exe.explain()


def test_short_branches_stay_on_one_stream_and_explain_why():
    exe = compiled(branches(2), None)
    exe(np.ones((1, 32), np.float32))
    assert exe.stats()["streams"] == 1
    assert "one stream: " in exe.explain()
    assert "one stream: asked for" in explained(compiled(branches(2), 1))


def explained(exe) -> str:
    exe(np.ones((1, 32), np.float32))
    return exe.explain()


def test_long_recurrent_branches_take_two_streams_by_themselves():
    exe = compiled(two_recurrences(), None)
    exe(np.ones((60, 1, 128), np.float32))
    assert exe.stats()["streams"] == 2, exe.explain()
    assert exe._core.find_race() == ""


def two_recurrences():
    rng = np.random.default_rng(3)
    hidden = 256
    constants, nodes = [], []
    for name in "ab":
        for weight, width in (("W", 128), ("R", hidden)):
            values = (rng.standard_normal((1, 3 * hidden, width)) / 20).astype(np.float32)
            constants.append(numpy_helper.from_array(values, weight + name))
        nodes.append(
            h.make_node("GRU", ["x", "W" + name, "R" + name], ["y" + name], hidden_size=hidden, name="gru_" + name)
        )
    nodes.append(h.make_node("Add", ["ya", "yb"], ["y"]))
    info = h.make_tensor_value_info("x", TensorProto.FLOAT, ["t", 1, 128])
    out = h.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = h.make_graph(nodes, "recurrent", [info], [out], constants)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9)


def failing_model():
    """Two branches that look rows up; an index out of range fails one of them."""
    table = numpy_helper.from_array(np.arange(64, dtype=np.float32).reshape(8, 8), "table")
    nodes = []
    for b in "ab":
        nodes += [
            h.make_node("Gather", ["table", "index_" + b], ["g" + b], name="lookup_" + b),
            h.make_node("Tanh", ["g" + b], ["t" + b]),
            h.make_node("Exp", ["t" + b], ["e" + b]),
        ]
    nodes.append(h.make_node("Add", ["ea", "eb"], ["y"]))
    inputs = [h.make_tensor_value_info("index_" + b, TensorProto.INT64, ["n"]) for b in "ab"]
    graph = h.make_graph(nodes, "fails", inputs, [h.make_tensor_value_info("y", TensorProto.FLOAT, None)], [table])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("mode", ["host", "sink"])
@pytest.mark.parametrize("branch", "ab")
def test_a_failure_on_either_stream_is_raised_and_the_next_run_is_right(mode, branch):
    exe = compiled(failing_model(), 2, mode, fuse=False)
    good = {"index_a": np.array([1, 2]), "index_b": np.array([3, 4])}
    want = exe.run(good)["y"]
    for _ in range(4):
        assert np.array_equal(exe.run(good)["y"], want)
    assert exe.stats()["streams"] == 2
    for _ in range(5):
        with pytest.raises(asc.GraphError, match=f"lookup_{branch}"):
            exe.run({**good, "index_" + branch: np.array([1, 99])})
        runs = [exe.run_async(good), exe.run_async({**good, "index_" + branch: np.array([99, 1])}), exe.run_async(good)]
        assert np.array_equal(runs[0].wait(60)["y"], want)
        with pytest.raises(asc.GraphError, match=f"lookup_{branch}"):
            runs[1].wait(60)
        assert np.array_equal(runs[2].wait(60)["y"], want)


def test_an_executable_with_streams_can_be_dropped_with_runs_in_flight():
    for _ in range(10):
        exe = compiled(branches(3), 3, device="timed:us=20", threads=1)
        runs = [exe.run_async({"x": np.ones((n, 32), np.float32)}) for n in (1, 2, 2, 1)]
        runs[1].cancel()
        del exe, runs


def test_cancelling_leaves_the_next_run_right():
    exe = compiled(branches(2), 2)
    x = np.ones((2, 32), np.float32)
    want = exe(x)
    for _ in range(20):
        runs = [exe.run_async({"x": x}) for _ in range(3)]
        was_cancelled = runs[1].cancel()
        assert np.array_equal(runs[2].wait(60)["y"], want)
        if was_cancelled:
            with pytest.raises(asc.RunCancelledError):
                runs[1].wait(60)


def test_schedules_on_streams_share_one_arena_with_others():
    exe = compiled(branches(3, 5), 2, threads=2, schedule_cache_bytes=1 << 20)
    one = compiled(branches(3, 5), 1)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((n, 32)).astype(np.float32) for n in (1, 90, 3, 200, 90, 1, 200, 5)]
    runs = [exe.run_async({"x": x}) for x in inputs]
    for x, run in zip(inputs, runs, strict=True):
        assert np.array_equal(run.wait(60)["y"], one(x))


@pytest.mark.parametrize("value", [0, 17, -1, True, "2", 1.5])
def test_options_refuse_what_is_no_number_of_streams(value):
    with pytest.raises(asc.PlanError, match="streams"):
        asc.Options(streams=value)


def test_the_environment_sets_the_number_of_streams(monkeypatch):
    monkeypatch.setenv("ASCENDSCHED_STREAMS", "1")
    exe = asc.compile(branches(2, 6), device="timed:us=200", mode="sink")
    exe(np.ones((1, 32), np.float32))
    assert "one stream: asked for" in exe.explain()
