"""`import ascendsched` is quick: what it does not need at once, it does not import."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import ascendsched
from ascendsched._version import __version__

HEAVY = ["click", "importlib.metadata", "onnx", "onnxruntime", "rich", "torch"]


@pytest.fixture(scope="module")
def imported() -> set[str]:
    program = "import sys, json, numpy; before = set(sys.modules); import ascendsched"
    program += "; print(json.dumps(sorted(set(sys.modules) - before)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    return set(json.loads(ran.stdout))


@pytest.mark.parametrize("module", HEAVY)
def test_import_leaves_out_what_it_does_not_need(imported: set[str], module: str) -> None:
    assert module not in imported


def test_version_is_exposed() -> None:
    assert ascendsched.__version__ == __version__
