"""The examples in the documents work: Python runs, C++ compiles."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ascendsched

ROOT = Path(__file__).resolve().parents[2]


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_example_of_the_readme_runs(tmp_path: Path) -> None:
    (example,) = blocks("README.md", "python")
    command = [sys.executable, "-c", example]
    environment = os.environ | {"PYTHONPATH": str(Path(ascendsched.__file__).parents[1])}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of csrc in which the walk through CONTRIBUTING.md has been taken."""
    csrc = tmp_path_factory.mktemp("walk") / "csrc"
    shutil.copytree(ROOT / "csrc", csrc)
    rule, registration, kernel = blocks("CONTRIBUTING.md", "cpp")
    rules = csrc / "ops" / "movement.cc"
    head, mark, tail = rules.read_text(encoding="utf-8").partition("}  // namespace\n")
    begin = "void register_movement_ops(OpRegistry& r) {\n"
    assert begin in tail
    rules.write_text(head + rule + mark + tail.replace(begin, begin + registration), encoding="utf-8")
    (csrc / "backends" / "cpu" / "reverse_sequence.cc").write_text(kernel, encoding="utf-8")
    header = csrc / "backends" / "cpu" / "movement.h"
    declaration = "void register_reverse_sequence(KernelRegistry& registry);\n"
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("void register_trilu", declaration + "void register_trilu"), encoding="utf-8")
    return csrc


@pytest.mark.parametrize("source", ["ops/movement.cc", "backends/cpu/reverse_sequence.cc"])
def test_walk_through_adding_an_operator_compiles(walked: Path, source: str) -> None:
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{walked}"]
    command = [*compiler, *flags, str(walked / source)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
