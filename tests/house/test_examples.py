"""The examples in the documents work: Python runs, C++ is what the sources hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_walk_through_adding_an_operator_is_what_the_sources_say() -> None:
    rule, registration, kernel = blocks("CONTRIBUTING.md", "cpp")
    rules = (ROOT / "csrc" / "ops" / "movement.cc").read_text(encoding="utf-8")
    assert rule in rules
    assert registration in rules
    assert kernel == (ROOT / "csrc" / "backends" / "cpu" / "reverse_sequence.cc").read_text(encoding="utf-8")
