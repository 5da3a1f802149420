"""What all tests share: they run on the build that they are meant for."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def package_folder() -> Path | None:
    spec = importlib.util.find_spec("ascendsched")
    return Path(spec.origin).parent if spec and spec.origin else None


def pytest_report_header() -> str:
    return f"ascendsched: {package_folder()}"


def pytest_sessionstart() -> None:
    """A sanitized run must not test the ordinary build by mistake."""
    sanitizer = os.environ.get("ASCENDSCHED_SANITIZE")
    if sanitizer and package_folder() != ROOT / "build" / sanitizer / "ascendsched":
        pytest.exit(f"{package_folder()} is not the build for the {sanitizer} sanitizer; use make tsan or make asan", 2)
