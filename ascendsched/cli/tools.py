"""`ascendsched tools`: the commands that take no model, under one name."""

from __future__ import annotations

import importlib

import click

#: Command name -> what its line in the overview says.
TOOLS = {
    "memplan": "Place buffers with known lifetimes in one arena.",
    "conformance": "Check that a device does what every device must.",
    "buckets": "Find the lengths to pad to that waste least, for a trace of requests.",
}


class _Tools(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TOOLS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in TOOLS:
            return None
        command: click.Command = importlib.import_module(f"ascendsched.cli.{cmd_name}").command
        return command


@click.command("tools", cls=_Tools)
def command() -> None:
    """Tools that take no model. Each takes --json.

    Example: ascendsched tools memplan buffers.csv --capacity 1048576 --out plan.csv
    """
