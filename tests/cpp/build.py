"""Builds the C++ tests: every tests/cpp/*.cc with all of csrc but the bindings, as one program.

usage: python tests/cpp/build.py [--quiet] [PROGRAM]

Flags and object files are those of setup.py, so that nothing is compiled twice and ASCENDSCHED_SANITIZE works here too.
Exits with status 77 where doctest is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
NO_DOCTEST = 77


def load_setup() -> ModuleType:
    """The module setup.py, which builds only when it is run as a script."""
    spec = importlib.util.spec_from_file_location("ascendsched_setup", ROOT / "setup.py")
    if spec is None or spec.loader is None:
        raise SystemExit("[tests/cpp] cannot load setup.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def has_doctest(command: list[str]) -> bool:
    """Whether the compiler finds doctest's header."""
    probe = [*command, "-E", "-x", "c++", "-"]
    text = "#include <doctest/doctest.h>\n"
    return subprocess.run(probe, input=text, text=True, capture_output=True, check=False).returncode == 0


def build(program: Path | None = None) -> Path:
    """Builds the test program and returns its path; raises SystemExit(77) where doctest is missing."""
    setup = load_setup()
    compiler = setup.Compiler.create()
    if not has_doctest(compiler.command):
        raise SystemExit(NO_DOCTEST)
    core = [source for source in setup.core_sources() if "bindings" not in source.parts]
    objects = compiler.compile(core + sorted((ROOT / "tests" / "cpp").glob("*.cc")))
    program = (program or compiler.objects / "cpp_tests").resolve()
    flags = setup.link_flags()
    folders = sorted({str(Path(word).parent) for word in flags if word.startswith("/")})
    compiler.link(objects, program, flags + [f"-Wl,-rpath,{folder}" for folder in folders])
    return program


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the C++ tests.")
    parser.add_argument("program", nargs="?", type=Path)
    parser.add_argument("--quiet", action="store_true", help="print nothing unless the build fails")
    arguments = parser.parse_args()
    if not arguments.quiet:
        print(build(arguments.program))
        return
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            build(arguments.program)
    except SystemExit as stop:
        if stop.code != NO_DOCTEST:
            print(said.getvalue())
        raise


if __name__ == "__main__":
    main()
