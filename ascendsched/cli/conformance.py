"""`ascendsched tools conformance`: does a device do what every device must."""

from __future__ import annotations

from collections import Counter

import click
from rich.table import Table

from ascendsched.cli.common import json_option, print_json, progress, stdout_console


@click.command("conformance", short_help="Run the suite that devices have to pass.")
@click.argument("device")
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@json_option
@click.pass_context
def command(ctx: click.Context, device: str, checks: tuple[str, ...], as_json: bool) -> None:
    """Run the conformance suite on DEVICE, as `ascendsched.compile` takes it; exit status 1 where a check fails.

    What the device has no kernel for is listed as unsupported.

    Example: ascendsched tools conformance cpu --json
    """
    from ascendsched import conformance  # --help must not load the core

    outcomes: list[conformance.Outcome] = []
    names = list(checks) or conformance.names()
    with progress(quiet=as_json) as show:
        for name in names:
            show(f"{len(outcomes)} of {len(names)}: {name}")
            outcomes.append(conformance.run_check(name, device))
    counts = Counter(outcome.verdict for outcome in outcomes)
    if as_json:
        rows = [{"check": o.check, "verdict": o.verdict, "detail": o.detail} for o in outcomes]
        print_json("conformance", {"device": device, "conforms": not counts["failed"], "checks": rows})
    else:
        table = Table("check", "verdict", "detail", box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for o in outcomes:
            table.add_row(o.check, o.verdict, o.detail)
        console = stdout_console()
        console.print(table)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("passed", "unsupported", "failed"))
        console.print(f"\n{device}: {said}")
    ctx.exit(1 if counts["failed"] else 0)
