"""Saving on disks that are full or read-only, over files of others, and under odd paths."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ascendsched as asc

from .saved_files import rows, same, save_mlp, small_mlp, written

FULL = """
import resource, sys
import numpy as np
import ascendsched as asc
g = asc.Graph("g")
w = g.constant(np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32))
g.output(g.op("MatMul", g.input("x", "float32", ("n", 256)), w), "y")
exe = asc.compile(g, threads=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    exe.save(sys.argv[1])
except asc.WriteError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(exe(np.ones((1, 256), np.float32)).shape)
"""


@pytest.mark.parametrize("limit_bytes", [0, 100, 4096, 200_000])
def test_a_full_disk_leaves_what_was_there(limit_bytes: int, tmp_path: Path) -> None:
    saved = save_mlp(tmp_path)
    good = saved.read_bytes()
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(saved), str(limit_bytes)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    message, shape = ran.stdout.splitlines()
    assert message.startswith(f"[save] cannot write '{saved}': ")
    assert message.endswith("; choose another path")
    assert shape == "(1, 256)"
    assert saved.read_bytes() == good
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.asc", "model.onnx"]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_follows_the_umask_and_a_replaced_one_keeps_its_permissions(tmp_path: Path) -> None:
    exe = asc.compile(small_mlp(), threads=1)
    for umask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(umask)
        try:
            exe.save(tmp_path / f"{umask}.asc")
        finally:
            assert os.umask(before) == umask
        assert mode_of(tmp_path / f"{umask}.asc") == mode
    private = tmp_path / "private.asc"
    exe.save(private)
    private.chmod(0o600)
    exe.save(private)
    assert mode_of(private) == 0o600


def test_a_loaded_executable_outlives_the_file_that_it_came_from(tmp_path: Path) -> None:
    saved = save_mlp(tmp_path)
    first = asc.load(saved)
    wanted = first.run(rows(3))
    asc.compile(small_mlp(), threads=1).save(saved)  # replaced, not written over
    assert same(first.run(rows(3)), wanted)
    saved.unlink()
    assert same(first.run(rows(5)), asc.compile(tmp_path / "model.onnx", threads=1).run(rows(5)))


@pytest.mark.parametrize(
    "name", ["with spaces", "\u00e4\u00f6\u4e2d\u6587", "a'b\"c", "new\nline", "%s{}", "-rf", "\udcff"]
)
def test_any_folder_that_the_system_takes_serves(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    exe = asc.compile(written(folder, small_mlp()), threads=1)
    wanted = exe.run(rows(3))
    exe.save(folder / "m.asc")
    assert same(asc.load(folder / "m.asc").run(rows(3)), wanted)


def test_the_longest_name_that_the_system_takes_serves(tmp_path: Path) -> None:
    name = "x" * os.pathconf(tmp_path, "PC_NAME_MAX")
    exe = asc.compile(small_mlp(), threads=1)
    exe.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("target", ["absent/m.asc", ".", "x" * 300, "a\0b"], ids=["absent", "folder", "long", "zero"])
def test_a_path_that_cannot_be_written_is_an_error(target: str, tmp_path: Path) -> None:
    exe = asc.compile(small_mlp(), threads=1)
    with pytest.raises(asc.WriteError, match=r"^\[save\] cannot write "):
        exe.save(f"{tmp_path}/{target}")
    assert list(tmp_path.iterdir()) == []
    assert exe(rows(3)["x"]).shape == (3, 8)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    exe = asc.compile(small_mlp(), threads=1)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(asc.WriteError, match=r"^\[save\] cannot write .*Permission denied"):
            exe.save(tmp_path / "m.asc")
    finally:
        tmp_path.chmod(0o700)


def test_saving_by_several_threads_leaves_one_whole_file(tmp_path: Path) -> None:
    exe = asc.compile(small_mlp(), threads=1)
    wanted = exe.run(rows(3))
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda _: exe.save(tmp_path / "m.asc"), range(16)):
            assert same(asc.load(tmp_path / "m.asc").run(rows(3)), wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["m.asc"]
