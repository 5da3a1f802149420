"""What all tests share: they run on the build that they are meant for."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
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


@pytest.fixture
def fresh_torch() -> Iterator[None]:
    """torch that has compiled and counted nothing yet, computes without gradients, and layers by their operators."""
    torch = pytest.importorskip("torch")
    from ascendsched import torch as back_end

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    back_end.reset()
    torch.manual_seed(0)
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one operator of torch's for a whole layer
    try:
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)
