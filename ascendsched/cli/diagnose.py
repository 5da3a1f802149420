"""`ascendsched diagnose`."""

from __future__ import annotations

from pathlib import Path

import click

from ascendsched.cli.common import json_option, print_json, progress, stdout_console


@click.command(name="diagnose")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--step", default="whole", metavar="N|all", help="Judge one profiler step, or each; default: everything.")
@json_option
def command(paths: tuple[Path, ...], step: str, as_json: bool) -> None:
    """Say what bounds a recorded program, and why, from its profile.

    PATHS are PyTorch profiler traces (CUDA, ROCm), output folders of the Ascend PyTorch Profiler or msprof, or our own
    traces; several, or a folder that holds several, are the ranks of one job.

    Example: ascendsched diagnose trace.json.gz
    """
    from ascendsched.profile.importers.read import read_profiles  # --help must not load the readers
    from ascendsched.profile.job import diagnose_job

    with progress(quiet=as_json) as show:
        show("reading")
        timeline = read_profiles(paths)
        show("judging")
        job = diagnose_job(timeline, step)
    if as_json:
        print_json("diagnose", job.to_dict())
        return
    from ascendsched.profile.diagnosis_text import print_job

    print_job(job, stdout_console())
