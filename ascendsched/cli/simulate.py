"""`ascendsched simulate`: models on devices and clusters that are not here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascendsched.cli.common import check_folders, json_option, print_json, progress, stdout_console
from ascendsched.errors import AscendSchedError

if TYPE_CHECKING:
    from ascendsched.sim.cost_profile import CostProfile

MODE_NAMES = ("host-uncached", "host", "host-pipelined", "sink")
GROWTH_STEPS = (1, 8, 64, 512, 4096)


@click.command("simulate")
@click.argument("model", required=False)
@click.option("--device", default="ascend-910b", show_default=True, help="A cost profile's name, or its file.")
@click.option(
    "--mode", type=click.Choice(["all", *MODE_NAMES]), default="all", show_default=True, help="Mode to simulate."
)
@click.option(
    "--batch", type=click.IntRange(1, 4096), default=1, show_default=True, help="Sequences or pictures at once."
)
@click.option(
    "--context",
    type=click.IntRange(1, 131072),
    default=1024,
    show_default=True,
    help="Tokens in the cache or, without one, of a sequence; bert-large has 512 at most, resnet-50 none.",
)
@click.option("--ranks", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Ranks of the job.")
@click.option("--workers", type=click.IntRange(1, 14), help="Threads that make tilings, of host-pipelined.")
@click.option("--trace", type=click.Path(dir_okay=False), help="Write a Perfetto trace of the last mode's rank 0.")
@click.option("--html", type=click.Path(dir_okay=False), help="Write the comparison as a page.")
@click.option("--calibrate", type=click.Path(), help="Fit the host's costs to a profile, and say how well.")
@click.option("--check", "checked", type=click.Path(), help="With --calibrate: a profile to predict.")
@click.option("--out", type=click.Path(dir_okay=False), help="With --calibrate: write the fitted cost profile.")
@json_option
def command(
    model: str | None,
    device: str,
    mode: str,
    batch: int,
    context: int,
    ranks: int,
    workers: int | None,
    trace: str | None,
    html: str | None,
    calibrate: str | None,
    checked: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Simulate MODEL on a device that is not here, in all modes side by side.

    Models: llama-7b, llama-13b, decoder-38b-int8 (one token per step), llama-7b-prefill, llama-13b-prefill,
    resnet-50, bert-large. The plan is the real compiler's; times come from the cost profile of the device.

    Example: ascendsched simulate llama-7b --device ascend-910b --ranks 64
    """
    from ascendsched.sim.cost_profile import load_profile

    check_folders("simulate", trace, html, out)
    profile = load_profile(device)
    if calibrate is not None:
        profile = _calibrate(profile, calibrate, checked, out, as_json and model is None, shows=not as_json)
    elif checked or out:
        raise click.UsageError("--check and --out go with --calibrate")
    elif model is None:
        raise click.UsageError("give a MODEL, or --calibrate TRACE")
    if model is None:
        return
    modes = MODE_NAMES if mode == "all" else (mode,)
    _simulate(model, profile, modes, batch, context, ranks, workers, trace, html, as_json)


