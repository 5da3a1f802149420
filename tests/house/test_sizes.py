"""Files stay short enough to be read in one sitting."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 400
FOLDERS = ["csrc", "ascendsched", "tests", "benchmarks"]
SUFFIXES = {".h", ".cc", ".inc", ".py", ".pyi", ".js", ".css"}
FILES = sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES)


@pytest.mark.parametrize("path", [*FILES, ROOT / "setup.py"], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_file_has_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
