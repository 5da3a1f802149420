"""How near do the small models come to what the core can do?

For every model and shape of the catalogue that onnxruntime runs in less than a millisecond; one thread, sink mode. The
floor counts two things at the rates that this core reached in the same turns: matrix products and convolutions as fast
as products from registers, and weights as fast as memory of their size is read, once in a run or in every step of a
recurrent network but the first, whose state may be zero. Activations, movement and dispatch are free in it. The two are
added, although kernels do a part of them at once. Where floor / onnxruntime is near 0.5, kernels can hardly be twice as
fast as onnxruntime.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from catalogue import MISSING, catalogue_models
from command import main
from harness import PEER, Array, Effort, Figures, Table
from native_library import compiler
from peaks import Peaks

import ascendsched as asc
from ascendsched.demo.peers import create_session, has_onnxruntime
from ascendsched.sim.work import PRODUCTS, RECURRENT, elements, size_of, work_of
from ascendsched.tasks import Operand, Task

LIMIT_US = 1_000.0
CALLS = 5  # a sample
Feeds = Mapping[str, Array]


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table."""
    table = Figures("model, shapes", "run", [])
    table.headings = (f"us {PEER}", "us", "floor", f"floor / {PEER}", f"us / {PEER}", "floor / us")
    models = catalogue_models() if has_onnxruntime() and compiler() else []
    if not models:
        table.notes.append(f"{MISSING}; needs {PEER} and a C++ compiler too")
    for name, load in models:
        try:
            path, examples = load()
        except (FileNotFoundError, ImportError) as error:
            table.notes.append(f"{name}: {' '.join(str(error).split())[:100]}")
            continue
        _add_rows(table, name, path, examples, effort)
    yield table


def _add_rows(table: Figures, name: str, path: str, examples: Sequence[Feeds], effort: Effort) -> None:
    session = create_session(path, 1)
    executable = asc.compile(path, mode="sink", threads=1)
    for feeds in examples:
        run, run_peer = partial(executable.run, feeds), partial(session.run, None, feeds)
        if min(_time_us(run_peer, 1) for _ in range(3)) > 1.5 * LIMIT_US:
            continue
        tasks = _tasks_of_a_run(executable, feeds)
        peaks = Peaks()
        for task, _ in tasks:
            peaks.note_size(_bytes_of_step(task))
        total = sum(_constant_bytes(task) for task, _ in tasks)
        peaks.note_size(total)
        ours, peer = [], []
        for _ in range(effort.samples):
            peaks.sample()
            ours.append(_time_us(run, CALLS))
            peer.append(_time_us(run_peer, CALLS))
        us, us_peer = min(ours), min(peer)
        if us_peer > LIMIT_US:
            continue
        floor = sum(_floor_ns(task, peaks, total) * times for task, times in tasks) / 1e3
        shapes = " ".join("x".join(map(str, x.shape)) for x in list(feeds.values())[:2] if x.ndim)
        table.rows.append((f"{name}, {shapes}", [us_peer, us, floor, floor / us_peer, us / us_peer, floor / us]))


def _time_us(call: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - begin) / 1e3 / calls


def _tasks_of_a_run(executable: asc.Executable, feeds: Feeds) -> list[tuple[Task, float]]:
    """The tasks that ran, and how often in one run."""
    runs = 3
    with executable.profile() as profile:
        for _ in range(runs):
            executable.run(dict(feeds))
    nodes = profile.recording.device.node
    counts = np.bincount(nodes[nodes >= 0])
    return [(t, counts[t.number] / runs) for t in executable.tasks() if t.number < len(counts) and counts[t.number]]


def _bytes(operand: Operand | None) -> int:
    return elements(operand) * size_of(operand.dtype, 4) if operand else 0


def _constant_bytes(task: Task) -> int:
    return sum(_bytes(i) for i in task.inputs if i and i.is_constant and len(i.shape) >= 2)


def _bytes_of_step(task: Task) -> int:
    """What each step of one direction reads of its weights; 0 without steps."""
    state = task.inputs[2] if task.op in RECURRENT else None
    return _bytes(state) // state.shape[0] if state else 0


def _floor_ns(task: Task, peaks: Peaks, total: int) -> float:
    """`total`: bytes of all weights, which a run reads at the rate of memory of that size."""
    is_bytes = any(i and i.is_constant and i.dtype in ("int8", "uint8") and len(i.shape) >= 2 for i in task.inputs)
    peak = peaks.bytes if is_bytes and peaks.bytes else peaks.floats
    if task.op in RECURRENT:
        x, weights, state = task.inputs[:3]
        if x is None or weights is None or state is None:
            return 0.0
        steps, batch = x.shape[:2]
        directions = weights.shape[0]
        read = _bytes(weights) / peaks.read(total)
        step = max(
            2.0 * batch * elements(state) / directions / peak,
            _bytes_of_step(task) / peaks.read(_bytes_of_step(task)),
        )
        return max(2.0 * steps * batch * elements(weights) / peak, read) + (steps - 1) * directions * step
    if sum(op in PRODUCTS for op in task.parts or (task.op,)) != 1:
        return 0.0
    return max(work_of(task).matrix * _share_inside(task) / peak, _constant_bytes(task) / peaks.read(total))


def _share_inside(task: Task) -> float:
    """Of the products of a convolution that keeps its extents: those that are not with its padding."""
    weights = next((i for i in task.inputs if i and i.is_constant and len(i.shape) >= 3), None)
    result, x = task.outputs[0], next((i for i in task.inputs if i and not i.is_constant), None)
    if "Conv" not in (task.parts or (task.op,)) or not weights or not result or not x:
        return 1.0
    spatial = slice(1, -1) if "Transpose" in task.parts else slice(2, None)
    share = 1.0
    for extent, before, window in zip(result.shape[spatial], x.shape[spatial], weights.shape[2:], strict=False):
        if extent == before:
            inside = sum(max(0, extent - abs(offset - window // 2)) for offset in range(window))
            share *= inside / (extent * window)
    return share


if __name__ == "__main__":
    sys.exit(main(__doc__, {"floor": measure}))
