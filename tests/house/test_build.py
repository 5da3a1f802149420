"""The build: what is compiled again, and what the built extension needs at run time."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """setup.py as a module, moved to an empty project."""
    spec = importlib.util.spec_from_file_location("setup_under_test", ROOT / "setup.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "SOURCE", tmp_path / "csrc")
    for name in ("ASCENDSCHED_SANITIZE", "CXXFLAGS", "CPPFLAGS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "csrc" / "base").mkdir(parents=True)
    (tmp_path / "csrc" / "base" / "one.h").write_text("inline int one() { return 1; }\n")
    (tmp_path / "csrc" / "base" / "user.cc").write_text('#include "base/one.h"\nint user() { return one(); }\n')
    (tmp_path / "csrc" / "base" / "other.cc").write_text("int other() { return 2; }\n")
    return module


def compiled(build: ModuleType, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Names of the files that a build compiles."""
    build.Compiler.create().compile(build.core_sources())
    return re.findall(r"base/(\w+)\.cc", capfd.readouterr().out)


def touch_later(path: Path) -> None:
    later = path.stat().st_mtime + 10
    os.utime(path, (later, later))


def test_unchanged_sources_are_not_compiled_again(build: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    assert sorted(compiled(build, capfd)) == ["other", "user"]
    assert compiled(build, capfd) == []


def test_changed_header_recompiles_its_users_only(build: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    compiled(build, capfd)
    touch_later(build.SOURCE / "base" / "one.h")
    assert compiled(build, capfd) == ["user"]


def test_changed_flags_recompile_everything(
    build: ModuleType, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(build, capfd)
    monkeypatch.setenv("CXXFLAGS", "-DSOMETHING")
    assert sorted(compiled(build, capfd)) == ["other", "user"]


def test_compiler_error_is_shown_and_ends_the_build(build: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    (build.SOURCE / "base" / "bad.cc").write_text("int bad( {\n")
    with pytest.raises(SystemExit, match="command failed"):
        build.Compiler.create().compile(build.core_sources())
    assert "bad.cc:1" in capfd.readouterr().out


def test_unknown_sanitizer_is_refused(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDSCHED_SANITIZE", "memory")
    with pytest.raises(SystemExit, match="'thread' or 'address'"):
        build.compile_flags()


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("readelf"), reason="needs readelf on Linux")
def test_extension_finds_its_libraries_beside_itself() -> None:
    spec = importlib.util.find_spec("ascendsched._core")
    assert spec
    path = Path(str(spec.origin))
    text = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", text)
    assert not [name for name in needed if "/" in name]
    bundled = [name for name in needed if "dnnl" in name or "openblas" in name]
    if bundled:
        assert "[$ORIGIN/_libs]" in text
        assert all((path.parent / "_libs" / name).exists() for name in bundled)
        assert list((path.parent / "_libs").glob("LICENSE*"))
