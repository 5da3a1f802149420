"""What does the host pay for a run in each mode, as chains grow, and how even are runs?

The null device executes nothing, so that only the host is timed: "submit" is the part that hands the run to the device
(submitting the chain, or launching every task), as a profile shows it; "start" is the time until an asynchronous run is
on its way, its executor awake, from Python and back; "CPU" is the process's time per synchronous run on fixed buffers,
the least of several turns. Host mode replays what it has launched once; "node by node" is host mode that keeps nothing.
Then, on the cpu device, the spread of many bound runs of one chain.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from time import perf_counter_ns, process_time_ns

import numpy as np
from command import main
from harness import Array, Effort, Figures, Table
from models import sequence_model

import ascendsched as asc
from ascendsched.profile import STAGES

WIDTH = 16
SHAPE = (4, WIDTH)
MODES = ("host", "sink")
NODE_BY_NODE = "host, node by node"
WAYS = ("host", NODE_BY_NODE, "sink")


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table of the null device and one of the spread."""
    yield _null_device(300 if effort.is_quick else 5_000)
    yield _spread(2_000 if effort.is_quick else 100_000)


def _chain(tasks: int, device: str, way: str) -> asc.Executable:
    model = sequence_model(SHAPE, SHAPE, [("Tanh", {}, {})] * tasks)
    options = asc.Options(fuse=False, schedule_cache_bytes=0) if way == NODE_BY_NODE else asc.Options(fuse=False)
    return asc.compile(model, device=device, mode=way.split(",", maxsplit=1)[0], threads=1, options=options)


def _null_device(runs: int) -> Table:
    table = Figures("null device", "run", [])
    table.headings = ("submit, us: min", "median", "start, us: min", "median", "CPU, us", "CPU / host's")
    x = np.zeros(SHAPE, np.float32)
    for tasks in (10, 1_000, 10_000):
        executables = {way: _chain(tasks, "null", way) for way in WAYS}
        cpu = _cpu_us(executables, runs)
        for way, executable in executables.items():
            starts = []
            for _ in range(runs):
                begin = perf_counter_ns()
                run = executable.run_async({"x": x})
                starts.append(perf_counter_ns() - begin)
                run.wait()
            started = [min(starts) / 1e3, float(np.median(starts)) / 1e3]
            figures = [*_submit_us(executable), *started, cpu[way], cpu[way] / cpu["host"]]
            table.rows.append((f"{tasks:,} tasks, {way}", figures))
    return table


def _cpu_us(executables: Mapping[str, asc.Executable], runs: int) -> dict[str, float]:
    """The least CPU time of a bound run, of ten turns of every way."""
    buffers = {"x": np.zeros(SHAPE, np.float32)}, {"y": np.zeros(SHAPE, np.float32)}
    bindings = {way: executable.bind(*buffers) for way, executable in executables.items()}
    least = dict.fromkeys(bindings, float("inf"))
    for _ in range(10):
        for way, binding in bindings.items():
            run = binding.run
            for _ in range(3):
                run()
            begin = process_time_ns()
            for _ in range(runs):
                run()
            least[way] = min(least[way], (process_time_ns() - begin) / runs / 1e3)
    return least


def _submit_us(executable: asc.Executable) -> tuple[float, float]:
    """The least and the median time of a run that handing tasks to the device takes.

    On a busy machine the executor may have gone to sleep, and the median then holds what waking it costs.
    """
    x = np.zeros(SHAPE, np.float32)
    with executable.profile() as profile:
        for _ in range(50):
            executable.run_async({"x": x}).wait()
    host = profile.recording.host
    handing = np.isin(host.stage, [STAGES.index("launch"), STAGES.index("submit")])
    spent = np.bincount(host.run[handing], weights=(host.end - host.start)[handing])
    spent = spent[spent > 0]
    return float(spent.min()) / 1e3, float(np.median(spent)) / 1e3


def _spread(runs: int) -> Table:
    table = Figures(f"cpu device, chain of 300, {runs:,} bound runs", "run", [])
    table.headings = ("us: median", "p99", "p99 / median")
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    bindings = {mode: _chain(300, "cpu", mode).bind({"x": x}) for mode in MODES}
    times: dict[str, list[int]] = {mode: [] for mode in MODES}
    results: dict[str, Array] = {}
    for binding in bindings.values():
        for _ in range(10):
            binding.run()
    for _ in range(runs):
        for mode, binding in bindings.items():
            begin = perf_counter_ns()
            result = binding.run()
            times[mode].append(perf_counter_ns() - begin)
            results[mode] = result["y"]
    if not np.array_equal(results["host"], results["sink"]):
        raise AssertionError("the modes differ")
    for mode in MODES:
        middle, late = np.percentile(times[mode], [50, 99]) / 1e3
        table.rows.append((mode, [float(middle), float(late), float(late / middle)]))
    return table


if __name__ == "__main__":
    sys.exit(main(__doc__, {"submit": measure}))
