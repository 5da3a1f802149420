"""Files that hold something else than they should end in one line and a status, for every command that reads some."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import ascendsched as asc
from ascendsched import bounded
from ascendsched.cli import main
from ascendsched.errors import AscendSchedError
from ascendsched.tuning.governor import replay
from ascendsched.tuning.requests import read_requests
from ascendsched.tuning.settings import read_settings

from . import onnx_models
from .hostile_files import changed_json, changed_table, odd_bytes
from .profile_files import dumps, late_launches

COSTS = (resources.files("ascendsched.sim") / "profiles" / "ascend-910b.json").read_text(encoding="utf-8")
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:01:46.6805900,12,3\n2023-11-16 18:01:47.68,14,3"
MOONCAKE = '{"timestamp": 1, "input_length": 3, "output_length": 4}'
BUFFERS = "id,lower,upper,size\na,0,2,16\nb,1,3,32"
TRACE = dumps({"traceEvents": late_launches()[:6]})
SETTINGS = json.dumps({"schema": "ascendsched.tuned/1", "mode": "sink", "threads": 1, "options": {"streams": 2}})

#: Command line by reader, with FILE for what is read and MODEL for a good model; and contents to start from.
READERS: dict[str, tuple[str, list[str]]] = {
    "memplan": ("memplan FILE --time-limit 0.02", [*changed_table(BUFFERS)]),
    "requests": ("buckets FILE", [*changed_table(AZURE), *changed_table("4\n5\n6"), *changed_json(MOONCAKE)]),
    "shapes": ("tune MODEL --budget 0.01 --shapes FILE", [*changed_json('{"x": [1, 4]}')]),
    "profile": ("diagnose FILE --what-if", [*changed_json(TRACE)][::20]),
    "costs": ("simulate bert-large --mode host --device FILE", [*changed_json(COSTS)][::50]),
    "calibration": ("simulate --calibrate FILE", [*changed_json(TRACE)][::20]),
    "input": ("run MODEL --runs 1 --input x=FILE", []),
    "model": ("plan FILE", []),
    "checked": ("plan --check FILE", []),
    "cases": ("bench MODEL --shapes FILE", []),
}


@pytest.mark.parametrize("reader", sorted(READERS))
def test_no_content_ends_in_a_traceback(reader: str, tmp_path: Path) -> None:
    line, contents = READERS[reader]
    file, model = tmp_path / "file", tmp_path / "model.onnx"
    onnx.save(onnx_models.mlp(width=4, layers=1), model)
    arguments = line.replace("FILE", str(file)).replace("MODEL", str(model)).split()
    if reader == "cases":
        pytest.importorskip("onnxruntime")
    odd = [
        (name, data) for name, data in odd_bytes().items() if reader != "cases" or data.strip(b" \n\t\r\xef\xbb\xbf")
    ]
    for name, data in [*odd, *((text[-80:], text.encode("utf-8", "surrogatepass")) for text in contents)]:
        file.write_bytes(data)
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code in (0, 1, 2), (name, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), (name, result.exception)
        if result.exit_code == 1:
            assert result.stderr.startswith("ascendsched: [") or not result.stderr, name
            assert result.stderr.count("\n") <= 1, name
        assert len(result.stderr) < 2000, name
        assert result.exit_code or "bomb" not in name, name


def refused(read: Callable[[Path], object], path: Path) -> str:
    """The message with which a reader refuses a file; "" where it reads it."""
    message = ""
    try:
        read(path)
    except AscendSchedError as error:
        message = str(error)
    assert not message or message.startswith("[")
    return message


@pytest.mark.parametrize("read", [read_settings, replay], ids=["settings", "decisions"])
def test_settings_and_logs_of_decisions_are_refused_too(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "file"
    for name, data in odd_bytes().items():
        path.write_bytes(data)
        assert refused(read, path) or read is replay, name
    entry = {
        "states": {cache: {"limit_bytes": 1 << 20} for cache in ("tiling", "schedule")},
        "windows": {c: {"hits": 1, "misses": 2, "evictions": 3, "bytes": 4} for c in ("tiling", "schedule")},
        "events": [],
        "max_bytes": 1 << 30,
    }
    for text in [*changed_json(SETTINGS), *changed_json(json.dumps(entry))]:
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        refused(read, path)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no endless file")
def test_an_endless_file_is_read_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="more than 4096 bytes"):
        bounded.read_bytes("/dev/zero", 4096)
    for reader in ("memplan", "buckets", "diagnose"):
        monkeypatch.setattr("ascendsched.memory_plan.TABLE_BYTES", 1 << 22)
        monkeypatch.setattr("ascendsched.tuning.requests.TABLE_BYTES", 1 << 22)
        monkeypatch.setattr("ascendsched.profile.importers.files.MAX_BYTES", 1 << 22)
        result = CliRunner().invoke(main, [reader, "/dev/zero"])
        assert (result.exit_code, result.stderr[:14]) == (1, "ascendsched: ["), result.stderr
        assert "more than 4194304 bytes" in result.stderr


def test_a_pipe_serves_as_a_file(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"4\n5\n")
    os.close(write)
    assert [request.prompt for request in read_requests(f"/dev/fd/{read}")] == [4, 5]
    os.close(read)


def test_an_array_is_as_large_as_its_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((2, 4), np.float32))
    good = path.read_bytes()
    assert bounded.read_array(path).tolist() == [[1] * 4] * 2
    for shape in ("(2, 9)", "(1099511627776,)", "(9223372036854775807, 9)", "(-1, 4)", "(True, 4)", "[[[[", "2"):
        header = good[10 : 10 + 118].decode().replace("(2, 4)", shape).rstrip()[:117]
        path.write_bytes(good[:10] + header.ljust(117).encode() + b"\n" + good[128:])
        with pytest.raises(ValueError, match=r"."):
            bounded.read_array(path)
    np.save(path, np.array([{}, None]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        bounded.read_array(path)
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.ones(3))
    with pytest.raises(ValueError, match="several arrays"):
        bounded.read_array(tmp_path / "two.npz")


def test_what_a_terminal_would_obey_is_not_printed(tmp_path: Path) -> None:
    g = asc.Graph("g")
    g.output(g.op("Relu", g.input("\x1b]0;owned\x07", "float32", ("n",))), "y")
    result = CliRunner().invoke(main, ["run", str(tmp_path / "a\x1b[2Jb\udcff.onnx")])
    assert result.exit_code == 1
    assert "\x1b" not in result.stderr
