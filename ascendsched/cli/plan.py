"""`ascendsched plan`: what a model is compiled to, and why it runs as it does."""

from __future__ import annotations

from typing import Any

import click

from ascendsched.cli.common import describe_shape, json_option, model_options, print_json


@click.command("plan")
@click.argument("model")
@model_options
@json_option
def command(model: str, device: str, mode: str, threads: int | None, as_json: bool) -> None:
    """Show the plan of the ONNX file MODEL, and why it runs as it does.

    Example: ascendsched plan model.onnx --mode sink
    """
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
