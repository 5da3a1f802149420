"""Files that appear whole or not at all, over what may lie at their place."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

import ascendsched as asc
from ascendsched.cli import main
from ascendsched.whole_files import replacing, write_whole


class BrokenOffError(Exception):
    """Ends the writing of a file."""


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert write_whole(path, "first\u00e4", "test") == str(path)
    assert path.read_text(encoding="utf-8") == "first\u00e4"
    write_whole(str(path), b"\0second", "test")
    assert path.read_bytes() == b"\0second"
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_there_stays_where_writing_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write_half() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise BrokenOffError

    with pytest.raises(BrokenOffError):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to("real")
    for text in ("made", "replaced"):
        write_whole(link, text, "test")
        assert link.is_symlink()
        assert real.read_text() == text


def test_permissions_are_kept_and_those_of_a_new_file_are_usual(tmp_path: Path) -> None:
    new, private = tmp_path / "new", tmp_path / "private"
    before = os.umask(0o027)
    try:
        write_whole(new, "x", "test")
        private.touch(0o600)
        write_whole(private, "x", "test")
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


def test_a_device_is_written_to_and_stays() -> None:
    write_whole(os.devnull, "x", "test")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    code = "from ascendsched.whole_files import write_whole; write_whole('/dev/stdout', 'through a pipe', 'test')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout == "through a pipe"


def test_a_named_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=write_whole, args=(pipe, "through", "test"), daemon=True)
    writer.start()
    assert pipe.read_text() == "through"
    writer.join(60)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("absent/file", "no folder for it; create it first"),
        (".", "choose another path"),
        ("x" * 300, "File name too long; choose another path"),
        ("a\0b", "choose another path"),
    ],
    ids=["absent", "folder", "long", "zero"],
)
def test_what_cannot_be_written_is_told_in_one_way(target: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(asc.WriteError, match=rf"^\[test\] cannot write '.*': .*{words}$"):
        write_whole(f"{tmp_path}/{target}", "x", "test")
    assert list(tmp_path.iterdir()) == []


def test_an_executable_is_not_saved_to_a_device() -> None:
    g = asc.Graph("g")
    g.output(g.op("Relu", g.input("x", "float32", (2,))), "y")
    with pytest.raises(asc.WriteError, match=r"^\[save\] cannot write '/dev/null': .* no regular file"):
        asc.compile(g, "null", threads=1).save(os.devnull)


@pytest.mark.parametrize(
    ("command", "option"),
    [("run", "--profile"), ("profile", "--html"), ("profile", "--trace"), ("diagnose", "--html")],
)
def test_a_command_refuses_a_folder_that_is_not_there_before_it_starts(command: str, option: str) -> None:
    result = CliRunner().invoke(main, [command, "no such model", option, "no/folder/file"])
    assert result.exit_code == 1
    assert "cannot write 'no/folder/file': no folder for it; create it first" in result.output
