"""Host mode on several threads: the same results, errors and memory as on one."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from . import onnx_models

pytestmark = pytest.mark.sanitize
WORKERS = [1, 2, 4]


def compile(model, workers, device="cpu", **options):
    return asc.compile(
        model, device=device, mode="host", threads=1, options=asc.Options(pipeline_workers=workers, **options)
    )


def rows(n, seed=0):
    return np.random.default_rng(seed + n).standard_normal((n, 16)).astype(np.float32)


def checked_chain(count=12):
    """y = x through `count` links; link i fails where idx[i] is out of range."""
    nodes = []
    for i in range(count):
        nodes.append(h.make_node("Gather", ["table", f"i{i}"], [f"g{i}"], name=f"lookup{i}"))
        nodes.append(h.make_node("Add", [f"x{i}", f"g{i}"], [f"x{i + 1}"]))
    inputs = [onnx_models.info("x0", shape=["n", 16])]
    inputs += [onnx_models.info(f"i{i}", T.INT64, [1]) for i in range(count)]
    table = np.arange(64, dtype=np.float32).reshape(4, 16)
    return onnx_models.model(nodes, inputs, [onnx_models.info(f"x{count}")], {"table": table})


def chain_feed(n, bad=None, count=12):
    return {"x0": rows(n)} | {f"i{i}": np.array([9 if i == bad else i % 4]) for i in range(count)}


@pytest.mark.parametrize("workers", WORKERS)
def test_results_are_the_same_bits_as_on_one_thread(workers):
    serial = compile(onnx_models.mlp(layers=9), 0)
    exe = compile(onnx_models.mlp(layers=9), workers)
    sizes = [int(n) for n in np.random.default_rng(workers).integers(1, 40, 60)]
    for n in sizes:
        assert np.array_equal(exe.run_async({"x": rows(n)}).wait()["y"], serial(rows(n)))
    runs = [(n, exe.run_async({"x": rows(n)})) for n in sizes]
    for n, run in runs:
        assert np.array_equal(run.wait()["y"], serial(rows(n)))
    assert exe.stats()["pipelined"] > 0


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("make", [onnx_models.branches, onnx_models.nonzero])
def test_control_flow_and_data_dependent_shapes_work(workers, make):
    serial, exe = compile(make(), 0), compile(make(), workers)
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 2, 7, 1, 9):
        x = {"x": rng.standard_normal((n, 3)).astype(np.float32)}
        want = serial.run(x)
        for name, value in exe.run_async(x).wait().items():
            assert np.array_equal(value, want[name])


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("bad", [0, 6, 11])
def test_a_failing_kernel_anywhere_is_raised_once_with_its_name(workers, bad):
    exe = compile(checked_chain(), workers)
    good = chain_feed(3)
    want = exe.run_async(good).wait()
    flying = [exe.run_async(chain_feed(n)) for n in (4, 5)]
    failing = exe.run_async(chain_feed(6, bad))
    after = exe.run_async(good)
    with pytest.raises(asc.GraphError, match=f"lookup{bad}'"):
        failing.wait()
    for run in flying:
        run.wait()
    for name, value in after.wait().items():
        assert np.array_equal(value, want[name])


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("bad", ["first", "middle", "last"])
def test_a_stage_that_fails_anywhere_leaves_the_next_run_right(workers, bad):
    """Reshape to a size that does not fit fails in infer_shape."""
    links = 7
    at = {"first": 0, "middle": 3, "last": 6}[bad]
    nodes = []
    for i in range(links):
        nodes.append(h.make_node("Tanh", [f"x{i}"], [f"t{i}"]))
        nodes.append(h.make_node("Reshape", [f"t{i}", f"s{i}"], [f"x{i + 1}"], name=f"shape{i}"))
    inputs = [onnx_models.info("x0", shape=["n", 16])]
    inputs += [onnx_models.info(f"s{i}", T.INT64, [2]) for i in range(links)]
    exe = compile(onnx_models.model(nodes, inputs, [onnx_models.info(f"x{links}")]), workers)
    feed = {"x0": rows(3)} | {f"s{i}": np.array([-1, 16]) for i in range(links)}
    want = exe.run_async(feed).wait()[f"x{links}"]
    for _ in range(3):
        run = exe.run_async(feed | {f"s{at}": np.array([5, 5])})
        with pytest.raises(asc.GraphError, match=f"shape{at}"):
            run.wait()
        assert np.array_equal(exe.run_async(feed).wait()[f"x{links}"], want)


@pytest.mark.parametrize("workers", [0, *WORKERS])
def test_after_a_failure_everything_is_placed_anew(workers):
    """What a failed run resolved counts as unchanged in the next one, which must not rely on its places."""
    links = 6
    nodes = []
    for i in range(links):
        nodes.append(h.make_node("Tanh", [f"x{i}"], [f"t{i}"]))
        nodes.append(h.make_node("Reshape", [f"t{i}", f"s{i}"], [f"x{i + 1}"]))
    inputs = [onnx_models.info("x0", shape=["n", 16])]
    inputs += [onnx_models.info(f"s{i}", T.INT64, [2]) for i in range(links)]
    exe = compile(onnx_models.model(nodes, inputs, [onnx_models.info(f"x{links}")]), workers, fuse=False)
    good = {f"s{i}": np.array([-1, 16]) for i in range(links)}
    for small, large in ((2, 3000), (5, 9000)):
        exe.run_async({"x0": rows(small)} | good).wait()
        with pytest.raises(asc.GraphError):
            exe.run_async({"x0": rows(large)} | good | {f"s{links - 1}": np.array([7, 7])}).wait()
        want = rows(large)
        for _ in range(links):
            want = np.tanh(want)
        np.testing.assert_allclose(exe.run_async({"x0": rows(large)} | good).wait()[f"x{links}"], want, atol=1e-5)


@pytest.mark.parametrize("workers", WORKERS)
def test_exhausted_memory_is_given_up_and_tried_again_before_it_is_an_error(workers):
    exe = compile(onnx_models.mlp(layers=6), workers, memory_limit_bytes=1 << 20)
    small = exe.run_async({"x": rows(8)}).wait()["y"]
    for n in (100, 1000, 3000, 5000, 6000, 7000, 1500):
        exe.run_async({"x": rows(n)}).wait()
    with pytest.raises(asc.OutOfMemoryError, match="limit 1048576"):
        exe.run_async({"x": rows(20_000)}).wait()
    assert np.array_equal(exe.run_async({"x": rows(8)}).wait()["y"], small)
    assert exe.stats()["pool_retries"] > 0
    assert exe.stats()["device_bytes"] <= 1 << 20


def test_the_workers_of_a_pipeline_record_their_own_spans():
    exe = compile(onnx_models.mlp(layers=20), 2, device="timed:us=1,tiling=1,launch=1")
    with exe.profile() as p:
        exe.run_async({"x": rows(3)}).wait()
    events = p.recording.host
    assert set(events.worker[events.stage == asc.profile.STAGES.index("alloc")]) == {1}
    assert set(events.worker[events.stage == asc.profile.STAGES.index("launch")]) == {2}
    assert 0 in set(events.worker[events.stage == asc.profile.STAGES.index("infer_shape")])


def test_an_executable_dropped_with_runs_in_flight_completes_them():
    exe = compile(onnx_models.mlp(layers=20), 2, device="timed:us=200")
    runs = [exe.run_async({"x": rows(n)}) for n in (1, 2, 3)]
    del exe
    gc.collect()
    for run in runs:
        run.wait()
    exe = compile(onnx_models.mlp(layers=20), 2, device="timed:us=200")
    exe.run_async({"x": rows(2)})
    del exe
    gc.collect()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_cancelled_run_raises_and_leaves_the_others_alone(workers):
    exe = compile(onnx_models.mlp(layers=3), workers, device="timed:us=20000")
    first, second, third = (exe.run_async({"x": rows(n)}) for n in (1, 2, 3))
    assert second.cancel()
    first.wait()
    with pytest.raises(asc.RunCancelledError, match="cancelled"):
        second.wait()
    third.wait()
    assert not third.cancel()
    third.wait()


def test_explain_names_the_break_even_once_it_is_measured():
    exe = compile(onnx_models.mlp(layers=9), -1, device="timed:us=1")
    assert "not measured yet" in exe.explain()
    exe.run_async({"x": rows(3)}).wait()
    assert "to resolve" in exe.explain()


@pytest.mark.parametrize("bad", [-2, 15, True, "2", 1.5])
def test_a_number_of_workers_out_of_range_is_refused(bad):
    with pytest.raises(asc.PlanError, match="pipeline_workers"):
        asc.Options(pipeline_workers=bad)
