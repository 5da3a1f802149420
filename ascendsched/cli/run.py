"""`ascendsched run`: run a model, show what comes out and how long it takes."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from ascendsched.bench.result import format_ms
from ascendsched.cli.common import (
    check_folders,
    describe_shape,
    json_option,
    model_options,
    print_json,
    progress,
    stdout_console,
)
from ascendsched.cli.inputs import input_options, make_inputs, parse_pairs
from ascendsched.profile import Profile


@click.command("run")
@click.argument("model")
@input_options
@click.option("--runs", type=click.IntRange(min=1), default=10, show_default=True, help="Timed runs after the first.")
@click.option("--profile", "trace", metavar="TRACE.json", help="Profile the same runs again and write a trace.")
@model_options()
@json_option
def command(
    model: str,
    files: tuple[str, ...],
    shapes: tuple[str, ...],
    runs: int,
    trace: str | None,
    seed: int,
    device: str,
    mode: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Run the ONNX file MODEL and time it.

    Inputs that are not given are random, of the declared shapes.

    Example: ascendsched run resnet18.onnx --shape x=1,3,224,224 --runs 50 --profile trace.json
    """
    import ascendsched as asc  # --help must not load the core

    check_folders("run", trace)
    given, wanted = parse_pairs(files, "--input"), parse_pairs(shapes, "--shape")
    with progress(quiet=as_json) as show:
        show(f"compiling {model}")
        begin = time.perf_counter_ns()
        executable = asc.compile(model, device=device, mode=mode, threads=threads)
        compile_ns = time.perf_counter_ns() - begin
        feeds, notes = make_inputs(executable.inputs, given, wanted, seed)
        if executable.has_virtual_time:
            notes.append(f"times are this machine's; those of {device} are in the profile")
        show(f"running {runs} times")
        outputs, first_ns, times = _time_runs(executable, feeds, runs)
        profile = _profile_runs(executable, feeds, runs) if trace else None
        path = profile.save_trace(trace) if profile and trace else None
    result = {
        "model": model,
        "device": device,
        "mode": executable.mode,
        "inputs": {name: _describe(array) for name, array in feeds.items()},
        "outputs": {name: _describe(array) for name, array in outputs.items()},
        "compile_ms": compile_ns / 1e6,
        "first_run_ms": first_ns / 1e6,
        "run_ms": {"min": min(times) / 1e6, "median": median(times) / 1e6, "max": max(times) / 1e6},
        "runs": runs,
        "notes": notes,
    }
    if as_json:
        verdict = profile.verdict.to_dict() if profile else None
        print_json("run", {**result, "verdict": verdict, "trace": path})
    else:
        _print(result, profile, path)


def _time_runs(
    executable: Any, feeds: dict[str, NDArray[Any]], runs: int
) -> tuple[dict[str, NDArray[Any]], int, list[int]]:
    begin = time.perf_counter_ns()
    outputs: dict[str, NDArray[Any]] = executable.run(feeds)
    first_ns = time.perf_counter_ns() - begin
    times = []
    for _ in range(runs):
        begin = time.perf_counter_ns()
        executable.run(feeds)
        times.append(time.perf_counter_ns() - begin)
    return outputs, first_ns, times


def _profile_runs(executable: Any, feeds: dict[str, NDArray[Any]], runs: int) -> Profile:
    profile: Profile
    with executable.profile() as profile:
        for _ in range(runs):
            executable.run(feeds)
    return profile


def _describe(array: Any) -> dict[str, Any]:
    ends: list[float | str | None] = [None, None]
    if array is None or isinstance(array, list):
        return {
            "dtype": "nothing" if array is None else "sequence",
            "shape": [len(array or [])],
            "min": None,
            "max": None,
        }
    if array.dtype.kind in "OU":
        return {"dtype": "string", "shape": list(array.shape), "min": None, "max": None}
    if array.size:
        # bfloat16 and bool have no minimum of their own; JSON has no infinity.
        numbers = array if array.dtype.kind in "iuf" else array.astype(np.float32)
        ends = [v if np.isfinite(v) else str(v) for v in (float(numbers.min()), float(numbers.max()))]
    return {"dtype": str(array.dtype), "shape": list(array.shape), "min": ends[0], "max": ends[1]}


def _print(result: dict[str, Any], profile: Profile | None, path: str | None) -> None:
    console = stdout_console()
    table = Table("", "name", "dtype", "shape", "min", "max", box=None, pad_edge=False)
    for side in ("inputs", "outputs"):
        for name, what in result[side].items():
            ends = ["-" if v is None else v if isinstance(v, str) else f"{v:.6g}" for v in (what["min"], what["max"])]
            table.add_row(side[:-1], name, what["dtype"], describe_shape(what["shape"]), *ends)
    console.print(table)
    for note in result["notes"]:
        console.print(f"note: {note}")
    times = result["run_ms"]
    console.print(
        f"{result['mode']} mode on {result['device']}: median {format_ms(times['median'])} ms of {result['runs']} runs "
        f"(min {format_ms(times['min'])}, max {format_ms(times['max'])}); compile {result['compile_ms']:.1f} ms, "
        f"first run {result['first_run_ms']:.1f} ms"
    )
    if profile:
        console.print(profile.summary())
        console.print(f"trace: {path} (open it in ui.perfetto.dev)")
