"""What the commands share: options, JSON output, consoles, compiling."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])

DEVICE_HELP = "Device that runs the model; `ascendsched info` lists them."
THREADS_HELP = "Threads for everything together; default: the CPUs this process may use."


def model_options(mode: str = "auto", mode_help: str = "Scheduling mode.") -> Callable[[F], F]:
    """Adds the options of every command that compiles a model; `mode` is the default."""

    def add(function: F) -> F:
        function = click.option("--threads", type=click.IntRange(min=1), help=THREADS_HELP)(function)
        modes = click.Choice(["host", "sink", "auto"])
        function = click.option("--mode", type=modes, default=mode, show_default=True, help=mode_help)(function)
        return click.option("--device", default="cpu", show_default=True, help=DEVICE_HELP)(function)

    return add


def json_option(function: F) -> F:
    """Adds --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")(function)


def check_folders(command: str, *paths: str | None) -> None:
    """Refuses files whose folder does not exist before any time is spent on what goes into them."""
    for path in paths:
        if path and not Path(path).absolute().parent.is_dir():
            from ascendsched.whole_files import no_folder_error  # --help must not load NumPy

            raise no_folder_error(command, path)


def print_json(schema: str, values: Mapping[str, Any]) -> None:
    """Prints one document with its schema first."""
    click.echo(json.dumps({"schema": f"ascendsched.{schema}/1", **values}, indent=2))


def stdout_console() -> Console:
    """A console for results: as wide as the terminal, 120 columns in a pipe, where tables must not fold."""
    from rich.console import Console  # JSON needs no console

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows what is being done: a spinner on a terminal, nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield lambda message: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting") as status:
        yield status.update


def describe_shape(shape: Any) -> str:
    """ "batch x 3 x ?", or "?" for an unknown rank."""
    if shape is None:
        return "?"
    return " x ".join("?" if dim is None else str(dim) for dim in shape) or "scalar"