def _simulate(
    name: str,
    profile: CostProfile,
    modes: tuple[str, ...],
    batch: int,
    context: int,
    ranks: int,
    workers: int | None,
    trace: str | None,
    html: str | None,
    as_json: bool,
) -> None:
    from ascendsched.profile.trace import write_trace
    from ascendsched.sim import cluster, comparison
    from ascendsched.sim.engine import MODES

    with progress(as_json) as say:
        say(f"compiling {name}")
        subject = comparison.Subject(name, profile, batch, context)
        rows = comparison.compare_modes(subject, modes, ranks, workers)
        growth: list[cluster.Growth] = []
        agreement: list[cluster.Agreement] = []
        if ranks > 1 and len(modes) > 1:
            say(f"simulating up to {ranks} ranks")
            sizes = [n for n in GROWTH_STEPS if n < ranks] + [ranks]
            growth = cluster.grow(subject, sizes)
            agreement = cluster.agree(subject, growth)
        if trace is not None:
            recording = comparison.run_mode(subject, MODES[modes[-1]], ranks).recording
            if recording is not None:
                write_trace(recording, trace)
    built = subject.plan(ranks)[0]
    unit, tokens = built.unit, "" if built.context is None else f"context {built.context}, "
    title = f"{name}, batch {batch}, {tokens}{ranks} rank{'s' if ranks > 1 else ''}"
    if html is not None:
        from ascendsched.sim.page import make_page
        from ascendsched.whole_files import write_whole

        write_whole(html, make_page(title, unit, rows, growth, agreement, profile), "simulate")
    if as_json:
        tables = {
            "modes": comparison.as_dicts(rows),
            "growth": comparison.as_dicts(growth),
            "agreement": comparison.as_dicts(agreement),
        }
        print_json("simulate", {"model": name, "device": profile.name, "unit": unit, "ranks": ranks, **tables})
        return
    click.echo(f"{title}: simulated on {profile.description}")
    head = ("mode", "step ms", f"{unit}/s", "device idle %", "host CPU %", "verdict")
    _print_table(head, [(r.mode, r.step_ms, r.per_second, r.idle_pct, r.host_pct, r.verdict) for r in rows])
    if growth:
        click.echo("growth with the number of ranks; hosts vary as our recorder measured:")
        _print_table(
            ("ranks", "mode", "mean step ms", "slowest ms", "device idle %"),
            [(g.ranks, g.mode, g.step_ms, g.slowest_ms, g.idle_pct) for g in growth],
        )
        share = 100 * agreement[0].miss_share
        click.echo(
            f"sink mode where {share:g} % of a rank's signatures are new: ranks that choose alone, that agree on"
        )
        click.echo("mode and bucket before each step (aligned dispatch), and that do so one step ahead:")
        _print_table(
            ("ranks", "alone ms", "aligned ms", "gain %", "one step ahead ms", "gain %"),
            [
                (
                    a.ranks,
                    a.alone_ms,
                    a.aligned_ms,
                    _gain(a.alone_ms, a.aligned_ms),
                    a.ahead_ms,
                    _gain(a.aligned_ms, a.ahead_ms),
                )
                for a in agreement
            ],
        )


def _gain(before: float, after: float) -> float:
    return 100 * (before / after - 1)


def _print_table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    from rich.table import Table

    table = Table(*head)
    for row in rows:
        table.add_row(*(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row))
    stdout_console().print(table)


def _calibrate(
    base: CostProfile, path: str, checked: str | None, out: str | None, as_json: bool, shows: bool
) -> CostProfile:
    from ascendsched.profile.importers.read import read_profiles
    from ascendsched.sim.calibrate import check_host, fit_host, fit_profile
    from ascendsched.sim.cost_profile import profile_bytes

    ranks = read_profiles([Path(path)]).ranks
    if not ranks:
        raise AscendSchedError(f"[simulate] {path}: no rank; pass a profile")
    host, fitted = fit_host(ranks[0]), fit_profile(ranks[0], base)
    checks = [("fitted to", ranks[0])]
    if checked is not None:
        checks += [("not fitted to", rank) for rank in read_profiles([Path(checked)]).ranks]
    found = [(role, rank.source, check_host(host, rank)) for role, rank in checks]
    if out is not None:
        from ascendsched.whole_files import write_whole

        write_whole(out, profile_bytes(fitted), "simulate")
    changed = {k: v for k, v in fitted.costs.items() if v != base.costs[k]}
    if as_json:
        errors = [
            {
                "role": role,
                "source": source,
                "kernels": c.kernels,
                "median": round(c.median, 5),
                "p90": round(c.p90, 5),
                "recorded_ns": c.recorded_ns,
                "predicted_ns": c.predicted_ns,
                "reason": c.reason,
            }
            for role, source, c in found
        ]
        print_json("calibration", {"source": ranks[0].source, "costs": changed, "checks": errors})
    elif shows:
        click.echo(f"fitted to {ranks[0].source}: " + ", ".join(f"{k} {v:g}" for k, v in changed.items()))
        for role, source, c in found:
            click.echo(
                f"{role} {source}: {c.kernels} kernels start within {100 * c.median:.1f} % of the span at the median, "
                f"{100 * c.p90:.1f} % at the ninth tenth; "
                f"span {c.recorded_ns / 1e6:.2f} ms, predicted {c.predicted_ns / 1e6:.2f}"
            )
            if c.reason:
                click.echo(f"  why it is off: {c.reason}")
    return fitted
