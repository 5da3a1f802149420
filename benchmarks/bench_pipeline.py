"""Does the pipeline reach its limit: the slowest stage, the CPUs, or the device?

The timed device's kernels take a set time without a CPU; making a tiling and launching keep a CPU busy for a set time.
Every run has a new shape, so that every tiling is made anew. The limit is the largest of: the slowest stage (resolving
or launching, as a profile of serial runs shows it: the set time and what the scheduler adds), the host's CPU time
divided by the CPUs, and the device's time. The CPU time is that of serial or of pipelined runs, whichever is less: what
a pipeline adds by waking and spinning does not raise its limit. A run is asynchronous: the device has its own thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import count
from statistics import median
from time import perf_counter_ns, process_time_ns

import numpy as np
from command import main
from harness import Effort, Figures, Table
from models import sequence_model

import ascendsched as asc
from ascendsched.profile import STAGES

TASKS = 400
#: Microseconds: a kernel, making a tiling, a launch.
CASES = ((2, 5, 5), (2, 10, 5), (2, 5, 10), (8, 5, 5), (20, 5, 5))


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Every layer a different operator instance, so that no tiling serves two nodes.
    layers = [("LeakyRelu", {}, {"alpha": 0.001 * (i + 1)}) for i in range(TASKS)]
    model = sequence_model(["n", 4], ["n", 4], layers)
    sizes = count(1)
    table = Figures("us a task", "task", [])
    table.headings = ("serial", "pipelined", "auto", "slowest stage", "limit", "pipelined / limit", "CPU, pipelined")
    for kernel, tiling, launch in CASES:
        device = f"timed:us={kernel},tiling={tiling},launch={launch}"
        times = {w: _time(model, device, w, cpus, sizes, effort) for w in (0, 1, -1)}
        serial, pipelined, auto = (times[w][0] for w in (0, 1, -1))
        slowest = _slowest_stage(model, device, cpus, sizes)
        limit = max(kernel, slowest, min(times[0][1], times[1][1]) / cpus)
        row = [serial, pipelined, auto, slowest, limit, pipelined / limit, times[1][1]]
        table.rows.append((f"kernel {kernel}, tiling {tiling}, launch {launch} us", row))
    executable = asc.compile(model, device="timed:us=1", mode="host", threads=cpus)
    before = executable.stats()["worker_cpu_ns"]
    executable.run_async({"x": np.zeros((3, 4), np.float32)}).wait()
    table.notes.append(f"{cpus} CPUs; workers that never ran used {before} ns of CPU time")
    yield table


def _time(
    model: object, device: str, workers: int, cpus: int, sizes: Iterator[int], effort: Effort
) -> tuple[float, float]:
    """Median wall and CPU microseconds a task, over runs of shapes that were never seen."""
    options = asc.Options(pipeline_workers=workers, schedule_cache_bytes=0, fuse=False)
    executable = asc.compile(model, device=device, mode="host", threads=cpus, options=options)
    wall, cpu = [], []
    for _ in range(3 + effort.samples):
        feeds = {"x": np.zeros((next(sizes), 4), np.float32)}
        begin, cpu_begin = perf_counter_ns(), process_time_ns()
        executable.run_async(feeds).wait()
        wall.append((perf_counter_ns() - begin) / 1e3 / TASKS)
        cpu.append((process_time_ns() - cpu_begin) / 1e3 / TASKS)
    return median(wall[3:]), median(cpu[3:])


def _slowest_stage(model: object, device: str, cpus: int, sizes: Iterator[int]) -> float:
    """Microseconds a task: the larger of the medians of resolving and launching, of three profiled serial runs."""
    options = asc.Options(pipeline_workers=0, schedule_cache_bytes=0, fuse=False)
    executable = asc.compile(model, device=device, mode="host", threads=cpus, options=options)
    resolving, launching = [], []
    for _ in range(3):
        with executable.profile() as profile:
            executable.run_async({"x": np.zeros((next(sizes), 4), np.float32)}).wait()
        host = profile.recording.host
        spent = {name: (host.end - host.start)[host.stage == STAGES.index(name)] for name in STAGES}
        resolving.append(float(spent["infer_shape"].sum() + spent["tiling"].sum()) / 1e3 / TASKS)
        launching.append(float(spent["launch"].sum()) / 1e3 / TASKS)
    return max(median(resolving), median(launching))


if __name__ == "__main__":
    sys.exit(main(__doc__, {"pipeline": measure}))
