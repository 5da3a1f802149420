"""`ascendsched profile`: a model recorded and judged, sink mode predicted from that and measured beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ascendsched.cli.common import (
    check_folders,
    json_option,
    model_options,
    print_json,
    progress,
    stdout_console,
)
from ascendsched.cli.inputs import input_options, make_inputs, parse_pairs

if TYPE_CHECKING:
    from rich.console import Console

    from ascendsched.profile.experiment import Experiment

IN_FLIGHT_HELP = "Runs launched before the first is waited for; 1: the device idles until the caller has its results."
WHAT_IF_HELP = "Predict other ways to schedule the model, and measure sink mode in turn with the recording."


@click.command("profile")
@click.argument("model")
@input_options
@click.option("--what-if", "asks_what_if", is_flag=True, help=WHAT_IF_HELP)
@click.option("--html", metavar="REPORT.html", help="Write a report that a browser shows offline.")
@click.option("--trace", metavar="TRACE.json", help="Write a trace for ui.perfetto.dev.")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=11, show_default=True, help="Turns of recording and timing."
)
@click.option("--in-flight", type=click.IntRange(1, 64), default=2, show_default=True, help=IN_FLIGHT_HELP)
@model_options("host", "Scheduling mode that is recorded.")
@json_option
def command(
    model: str,
    files: tuple[str, ...],
    shapes: tuple[str, ...],
    asks_what_if: bool,
    html: str | None,
    trace: str | None,
    rounds: int,
    in_flight: int,
    seed: int,
    device: str,
    mode: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Record the ONNX file MODEL in host mode and say what bounds it.

    Runs are asynchronous: the device has a thread of its own, so that it idles only where the host is late.

    Example: ascendsched profile resnet18.onnx --shape x=1,3,224,224 --what-if --html report.html
    """
    import ascendsched as asc  # --help must not load the core
    from ascendsched.profile.experiment import run_rounds

    check_folders("profile", html, trace)
    given, wanted = parse_pairs(files, "--input"), parse_pairs(shapes, "--shape")
    with progress(quiet=as_json) as show:
        show(f"compiling {model}")
        executable = asc.compile(model, device=device, mode=mode, threads=threads)
        sink = asc.compile(model, device=device, mode="sink", threads=threads) if asks_what_if else None
        feeds, notes = make_inputs(executable.inputs, given, wanted, seed)
        experiment = run_rounds(executable, sink, feeds, rounds, in_flight, show)
        values = {"model": model, "device": device, "mode": mode, "notes": notes, **_results(experiment, asks_what_if)}
        if trace:
            show("writing the trace")
            values["trace"] = experiment.profile.save_trace(trace)
        if html:
            show("writing the report")
            values["html"] = experiment.profile.save_html(html, experiment=values["experiment"])
    if as_json:
        print_json("profile", values)
    else:
        _print(values, experiment, stdout_console())


def _results(experiment: Experiment, asks_what_if: bool) -> dict[str, Any]:
    profile = experiment.profile
    values: dict[str, Any] = {"verdict": profile.verdict.to_dict(), "experiment": experiment.to_dict()}
    values["counters"] = dict(profile.counters)
    if asks_what_if:
        values["what_if"] = profile.what_if().to_dict()
    return values


def _print(values: dict[str, Any], experiment: Experiment, console: Console) -> None:
    from ascendsched.profile.whatif_text import print_experiment, print_what_if

    console.print(experiment.profile.summary())
    for note in values["notes"]:
        console.print(f"note: {note}")
    console.print()
    print_experiment(experiment, values["mode"], console)
    if "what_if" in values:
        print_what_if(experiment.profile.what_if(), console)
    for key, hint in (("trace", "open it in ui.perfetto.dev"), ("html", "open it in a browser")):
        if key in values:
            console.print(f"{key}: {values[key]} ({hint})")
