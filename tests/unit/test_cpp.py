"""Builds the C++ tests and runs each of their files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CPP = Path(__file__).resolve().parents[1] / "cpp"
NO_DOCTEST = 77


@pytest.fixture(scope="session")
def program() -> Path:
    built = subprocess.run([sys.executable, str(CPP / "build.py")], capture_output=True, text=True, check=False)
    if built.returncode == NO_DOCTEST:
        pytest.skip("doctest is not installed (Debian: apt-get install doctest-dev)")
    assert built.returncode == 0, built.stdout + built.stderr
    return Path(built.stdout.splitlines()[-1])


@pytest.mark.parametrize("source", sorted(path.name for path in CPP.glob("test_*.cc")))
def test_cpp_file_passes(program: Path, source: str) -> None:
    command = [str(program), f"--source-file=*/{source}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "test cases: 0 " not in ran.stdout, f"{source} holds no test case"
