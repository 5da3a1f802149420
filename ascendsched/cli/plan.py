"""`ascendsched plan`: what a model is compiled to, and why it runs as it does."""

from __future__ import annotations

from typing import Any

import click

from ascendsched.cli.common import describe_shape, json_option, model_options, print_json


@click.command("plan")
@click.argument("model")
@click.option("--check", "checks", is_flag=True, help="Only say which operators are supported; 1 if not all are.")
@model_options()
@json_option
@click.pass_context
def command(
    ctx: click.Context, model: str, checks: bool, device: str, mode: str, threads: int | None, as_json: bool
) -> None:
    """Show the plan of the ONNX file MODEL, and why it runs as it does.

    With --check nothing is compiled or run: the model is judged by its operators and element types, and its weights
    are not read. The exit status is 0 where all of it is supported, and 1 where not.

    Example: ascendsched plan model.onnx --mode sink
    """
    if checks:
        from ascendsched.cli.check import check

        ctx.exit(0 if check(model, device, as_json) else 1)
    import ascendsched as asc  # --help must not load the core

    executable = asc.compile(model, device=device, mode=mode, threads=threads)
    if as_json:
        types = {
            "inputs": [_type_of(value) for value in executable.inputs],
            "outputs": [_type_of(value) for value in executable.outputs],
        }
        texts = {"plan": executable.plan.text(), "explain": executable.explain()}
        print_json("plan", {"model": model, "device": device, "mode": executable.mode, **types, **texts})
        return
    for side, values in (("input", executable.inputs), ("output", executable.outputs)):
        for value in values:
            click.echo(f"{side} {value.name}: {value.dtype} {describe_shape(value.shape)}")
    click.echo(executable.plan.text().rstrip("\n"))
    click.echo()
    click.echo(executable.explain().rstrip("\n"))


def _type_of(value: Any) -> dict[str, Any]:
    return {"name": value.name, "dtype": value.dtype, "shape": None if value.shape is None else list(value.shape)}
