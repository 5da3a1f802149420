"""The command line: `ascendsched COMMAND`. Commands are loaded when they are used."""

from __future__ import annotations

import importlib
from typing import Any

import click

from ascendsched._version import __version__
from ascendsched.errors import AscendSchedError

#: Command name -> what its line in the overview says. The module of the same name holds it.
COMMANDS = {
    "demo": "Measure host and sink scheduling of a small decoder and ResNet-18, here and now.",
    "run": "Run an ONNX model and time it.",
    "bench": "Compare a model here and in onnxruntime.",
    "plan": "Show what a model is compiled to, and why, or whether it is supported.",
    "profile": "Record a model, say what bounds it, and predict what sink mode would gain.",
    "diagnose": "Say what bounds a recorded program, from its profile: PyTorch, Ascend or our own.",
    "simulate": "Simulate a model on a device or a cluster that is not here.",
    "tune": "Find settings that make a model faster on the shapes that it is used with.",
    "memplan": "Place buffers with known lifetimes in one arena.",
    "buckets": "Find the lengths to pad to that waste least, for a trace of requests.",
    "tools": "The tools that take no model: memplan, buckets, and the conformance suite of devices.",
    "info": "Show what a bug report needs.",
}


class LazyGroup(click.Group):
    """A group that imports a command's module when it is invoked, and turns our errors into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"ascendsched.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the overview without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; an error of ours is one line on stderr and exit status 1."""
        try:
            return super().invoke(ctx)
        except (AscendSchedError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            click.echo("ascendsched: " + _one_line(str(error)), err=True)
            ctx.exit(1)


def _one_line(text: str) -> str:
    """The text without what a terminal, or its encoding, would take for something else: names come from files."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ascendsched")
def main() -> None:
    """Find where an accelerator waits for its host, and remove the wait.

    Example: ascendsched run model.onnx --shape x=1,3,224,224 --profile trace.json
    """
