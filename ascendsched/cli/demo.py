"""`ascendsched demo`: what scheduling costs, and what sinking gains, measured here and now."""

from __future__ import annotations

import click

from ascendsched.cli.common import json_option, print_json, progress, stdout_console


@click.command("demo")
@click.option("--out", type=click.Path(file_okay=False), help="Folder of the traces; default: a temporary one.")
@click.option("--quick", is_flag=True, help="Fewer runs and a smaller image.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="CPU threads of every row.")
@json_option
def command(out: str | None, quick: bool, threads: int, as_json: bool) -> None:
    """Measure host and sink scheduling of a small decoder and of ResNet-18, beside onnxruntime where it is installed.

    Example: ascendsched demo --quick --out traces
    """
    from ascendsched.demo.report import print_report, to_dict  # --help must not load the models
    from ascendsched.demo.run import run_demo

    with progress(quiet=as_json) as show:
        result = run_demo(out, quick, threads, show)
    if as_json:
        print_json("demo", to_dict(result))
    else:
        print_report(result, stdout_console())
