"""`ascendsched bench`: a model here and in onnxruntime, and which of the two to keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascendsched.bounded import SETTINGS_BYTES, read_text
from ascendsched.cli.common import THREADS_HELP, json_option, print_json, progress, stdout_console
from ascendsched.cli.inputs import SEED_HELP, make_inputs, parse_pairs

if TYPE_CHECKING:
    from ascendsched.bench.measure import Inputs
    from ascendsched.bench.runtimes import Ours

SHAPES_HELP = "Shapes of one case, inputs separated by ';', or a file with one case per line; may be repeated."


@click.command("bench")
@click.argument("model")
@click.option("--shapes", multiple=True, metavar="x=1,3,224,224;…", help=SHAPES_HELP)
@click.option(
    "--input",
    "files",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="Read an input of all cases from a file; may be repeated.",
)
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["host", "sink", "auto"]),
    default=["auto"],
    show_default=True,
    help="Scheduling mode; may be repeated.",
)
@click.option("--threads", type=click.IntRange(min=1), help=THREADS_HELP)
@click.option("--rounds", type=click.IntRange(min=1), default=20, show_default=True, help="Blocks of timed calls.")
@click.option("--seed", type=int, default=0, show_default=True, help=SEED_HELP)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    shapes: tuple[str, ...],
    files: tuple[str, ...],
    modes: tuple[str, ...],
    threads: int | None,
    rounds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare the ONNX file MODEL here and in onnxruntime, where that is installed.

    Results are checked first; wrong ones have no speed, and give exit status 1.

    Example: ascendsched bench resnet18.onnx --shapes x=1,3,224,224 --shapes x=8,3,224,224 --mode host --mode sink
    """
    from ascendsched.bench.measure import bench_model  # --help must not load the core
    from ascendsched.bench.report import print_report, to_dict
    from ascendsched.options import check_threads, default_threads

    given = parse_pairs(files, "--input")
    cases = parse_cases(shapes) or [{}]

    def inputs(ours: Ours) -> list[Inputs]:
        made: list[Inputs] = []
        for case in cases:
            arrays, notes = make_inputs(ours.executable.inputs, given, case, seed, "--shapes")
            name = ";".join(f"{key}={','.join(map(str, array.shape)) or '()'}" for key, array in arrays.items())
            made.append((name or "no inputs", arrays, notes))
        return made

    count = default_threads() if threads is None else check_threads(threads)
    with progress(quiet=as_json) as show:
        bench = bench_model(model, list(dict.fromkeys(modes)), count, rounds, inputs, show)
    if as_json:
        print_json("bench", to_dict(bench))
    else:
        print_report(bench, stdout_console())
    if bench.is_wrong:
        ctx.exit(1)


def parse_cases(values: tuple[str, ...]) -> list[dict[str, str]]:
    """The cases of ``--shapes``: each value is "x=1,3;y=2", or a file of such lines, in which "#" begins a comment."""
    lines: list[str] = []
    for value in values:
        if "=" in value and not Path(value).is_file():
            lines.append(value)
            continue
        try:
            text = read_text(value, SETTINGS_BYTES)
        except (OSError, ValueError) as error:
            message = f"'{value}' is neither NAME=SHAPE nor a file of shapes: {error}"
            raise click.BadParameter(message, param_hint="--shapes") from None
        lines += [line for line in (raw.partition("#")[0].strip() for raw in text.splitlines()) if line]
    return [parse_pairs(filter(None, (part.strip() for part in line.split(";"))), "--shapes") for line in lines]
