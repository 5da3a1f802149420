"""Many threads on one executable. Runs in `make test`, and under ThreadSanitizer and AddressSanitizer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ascendsched as asc

pytestmark = pytest.mark.sanitize

THREADS = 4
ROUNDS = 25
DEADLINE_S = 120.0
MODES = ["host", "sink", "auto"]


def gather_model() -> onnx.ModelProto:
    """y = softmax(x @ w) + table[index], with a symbolic number of rows."""
    rng = np.random.default_rng(1)
    constants = {"w": rng.standard_normal((16, 16)), "table": rng.standard_normal((8, 16))}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Softmax", ["p"], ["q"], axis=-1),
        helper.make_node("Gather", ["table", "index"], ["g"], name="lookup"),
        helper.make_node("Add", ["q", "g"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 16]),
        helper.make_tensor_value_info("index", TensorProto.INT64, [1]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 16])]
    initializers = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "gather", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def feeds(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    rows = 1 + seed % 7
    return {"x": rng.standard_normal((rows, 16)).astype(np.float32), "index": np.array([seed % 8])}


def in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs `work(thread number)` in threads that start together; raises the first error of any of them."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def body(number: int) -> None:
        try:
            barrier.wait(DEADLINE_S)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


@pytest.fixture(scope="module")
def expected() -> dict[int, Any]:
    exe = asc.compile(gather_model(), mode="host", threads=1)
    return {seed: exe.run(feeds(seed))["y"] for seed in range(THREADS * ROUNDS)}


@pytest.mark.parametrize("mode", MODES)
def test_threads_sharing_an_executable_get_their_own_results(mode: str, expected: dict[int, Any]) -> None:
    exe = asc.compile(gather_model(), mode=mode, threads=1)

    def work(number: int) -> None:
        for seed in range(number, THREADS * ROUNDS, THREADS):
            assert np.array_equal(exe.run(feeds(seed))["y"], expected[seed])

    in_threads(work)


@pytest.mark.parametrize("mode", MODES)
def test_runs_in_flight_complete_with_their_own_results(mode: str, expected: dict[int, Any]) -> None:
    exe = asc.compile(gather_model(), mode=mode, threads=1)

    def work(number: int) -> None:
        seeds = range(number, THREADS * ROUNDS, THREADS)
        runs = [(seed, exe.run_async(feeds(seed))) for seed in seeds]
        for seed, run in runs:
            assert np.array_equal(run.wait(timeout=DEADLINE_S)["y"], expected[seed])

    in_threads(work)


@pytest.mark.parametrize("mode", MODES)
def test_each_thread_may_run_its_own_binding(mode: str, expected: dict[int, Any]) -> None:
    exe = asc.compile(gather_model(), mode=mode, threads=1)

    def work(number: int) -> None:
        mine = feeds(number)
        y = np.zeros_like(expected[number])
        binding = exe.bind(mine, outputs={"y": y})
        for seed in range(number, THREADS * ROUNDS, 7 * 8):  # the same rows and index
            mine["x"][...] = feeds(seed)["x"]
            binding.run()
            assert np.array_equal(y, expected[seed])

    in_threads(work)


@pytest.mark.parametrize("mode", MODES)
def test_failing_run_disturbs_no_other(mode: str, expected: dict[int, Any]) -> None:
    exe = asc.compile(gather_model(), mode=mode, threads=1)

    def work(number: int) -> None:
        for seed in range(number, THREADS * ROUNDS, THREADS):
            if number == 0:
                with pytest.raises(asc.AscendSchedError, match="lookup"):
                    exe.run(feeds(seed) | {"index": np.array([99])})
            assert np.array_equal(exe.run(feeds(seed))["y"], expected[seed])

    in_threads(work)


def test_small_caches_change_no_result(expected: dict[int, Any]) -> None:
    options = asc.Options(tiling_cache_bytes=2048, schedule_cache_bytes=4096)
    exe = asc.compile(gather_model(), mode="auto", threads=1, options=options)

    def work(number: int) -> None:
        for seed in range(number, THREADS * ROUNDS, THREADS):
            assert np.array_equal(exe.run(feeds(seed))["y"], expected[seed])

    in_threads(work)


def test_threads_may_compile_at_the_same_time(expected: dict[int, Any]) -> None:
    def work(number: int) -> None:
        for seed in range(number, 3 * THREADS, THREADS):
            exe = asc.compile(gather_model(), mode=MODES[seed % 3], threads=1)
            assert np.array_equal(exe.run(feeds(seed))["y"], expected[seed])

    in_threads(work)


@pytest.mark.parametrize("device", ["cpu", "null", "sim", "timed"])
@pytest.mark.parametrize("mode", MODES)
def test_executable_dropped_with_runs_in_flight_completes_them(device: str, mode: str) -> None:
    def work(number: int) -> None:
        for round_ in range(3):
            exe = asc.compile(gather_model(), device=device, mode=mode, threads=1)
            runs = [exe.run_async(feeds(seed)) for seed in range(number, number + 5)]
            del exe
            if round_ % 2:
                for run in runs:
                    run.wait(timeout=DEADLINE_S)

    in_threads(work, 2)


def test_profiling_while_other_threads_run(expected: dict[int, Any]) -> None:
    exe = asc.compile(gather_model(), mode="auto", threads=1)

    def work(number: int) -> None:
        for seed in range(number, THREADS * ROUNDS, THREADS):
            if number == 0:
                with exe.profile() as profile:
                    exe.run(feeds(seed))
                assert profile.verdict.verdict
            else:
                assert np.array_equal(exe.run(feeds(seed))["y"], expected[seed])

    in_threads(work)


@pytest.mark.parametrize("workers", [0, 2])
def test_executables_in_many_threads_share_tilings_and_agree(workers: int) -> None:
    """Every thread meets the same new shapes at the same time: each tiling is made once, and all results are right."""
    model = gather_model()
    options = asc.Options(pipeline_workers=workers, schedule_cache_bytes=0, fuse=False)
    want = {s: asc.compile(model, mode="sink", threads=1).run(feeds(s))["y"] for s in range(ROUNDS)}

    def work(number: int) -> None:
        exe = asc.compile(model, mode="host", threads=1, options=options)
        for seed in range(ROUNDS):
            runs = [exe.run_async(feeds(s)) for s in (seed, (seed + number) % ROUNDS)]
            assert np.array_equal(runs[0].wait(DEADLINE_S)["y"], want[seed])
            runs[1].wait(DEADLINE_S)
        exe.resize_caches(1000 * number, 0)
        assert np.array_equal(exe.run(feeds(3))["y"], want[3])

    in_threads(work)


def test_repeated_calls_from_many_threads_give_everybody_his_own_result() -> None:
    exe = asc.compile(gather_model(), threads=1)
    want = {s: exe.run(feeds(s))["y"] for s in (0, 7, 14, 21)}  # equal shapes, different contents

    def work(number: int) -> None:
        seed = 7 * number
        mine = feeds(seed)
        bound = np.empty_like(want[seed])
        binding = exe.bind(mine, outputs={"y": bound})
        for _ in range(ROUNDS * 8):
            assert np.array_equal(exe.run(mine)["y"], want[seed])
            binding.run()
            assert np.array_equal(bound, want[seed])

    in_threads(work)
