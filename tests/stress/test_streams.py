"""Many threads on executables whose runs use several streams. Also run under ThreadSanitizer and AddressSanitizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ascendsched as asc
from tests.stress.test_threads import THREADS, in_threads
from tests.unit.test_streams import branches, failing_model, random_graph

pytestmark = pytest.mark.sanitize

ROUNDS = 20
WAIT_S = 60.0

Arrays = list[NDArray[np.float32]]


def cases(rows: list[int], fuse: bool = True) -> tuple[Arrays, Arrays]:
    """Inputs of `branches` with these rows, and the results of one thread and stream."""
    one = asc.compile(branches(3, 3, 16), mode="sink", threads=1, options=asc.Options(fuse=fuse))
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((count, 16)).astype(np.float32) for count in rows]
    return inputs, [one(x) for x in inputs]


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
@pytest.mark.parametrize("fuse", [True, False])
def test_threads_sharing_streams_get_their_own_results(mode: str, fuse: bool) -> None:
    options = asc.Options(streams=2, fuse=fuse)
    exe = asc.compile(branches(3, 3, 16), mode=mode, threads=2, options=options)
    inputs, expected = cases([1 + i % 3 for i in range(12)], fuse)

    def work(number: int) -> None:
        for i in range(ROUNDS):
            at = (number * 5 + i) % len(inputs)
            if (number + i) % 3:
                assert np.array_equal(exe(inputs[at]), expected[at])
            else:
                runs = [exe.run_async({"x": inputs[at]}) for _ in range(3)]
                if i % 4 == 0:
                    runs[0].cancel()
                assert np.array_equal(runs[2].wait(WAIT_S)["y"], expected[at])

    in_threads(work)
    assert exe.stats()["stream_waits"] > 0


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_threads_sharing_streams_node_by_node_get_their_own_results(workers: int) -> None:
    """No schedule is kept: shapes come and go in any order, with runs in flight, some of them cancelled."""
    options = asc.Options(streams=2, pipeline_workers=workers, schedule_cache_bytes=0)
    exe = asc.compile(branches(3, 3, 16), mode="host", threads=2, options=options)
    inputs, expected = cases([1 + 7 * i % 50 for i in range(12)])

    def work(number: int) -> None:
        for i in range(ROUNDS):
            at = (number * 5 + i) % len(inputs)
            if (number + i) % 3:
                assert np.array_equal(exe(inputs[at]), expected[at])
                continue
            others = [(at + k) % len(inputs) for k in range(3)]
            runs = [exe.run_async({"x": inputs[k]}) for k in others]
            if i % 4 == 0:
                runs[0].cancel()
            for k, run in list(zip(others, runs, strict=True))[1:]:
                assert np.array_equal(run.wait(WAIT_S)["y"], expected[k])

    in_threads(work)
    assert exe.stats()["stream_waits"] > 0
    assert exe._core.find_race() == ""


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_race_free_with_runs_in_flight(seed: int) -> None:
    exe = asc.compile(random_graph(seed, 40), mode="sink", threads=4, options=asc.Options(streams=4, fuse=False))
    feeds = {"x": np.random.default_rng(seed).uniform(-1, 1, (8, 16)).astype(np.float32)}
    expected = exe.run(feeds)
    runs = [exe.run_async(feeds) for _ in range(30)]
    for run in runs:
        assert_equal(run.wait(WAIT_S), expected)
    assert_equal(exe.run(feeds), expected)
    assert exe._core.find_race() == ""


def assert_equal(got: dict[str, Any], want: dict[str, Any]) -> None:
    for name, array in want.items():
        assert np.array_equal(got[name], array), name


def test_failures_on_both_streams_while_others_run() -> None:
    exe = asc.compile(failing_model(), mode="sink", threads=2, options=asc.Options(streams=2, fuse=False))
    good = {"index_a": np.array([1, 2]), "index_b": np.array([3, 4])}
    expected = exe.run(good)["y"]

    def work(number: int) -> None:
        bad = {**good, "index_" + "ab"[number % 2]: np.array([99, 1])}
        for _ in range(ROUNDS):
            failing = exe.run_async(bad)
            assert np.array_equal(exe.run(good)["y"], expected)
            with pytest.raises(asc.GraphError, match="lookup_"):
                failing.wait(WAIT_S)

    in_threads(work, THREADS)


def test_executables_with_streams_come_and_go() -> None:
    model = branches(2, 2, 16)
    x = np.ones((1, 16), np.float32)

    def work(number: int) -> None:
        for i in range(5):
            exe = asc.compile(model, mode="sink", threads=2, options=asc.Options(streams=2))
            exe.run_async({"x": x})
            if i % 2:
                exe(x)

    in_threads(work)
