"""Style and types: the tools behind `make lint` and `make typecheck`, as tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(command: list[str]) -> None:
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, f"{' '.join(command[:4])} …\n{ran.stdout}{ran.stderr}"


def tool(name: str) -> str:
    """Path of a tool installed beside this interpreter, or on the path."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed (pip install '.[test]')")
    return found


def test_ruff_finds_nothing() -> None:
    check([tool("ruff"), "check", "."])


def test_python_is_formatted() -> None:
    check([tool("ruff"), "format", "--check", "."])


def test_cpp_is_formatted() -> None:
    files = sorted(p for folder in ("csrc", "tests/cpp") for p in (ROOT / folder).rglob("*"))
    names = [str(p.relative_to(ROOT)) for p in files if p.suffix in {".h", ".cc", ".inc"}]
    check([tool("clang-format"), "--dry-run", "-Werror", *names])


def test_mypy_finds_nothing() -> None:
    check([tool("mypy")])
