"""`ascendsched diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ascendsched.cli.common import check_folders, json_option, print_json, progress, stdout_console

COMPARE_HELP = "A second profile, after a change: both are judged and compared."


@click.command(name="diagnose")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--step", default="whole", metavar="N|all", help="Judge one profiler step, or each; default: everything.")
@click.option("--what-if", "asks_what_if", is_flag=True, help="Predict what other ways to schedule it would gain.")
@click.option("--compare", metavar="PROFILE", type=click.Path(path_type=Path), help=COMPARE_HELP)
@click.option("--html", metavar="REPORT.html", help="Write a report that a browser shows offline.")
@json_option
def command(
    paths: tuple[Path, ...], step: str, asks_what_if: bool, compare: Path | None, html: str | None, as_json: bool
) -> None:
    """Say what bounds a recorded program, and why, from its profile.

    PATHS are PyTorch profiler traces (CUDA, ROCm), output folders of the Ascend PyTorch Profiler or msprof, or our own
    traces; several, or a folder that holds several, are the ranks of one job.

    Example: ascendsched diagnose trace.json.gz --what-if --html report.html
    """
    from ascendsched.profile.importers.read import read_profiles  # --help must not load the readers
    from ascendsched.profile.job import diagnose_job

    check_folders("diagnose", html)
    values: dict[str, Any] = {}
    with progress(quiet=as_json) as show:
        show("reading")
        timeline = read_profiles(paths)
        show("judging")
        job = diagnose_job(timeline, step)
        values |= job.to_dict()
        found = comparison = None
        if asks_what_if:
            from ascendsched.profile.whatif import what_if

            show("replaying")
            found = what_if(job.main)
            values["what_if"] = found.to_dict() if found is not None else None
        if compare is not None:
            from ascendsched.profile.compare import compare as compare_profiles

            show("comparing")
            comparison = compare_profiles(job.main, diagnose_job(read_profiles([compare]), step).main)
            values["comparison"] = comparison.to_dict()
        if html:
            from ascendsched.profile.html import write_html
            from ascendsched.profile.report import make_report

            show("writing the report")
            values["html"] = write_html(make_report(job, comparison), html)
    if as_json:
        print_json("diagnose", values)
        return
    from ascendsched.profile.diagnosis_text import print_job
    from ascendsched.profile.whatif_text import print_comparison, print_what_if

    console = stdout_console()
    print_job(job, console)
    if found is not None:
        print_what_if(found, console)
    elif asks_what_if:
        console.print("\nNo device work with a launch record: nothing can be replayed.")
    if comparison is not None:
        console.print()
        print_comparison(comparison, console)
    if html:
        console.print(f"\nreport: {values['html']} (open it in a browser)")
