"""The command line of the benchmarks: options, the machine, tables as they are measured, JSON."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import FULL, PEER, QUICK, Effort, Table, WrongResultError
from rich.console import Console

from ascendsched.cli.common import stdout_console
from ascendsched.cli.info import collect
from ascendsched.demo.peers import has_onnxruntime
from ascendsched.whole_files import write_whole

SCHEMA = "ascendsched.benchmarks/1"
Measure = Callable[[Effort], Iterator[Table]]


def main(description: str | None, measures: Mapping[str, Measure], selects: bool = False) -> int:
    """Command line of one benchmark, or of all: prints the machine once and every table as soon as it is measured.

    Returns
    -------
    int
        Exit status: 1 where a result was wrong, after the other benchmarks have run.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples, smaller cases")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE")
    if selects:
        parser.add_argument(
            "--only", metavar="NAME", choices=sorted(measures), action="append", help="one of: %(choices)s"
        )
    arguments = parser.parse_args()
    chosen = (arguments.only if selects else None) or list(measures)
    console = stdout_console()
    machine = collect()
    _show_machine(machine, console)
    tables: dict[str, list[dict[str, Any]]] = {}
    errors: dict[str, str] = {}
    for name in chosen:
        console.print(f"== {name}\n")
        tables[name] = []
        try:
            for table in measures[name](QUICK if arguments.quick else FULL):
                table.show(console)
                tables[name].append(table.to_dict())
        except WrongResultError as error:
            errors[name] = str(error)
            console.print(f"WRONG RESULT, not timed: {error}\n")
    if arguments.json:
        document = {"schema": SCHEMA, "quick": arguments.quick, "machine": machine, "tables": tables, "errors": errors}
        write_whole(arguments.json, json.dumps(document, indent=2) + "\n", "bench")
    return 1 if errors else 0


def _show_machine(machine: Mapping[str, Any], console: Console) -> None:
    versions = [f"ascendsched {machine['version']}", machine["python"].split(" (")[0]]
    versions += [f"{name} {version}" for name, version in machine["packages"].items()]
    console.print(f"machine   {machine['platform']}")
    console.print(f"CPU       {machine['cpu']}, {machine['cpus']} usable{_load(machine['cpus'])}")
    console.print(f"versions  {', '.join(versions)}")
    if has_onnxruntime():
        console.print(f"ratios    to {PEER}'s best row, of median time and of median CPU time: below 1 is faster\n")
    else:
        console.print(f"ratios    none: {PEER} is not installed (pip install 'ascendsched[bench]')\n")


def _load(cpus: int) -> str:
    """The load average, where the system has one, and what a high one means."""
    if not hasattr(os, "getloadavg"):
        return ""
    load = os.getloadavg()[0]
    return f", load {load:.1f}" + (": busy, so trust CPU times" if load > cpus / 2 else "")
