"""`ascendsched buckets`: the lengths to pad to that waste least."""

from __future__ import annotations

import click

from ascendsched.cli.common import json_option, print_json, progress, stdout_console


@click.command("buckets", short_help="Find the lengths to pad to that waste least.")
@click.argument("trace", metavar="TRACE")
@click.option("--max-count", type=click.IntRange(1, 1024), default=12, show_default=True, help="Sizes at most.")
@json_option
def command(trace: str, max_count: int, as_json: bool) -> None:
    """Find at most --max-count lengths to which the prompts of TRACE are padded with the least waste.

    TRACE is a CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens, JSON lines with timestamp,
    input_length and output_length, or text with a length a line. Padding is in padded positions over given ones; the
    optimal sizes know the whole trace, the learned ones only what came before, as asc.Buckets(max_count=…) does.

    Example: ascendsched buckets azure_code_2023.csv --max-count 12
    """
    from ascendsched.tuning.bucket_report import compare_buckets
    from ascendsched.tuning.requests import read_requests

    with progress(quiet=as_json) as show:
        show(f"reading {trace}")
        lengths = [request.prompt for request in read_requests(trace)]
        show(f"partitioning {len(lengths)} lengths")
        rows = compare_buckets(lengths, max_count)
    if as_json:
        figures = [
            {"name": r.name, "padding": r.padding, "shapes": r.shapes, "changes": r.changes, "sizes": r.sizes}
            for r in rows
        ]
        print_json("buckets", {"trace": trace, "requests": len(lengths), "max_count": max_count, "ways": figures})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("sizes", "padding", "shapes", "changes"):
        table.add_column(title, justify="left" if title == "sizes" else "right")
    for row in rows:
        table.add_row(row.name, f"{row.padding:.1%}", str(row.shapes), str(row.changes))
    click.echo(f"{len(lengths)} prompts of {min(lengths)} to {max(lengths)} tokens, {rows[-1].shapes} different")
    stdout_console().print(table)
    click.echo(f"optimal: {', '.join(map(str, rows[0].sizes))}")
