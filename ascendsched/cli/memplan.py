"""`ascendsched memplan`: offsets for buffers with known lifetimes in one arena."""

from __future__ import annotations

import math
import time

import click

from ascendsched.cli.common import check_folders, json_option, print_json, progress

ALIGNMENT_HELP = "Every offset is a multiple of it, in bytes."
CAPACITY_HELP = "Height that is low enough, in bytes; without it, the lowest plan is sought."


@click.command("memplan", short_help="Place buffers in one arena, as low as possible.")
@click.argument("table", metavar="IN.csv")
@click.option("--capacity", type=click.IntRange(min=0), help=CAPACITY_HELP)
@click.option("--time-limit", type=click.FloatRange(min=0), default=30.0, show_default=True, help="In seconds.")
@click.option("--alignment", type=click.IntRange(min=1), default=1, show_default=True, help=ALIGNMENT_HELP)
@click.option("--out", metavar="OUT.csv", help="Write the input's columns and `offset`.")
@click.option("--svg", metavar="OUT.svg", help="Draw the plan.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    table: str,
    capacity: int | None,
    time_limit: float,
    alignment: int,
    out: str | None,
    svg: str | None,
    as_json: bool,
) -> None:
    """Place the buffers of IN.csv in one arena, as low as possible.

    IN.csv has the columns id, lower, upper and size: a buffer of `size` bytes is alive in [lower, upper). Buffers that
    are alive at one time get different memory. Ctrl-C ends the search with the best plan found. The exit status is 0
    where the capacity is met, or none was given, and 1 where not.

    Example: ascendsched memplan buffers.csv --capacity 1048576 --time-limit 30 --out plan.csv
    """
    from ascendsched.memory_plan import plan_buffers, read_buffers, write_plan  # --help must not load the core

    if math.isnan(time_limit):
        raise click.BadParameter("expected seconds, got nan", param_hint="--time-limit")
    start = time.perf_counter()
    read = read_buffers(table)
    check_folders("memplan", out, svg)
    with progress(quiet=as_json) as show:
        show(f"placing {len(read.buffers)} buffers")
        plan = plan_buffers(
            read.buffers,
            capacity=capacity,
            alignment=alignment,
            time_limit=time_limit,
            on_better=lambda height, bound: show(f"height {height:,}, lower bound {bound:,}"),
        )
    seconds = time.perf_counter() - start
    if out:
        write_plan(out, read, plan)
    if svg:
        from ascendsched.memory_svg import write_svg

        column = read.columns.index("id")
        write_svg(svg, [row[column] for row in read.rows], read.buffers, plan)
    is_met = capacity is None or plan.height <= capacity
    if as_json:
        figures = {
            "input": table,
            "buffers": len(read.buffers),
            "height": plan.height,
            "lower_bound": plan.lower_bound,
            "optimal": plan.is_optimal,
            "capacity": capacity,
            "capacity_met": None if capacity is None else is_met,
            "steps": plan.steps,
            "interrupted": plan.was_interrupted,
            "seconds": seconds,
        }
        print_json("memplan", figures)
    else:
        over = f" ({plan.height / plan.lower_bound - 1:.2%} over)" if plan.height > plan.lower_bound > 0 else ""
        proof = "optimal: no plan is lower" if plan.is_optimal else f"not proved optimal{over}"
        click.echo(f"{len(read.buffers)} buffers, height {plan.height} bytes, lower bound {plan.lower_bound}")
        click.echo(f"{proof}; {plan.steps} steps in {seconds:.2f} s{', interrupted' if plan.was_interrupted else ''}")
        if capacity is not None:
            click.echo(f"capacity {capacity}: {_judge(is_met, capacity, plan.lower_bound)}")
    if not is_met:
        ctx.exit(1)


def _judge(is_met: bool, capacity: int, lower_bound: int) -> str:
    if is_met:
        return "met"
    return "impossible" if lower_bound > capacity else "not met; a longer --time-limit may meet it"
