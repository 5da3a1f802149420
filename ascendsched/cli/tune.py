"""`ascendsched tune`: settings that make a model faster on the shapes that it is used with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from ascendsched.cli.common import DEVICE_HELP, check_folders, json_option, print_json, progress
from ascendsched.cli.inputs import parse_pairs
from ascendsched.errors import PlanError

if TYPE_CHECKING:
    from ascendsched.tuning.buckets import Buckets

N = TypeVar("N", int, float)

SHAPES_HELP = 'JSON lines such as {"x": [1, 8]}, or a trace of requests.'
AXIS_HELP = "The axis of an input that may be padded; may be repeated."
PAD_HELP = "What an input is padded with, by default 0; may be repeated."
SLICE_HELP = "The axis of a result that is cut back; may be repeated."


@click.command("tune")
@click.argument("model")
@click.option("--shapes", required=True, metavar="FILE|TRACE", help=SHAPES_HELP)
@click.option("--budget", default="30s", show_default=True, help="About how long to try.")
@click.option("--out", metavar="FILE", help="Where the settings go, for compile(options=FILE).")
@click.option("--device", default="cpu", show_default=True, help=DEVICE_HELP)
@click.option("--threads", type=click.IntRange(min=1), help="Threads at most; default: the CPUs this process may use.")
@click.option("--symbol", help="The dimension that the lengths of a trace are for.")
@click.option(
    "--forbid",
    multiple=True,
    type=click.Choice(["host", "sink", "auto"]),
    help="A mode not to choose; may be repeated.",
)
@click.option("--axis", "axes", multiple=True, metavar="NAME=AXIS", help=AXIS_HELP)
@click.option("--pad", multiple=True, metavar="NAME=VALUE", help=PAD_HELP)
@click.option("--slice", "cuts", multiple=True, metavar="NAME=AXIS", help=SLICE_HELP)
@click.option("--max-count", type=click.IntRange(1, 1024), default=12, show_default=True, help="Lengths to pad to.")
@json_option
def command(
    model: str,
    shapes: str,
    budget: str,
    out: str | None,
    device: str,
    threads: int | None,
    symbol: str | None,
    forbid: tuple[str, ...],
    axes: tuple[str, ...],
    pad: tuple[str, ...],
    cuts: tuple[str, ...],
    max_count: int,
    as_json: bool,
) -> None:
    """Try settings of MODEL on the shapes that it is used with, and keep those that save time beyond doubt.

    Inputs are random numbers of these shapes. Every setting runs turn by turn with the best so far.

    Example: ascendsched tune model.onnx --shapes shapes.jsonl --budget 30s --out tuned.json
    """
    from ascendsched.tuning.tuner import tune  # --help must not load the core

    buckets = _buckets(axes, pad, cuts, max_count)
    check_folders("tune", out)
    with progress(quiet=as_json) as show:
        found = tune(
            model,
            shapes,
            device=device,
            threads=threads,
            buckets=buckets,
            symbol=symbol,
            forbid=forbid,
            budget_s=parse_seconds(budget),
            progress=show,
        )
    if out:
        found.settings.save(out)
    if as_json:
        figures = {
            "model": model,
            "verdict": found.verdict,
            "mode": found.settings.mode,
            "threads": found.settings.threads,
            "options": asdict(found.settings.options),
            "trials": [asdict(trial) for trial in found.trials],
            "before": asdict(found.before),
            "after": asdict(found.after),
            "ratio": found.ratio,
            "interval": [found.low, found.high],
        }
        print_json("tune", figures)
        return
    click.echo(found.text(), nl=False)
    if out:
        click.echo(f"settings in {out}: ascendsched.compile({model!r}, options={out!r})")


def _buckets(axes: Iterable[str], pad: Iterable[str], cuts: Iterable[str], max_count: int) -> Buckets | None:
    from ascendsched.tuning.buckets import Buckets

    axis, values, cut = (
        _numbers(axes, "--axis", int),
        _numbers(pad, "--pad", float),
        _numbers(cuts, "--slice", int),
    )
    if (values or cut) and not axis:
        raise click.UsageError("--pad and --slice need --axis, which says what may be padded")
    return Buckets(axis=axis, pad=values, slice=cut, max_count=max_count) if axis else None


def _numbers(texts: Iterable[str], option: str, kind: Callable[[str], N]) -> dict[str, N]:
    try:
        return {name: kind(value) for name, value in parse_pairs(texts, option).items()}
    except ValueError:
        raise click.BadParameter("expected NAME=NUMBER", param_hint=option) from None


def parse_seconds(text: str) -> float:
    """ "30s", "2m" or "30" as seconds.

    Raises
    ------
    PlanError
        For anything else.
    """
    factor = {"s": 1.0, "m": 60.0}.get(text[-1:], 0.0)
    try:
        return float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        raise PlanError(f"[tune] --budget '{text}'; expected a time such as 30s or 2m") from None
