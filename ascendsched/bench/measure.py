"""Measures one model: results first, then speed, then each runtime in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from ascendsched.bench.child import measure_cold
from ascendsched.bench.difference import compare
from ascendsched.bench.result import KEEP, Bench, Case, Row
from ascendsched.bench.runtimes import PEER, Array, Arrays, OnnxRuntime, Ours, Runtime, has_peer, versions
from ascendsched.bench.timing import percentile, time_in_turn
from ascendsched.errors import AscendSchedError, UnsupportedError

Show = Callable[[str], None]
#: Of one set of shapes: its name, the inputs, and notes on what was assumed.
Inputs = tuple[str, Mapping[str, Array], list[str]]
_Call = Callable[[], object]


def bench_model(
    model: str, modes: Sequence[str], threads: int, rounds: int, make_inputs: Callable[[Ours], list[Inputs]], show: Show
) -> Bench:
    """Compares the modes of ascendsched with each other, and with onnxruntime where it is installed.

    Parameters
    ----------
    model
        Path of the ONNX file.
    modes
        Modes of ascendsched.
    threads
        Threads of every runtime.
    rounds
        Blocks of timed calls for each way to run the model.
    make_inputs
        The sets of inputs, made for the compiled model.
    show
        Told what is being done.

    Raises
    ------
    AscendSchedError
        Where ascendsched cannot run the model or the inputs do not fit it.
    """
    show(f"compiling {model}")
    try:
        runtimes: dict[str, Runtime] = {mode: Ours(model, mode, threads) for mode in modes}
    except UnsupportedError as error:
        raise UnsupportedError(f"{error}; {KEEP}") from None
    first = next(iter(runtimes.values()))
    assert isinstance(first, Ours)  # noqa: S101 - made above
    inputs = make_inputs(first)
    problem = ""
    if has_peer():
        try:
            runtimes[PEER] = OnnxRuntime(model, threads)
        except UnsupportedError as error:
            problem = str(error)
    cases = []
    for name, feeds, notes in inputs:
        case = Case(name, notes=list(notes))
        if problem:
            case.rows.append(Row(PEER, False, problem=problem))
        _measure_case(case, runtimes, feeds, rounds, threads, show)
        for runtime in runtimes:
            show(f"{name}: memory of {runtime}")
            _add_cold(case, runtime, model, threads, feeds)
        cases.append(case)
    return Bench(model, threads, _reference_name(runtimes), cases, versions())


def _measure_case(
    case: Case, runtimes: Mapping[str, Runtime], feeds: Arrays, rounds: int, threads: int, show: Show
) -> None:
    """Fills the case's rows; only those with right results are timed."""
    show(f"{case.shapes}: checking results")
    reference = _reference(case, runtimes, feeds)
    timed: list[tuple[Row, _Call]] = []
    for name, runtime in runtimes.items():
        if name == PEER and any(row.is_peer and row.problem for row in case.rows):
            continue
        for row, call, results in _ways(case, name, runtime, feeds, reference):
            case.rows.append(row)
            difference = compare(results, reference)
            row.max_error = difference.max_error
            if difference.is_wrong:
                row.problem = f"'{difference.where}' differs from the reference by {difference.max_error:.2e}"
            else:
                timed.append((row, call))
    cpus, load = os.cpu_count() or 1, os.getloadavg()[0]
    if load > cpus / 2:
        case.notes.append(f"the machine is busy (load {load:.1f} on {cpus} CPUs): times vary, repeat when it is quiet")
    show(f"{case.shapes}: timing")
    for (row, _), times in zip(timed, time_in_turn([call for _, call in timed], rounds, threads), strict=True):
        row.p50_ms, row.p99_ms, row.runs = percentile(times, 0.5), percentile(times, 0.99), len(times)


def _reference(case: Case, runtimes: Mapping[str, Runtime], feeds: Arrays) -> dict[str, Array]:
    """onnxruntime's results; those of our first mode where it is not there or cannot run the model."""
    if PEER in runtimes:
        try:
            return runtimes[PEER].run(feeds)
        except UnsupportedError as error:
            case.rows.append(Row(PEER, False, problem=str(error)))
    else:
        case.notes.append("no other runtime to check against: errors are against our first mode")
    return next(runtime for name, runtime in runtimes.items() if name != PEER).run(feeds)


def _ways(
    case: Case, name: str, runtime: Runtime, feeds: Arrays, reference: Arrays
) -> Iterator[tuple[Row, _Call, dict[str, Array]]]:
    """The ways to run one runtime: its row, the timed call, and its results."""
    yield Row(name, False), lambda: runtime.run(feeds), runtime.run(feeds)
    try:
        call, written = runtime.bind(feeds, reference)
        call()
    except (AscendSchedError, RuntimeError) as error:
        case.notes.append(f"{name}: results cannot be bound: {error}")
    else:
        yield Row(name, True), call, written


def _add_cold(case: Case, runtime: str, model: str, threads: int, feeds: Arrays) -> None:
    rows = [row for row in case.rows if row.runtime == runtime and not row.is_bound and not row.problem]
    if not rows:
        return
    cold = measure_cold(runtime, model, threads, feeds)
    if isinstance(cold, str):
        case.notes.append(f"{runtime}: no figures from a fresh process: {cold}")
    else:
        rows[0].cold = cold


def _reference_name(runtimes: Mapping[str, Runtime]) -> str:
    return PEER if PEER in runtimes else f"ascendsched {next(iter(runtimes))}"
