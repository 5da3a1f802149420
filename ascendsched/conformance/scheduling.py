"""Checks of streams, chains, memory and completion. Each is called with the device and a mode."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from ascendsched.conformance.check import (
    WIDTH,
    Subject,
    Unsupported,
    compare,
    expect,
    expected,
    only,
    rows,
)
from ascendsched.errors import OutOfMemoryError, RunCancelledError
from ascendsched.graph import Graph, Tensor
from ascendsched.options import Options

_DEADLINE_S = 120


def results_have_the_shapes_that_inputs_imply(subject: Subject, mode: str) -> None:
    """Shapes that come, go and come back, an empty one among them."""
    exe = subject.compile(subject.carrier(), mode)
    for n in (1, 5, 5, 0, 2, 5):
        shape = only(exe.run(rows(n))).shape
        expect(shape == (n, WIDTH), f"{n} rows give the shape {shape}")


def results_are_those_of_the_cpu(subject: Subject, mode: str) -> None:
    """Or zeros, where the device computes nothing."""
    graph = subject.carrier()
    exe = subject.compile(graph, mode)
    for n in (3, 1, 3, 7, 3):
        got = exe.run(rows(n))
        if subject.computes:
            compare(got, expected(graph, rows(n)))
        else:
            expect(not only(got).any(), "a device that computes nothing gives something else than zeros")


def host_values_are_computed_whatever_the_device_computes(subject: Subject, mode: str) -> None:
    """A shape that arithmetic on another shape gives."""

    def tail(graph: Graph, value: Tensor) -> Tensor:
        count = graph.op("Shape", value, start=0, end=1)
        shape = graph.op("Concat", count, graph.constant(np.array([4, 4])), axis=0)
        result: Tensor = graph.op("Reshape", value, shape)
        return result

    exe = subject.compile(subject.carrier(tail), mode)
    for n in (3, 1, 3, 3):
        shape = only(exe.run(rows(n))).shape
        expect(shape == (n, 4, 4), f"{n} rows give the shape {shape}")


def repeated_runs_give_equal_bits(subject: Subject, mode: str) -> None:
    """The first run and the fiftieth."""
    exe = subject.compile(subject.carrier(), mode)
    first = only(exe.run(rows(4)))
    for i in range(50):
        expect(np.array_equal(only(exe.run(rows(4))), first), f"run {i + 2} differs from run 1")


def runs_in_flight_complete_in_order(subject: Subject, mode: str) -> None:
    """Thirty runs are launched before the last one is waited for."""
    exe = subject.compile(subject.carrier(), mode)
    wanted = {n: only(exe.run(rows(n))) for n in (1, 2, 3)}
    runs = [exe.run_async(rows(1 + i % 3)) for i in range(30)]
    runs[-1].wait(_DEADLINE_S)
    expect(all(run.is_done for run in runs), "the last run has completed, an earlier one has not")
    for i, run in enumerate(runs):
        expect(np.array_equal(only(run.wait(_DEADLINE_S)), wanted[1 + i % 3]), f"run {i} has another run's results")


def executables_can_be_dropped_with_runs_in_flight(subject: Subject, mode: str) -> None:
    """Streams and chains are destroyed after what they run."""
    for _ in range(10):
        exe = subject.compile(subject.carrier(), mode)
        for n in (1, 2, 3):
            exe.run_async(rows(n))


def cancelled_runs_end(subject: Subject, mode: str) -> None:
    """And runs after them have their results."""
    exe = subject.compile(subject.carrier(), mode)
    wanted = only(exe.run(rows(2)))
    for _ in range(10):
        runs = [exe.run_async(rows(2)) for _ in range(5)]
        for run in runs[::2]:
            run.cancel()
        for run in runs:
            with suppress(RunCancelledError):
                expect(np.array_equal(only(run.wait(_DEADLINE_S)), wanted), "a run that was not cancelled differs")
    expect(np.array_equal(only(exe.run(rows(2))), wanted), "a run after cancelled ones differs")


def two_executables_run_at_the_same_time(subject: Subject, mode: str) -> None:
    """Each on a thread of its own."""
    executables = [subject.compile(subject.carrier(), mode) for _ in range(2)]
    wanted = [only(exe.run(rows(3 + i))) for i, exe in enumerate(executables)]
    wrong: list[str] = []

    def work(i: int) -> None:
        for _ in range(50):
            if not np.array_equal(only(executables[i].run(rows(3 + i))), wanted[i]):
                wrong.append(f"executable {i} gives other results beside another one")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not wrong, wrong[0] if wrong else "")


def bound_outputs_are_written(subject: Subject, mode: str) -> None:
    """Every run of a binding writes the caller's array, and reads the inputs as they are then."""
    exe = subject.compile(subject.carrier(), mode)
    (name,) = (output.name for output in exe.outputs)
    x, y = rows(3)["x"], np.full((3, WIDTH), 7, np.float32)
    binding = exe.bind({"x": x}, {name: y})
    for n in (1, 2, 3):
        x[:] = rows(3)["x"] / n
        binding.run()
        expect(np.array_equal(y, only(exe.run({"x": x.copy()}))), f"run {n} of a binding differs")


