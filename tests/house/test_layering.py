"""Who may include whom, in csrc and in the Python package. ARCHITECTURE.md states the same rules in words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
SOURCES = sorted(p for p in CSRC.rglob("*") if p.suffix in {".h", ".cc", ".inc"})

# Folder -> the folders directly below it; whatever those may include is allowed too.
BELOW: dict[str, set[str]] = {
    "base": set(),
    "sync": {"base"},
    "profile": {"sync"},
    "graph": {"base"},
    "ops": {"graph"},
    "plan": {"ops"},
    "device": {"base", "sync", "profile"},
    "kernel": {"ops", "device"},
    "schedule": {"plan", "kernel", "sync", "profile"},
    "host": {"schedule"},
    "sink": {"schedule"},
    "backends": {"kernel", "device", "sync", "profile"},
    "runtime": {"host", "sink", "backends"},
    "bindings": {"runtime"},
}

# Standard headers that would give a pure folder a thread or a clock.
IMPURE = {"thread", "mutex", "condition_variable", "atomic", "chrono", "future", "pthread.h", "time.h", "ctime"}
PURE = ["base", "graph", "ops", "plan"]

VENDOR = re.compile(r"\b(dnnl(::|_\w)|(scipy_)?cblas_|cuda[A-Z_]|cu[A-Z]\w+\(|acl(rt)?[A-Z]|hccl|mkl_)")
VENDOR_HEADER = re.compile(r"dnnl|cblas|openblas|cuda|acl|ascend(?!sched/)|hccl|mkl", re.IGNORECASE)


def allowed(folder: str) -> set[str]:
    """Folders that `folder` may include: itself and everything below it."""
    found = {folder}
    for lower in BELOW[folder]:
        found |= allowed(lower)
    return found


def folder_of(path: Path) -> str:
    return path.relative_to(CSRC).parts[0]


def code_of(path: Path) -> str:
    """The text without comments; names of vendors are welcome there."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"//[^\n]*", "", text)


def quoted_includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), flags=re.MULTILINE)


def system_includes(path: Path) -> list[str]:
    return re.findall(r"^\s*#\s*include\s+<([^>]+)>", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


def name_of(path: Path) -> str:
    return path.relative_to(CSRC).as_posix()


def test_every_folder_has_a_rule() -> None:
    assert {folder_of(p) for p in SOURCES} <= set(BELOW)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_file_includes_only_what_lies_below_it(path: Path) -> None:
    folder = folder_of(path)
    for include in quoted_includes(path):
        assert (CSRC / include).exists(), f'"{include}" is not a path from csrc'
        assert include.split("/")[0] in allowed(folder), f'{folder}/ may not include "{include}"'


@pytest.mark.parametrize("path", [p for p in SOURCES if folder_of(p) == "backends"], ids=name_of)
def test_back_end_includes_no_other_back_end(path: Path) -> None:
    own = path.relative_to(CSRC).parts[1]
    for include in quoted_includes(path):
        if include.startswith("backends/"):
            assert include.split("/")[1] == own


@pytest.mark.parametrize("path", [p for p in SOURCES if folder_of(p) != "sync"], ids=name_of)
def test_memory_order_appears_only_in_sync(path: Path) -> None:
    assert "memory_order" not in code_of(path)


@pytest.mark.parametrize("path", [p for p in SOURCES if folder_of(p) == "bindings"], ids=name_of)
def test_the_lock_of_python_is_given_up_by_our_own_class(path: Path) -> None:
    """pybind11's aborts the process where a daemon thread wants the lock at the end of Python."""
    assert "gil_scoped" not in code_of(path)


@pytest.mark.parametrize("path", [p for p in SOURCES if "backends/cpu" not in p.as_posix()], ids=name_of)
def test_no_vendor_outside_its_back_end(path: Path) -> None:
    assert not VENDOR.search(code_of(path))
    for include in system_includes(path):
        assert not VENDOR_HEADER.search(include)


@pytest.mark.parametrize("path", [p for p in SOURCES if folder_of(p) in PURE], ids=name_of)
def test_pure_folder_knows_no_thread_and_no_clock(path: Path) -> None:
    assert not IMPURE & set(system_includes(path))


@pytest.mark.parametrize("path", [p for p in SOURCES if folder_of(p) != "bindings"], ids=name_of)
def test_python_is_known_to_the_bindings_only(path: Path) -> None:
    for include in system_includes(path):
        assert not include.startswith(("pybind11", "Python.h")), f"{name_of(path)} includes <{include}>"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.suffix == ".h"], ids=name_of)
def test_header_is_guarded_and_begins_with_its_purpose(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("//"), "a header begins with a comment that says what it is for"
    assert "#pragma once" in lines


def test_profile_reports_work_without_the_extension() -> None:
    for path in sorted((ROOT / "ascendsched" / "profile").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            assert not [n for n in names if "_core" in n or n.endswith("executable")], path.name