def shapes_that_depend_on_data_stay_in_bounds(subject: Subject, mode: str) -> None:
    """NonZero, whose result's shape the kernel says."""
    graph = Graph("nonzero")
    graph.output(graph.op("NonZero", graph.input("x", "float32", ("n", 4))))
    exe = subject.compile(graph, mode)
    for n in (3, 1, 3):
        x = np.arange(n * 4, dtype=np.float32).reshape(n, 4) % 3
        got = exe.run({"x": x})
        if subject.computes:
            compare(got, expected(graph, {"x": x}))


def memory_limits_are_kept(subject: Subject, mode: str) -> None:
    """More than the limit is an OutOfMemoryError, and less still runs afterwards."""
    exe = subject.compile(subject.carrier(), mode, Options(memory_limit_bytes=1 << 20))
    only(exe.run(rows(4)))
    try:
        exe.run(rows(1 << 16))
    except OutOfMemoryError:
        expect(only(exe.run(rows(4))).shape == (4, WIDTH), "no run succeeds after one that asked for too much")
    else:
        expect(False, "4 MiB of results fit into 1 MiB")


def launches_and_submits_are_counted(subject: Subject, mode: str) -> None:
    """Host mode launches tasks, sink mode submits chains."""
    exe = subject.compile(subject.carrier(), mode, Options(fuse=False))
    for _ in range(4):
        exe.run(rows(1))
    stats = exe.stats()
    tasks = (stats["launches"] + stats["submitted_tasks"]) // 4
    wanted = {"host": (4 * tasks, 0), "sink": (0, 4), "auto": (tasks, 3)}[mode]
    got = (stats["launches"], stats["submits"])
    expect(got == wanted, f"{got[0]} launches and {got[1]} submits, expected {wanted[0]} and {wanted[1]}")


def kernel_times_are_recorded(subject: Subject, mode: str) -> None:
    """A profile has a span of every task."""
    exe = subject.compile(subject.carrier(), mode)
    exe.run(rows(2))
    with exe.profile() as profile:
        exe.run_async(rows(2)).wait(_DEADLINE_S)
    count = len(profile.recording.device.node)
    if count == 0:
        raise Unsupported("the device tells no times of kernels; asc_host.run_task does")
    expect(count == len(exe.tasks()), f"{count} spans of {len(exe.tasks())} tasks")


CHECKS: list[Callable[[Subject, str], None]] = [
    results_have_the_shapes_that_inputs_imply,
    results_are_those_of_the_cpu,
    host_values_are_computed_whatever_the_device_computes,
    repeated_runs_give_equal_bits,
    runs_in_flight_complete_in_order,
    executables_can_be_dropped_with_runs_in_flight,
    cancelled_runs_end,
    two_executables_run_at_the_same_time,
    bound_outputs_are_written,
    shapes_that_depend_on_data_stay_in_bounds,
    memory_limits_are_kept,
    launches_and_submits_are_counted,
    kernel_times_are_recorded,
]
