"""Saved executables that are damaged, cut, or written by somebody else."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendsched as asc
from ascendsched import _core

from .saved_files import HEADER_BYTES, SIZES, rebuilt, rewritten_at, rows, same, save_mlp, seal


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return save_mlp(tmp_path)


def test_every_damaged_byte_ends_in_a_rebuild(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = saved.read_bytes()
    expected = asc.load(saved).run(rows(3))
    positions = {*range(104), *np.random.default_rng(7).integers(0, len(good), 150).tolist(), len(good) - 1}
    for position in sorted(positions):
        damaged = bytearray(good)
        damaged[position] ^= 1 << (position % 8)
        saved.write_bytes(damaged)
        caplog.clear()
        if position < 8:  # without its magic number it is nobody's file
            with pytest.raises(asc.GraphError, match="is not used"):
                asc.load(saved)
        exe = asc.load(saved, model=saved.parent / "model.onnx", warm=False)
        assert rebuilt(caplog), position
        if position % 10 == 0:
            assert same(exe.run(rows(3)), expected)


def test_every_truncation_ends_in_an_error_or_a_rebuild(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = saved.read_bytes()
    for size in [*range(0, 120, 7), *range(120, len(good), 97), len(good) - 1]:
        saved.write_bytes(good[:size])
        with pytest.raises(asc.GraphError, match="pass model="):
            asc.load(saved)
        caplog.clear()
        asc.load(saved, model=saved.parent / "model.onnx")
        assert rebuilt(caplog)
    saved.write_bytes(good + b"\0")
    with pytest.raises(asc.GraphError, match="truncated or damaged"):
        asc.load(saved)


def test_damaged_constants_are_rebuilt_from_the_model_beside_the_file(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = bytearray(saved.read_bytes())
    data[-100] ^= 1
    saved.write_bytes(data)
    assert asc.load(saved).stats()["warmups"] == 1
    assert rebuilt(caplog)
    (saved.parent / "model.onnx").unlink()
    with pytest.raises(asc.GraphError, match=r"checksum.*is not there; pass model="):
        asc.load(saved)


def test_forged_structures_end_in_an_error(saved: Path) -> None:
    """Correct checksums over wrong bytes: the reader itself must hold."""
    good = saved.read_bytes()
    size = SIZES.unpack_from(good, 16)[0]
    rng = np.random.default_rng(11)
    (saved.parent / "model.onnx").unlink()
    for _ in range(400):
        forged = bytearray(good)
        forged[HEADER_BYTES + int(rng.integers(size))] = int(rng.integers(256))
        seal(forged)
        saved.write_bytes(forged)
        with contextlib.suppress(asc.AscendSchedError):
            asc.load(saved, warm=False).run(rows(3))


def test_a_graph_that_only_says_that_it_was_rewritten_runs_as_it_is(tmp_path: Path) -> None:
    g = asc.Graph("a_name_of_its_own")
    x = g.input("x", "float32", ("n", 4))
    g.output(g.op("Relu", g.op("Neg", g.op("Identity", x))), "y")
    asc.compile(g, threads=1, options=asc.Options(fuse=False)).save(tmp_path / "m.asc")
    forged = bytearray((tmp_path / "m.asc").read_bytes())
    forged[rewritten_at(forged, b"a_name_of_its_own")] = 1
    seal(forged)
    (tmp_path / "m.asc").write_bytes(forged)
    array = np.arange(-4, 4, dtype=np.float32).reshape(2, 4) + np.float32(0.5)
    again = asc.load(tmp_path / "m.asc", options=asc.Options())
    assert same(again.run({"x": array}), {"y": np.maximum(-array, 0)})


def test_forged_descriptions_end_in_an_error_or_a_rebuild(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Correct checksums over JSON that says something else, and over what is no JSON."""
    good = saved.read_bytes()
    start, size = HEADER_BYTES + SIZES.unpack_from(good, 16)[0], SIZES.unpack_from(good, 16)[1]
    text = good[start : start + size].decode()
    meta = json.loads(text)
    changes: list[Any] = [
        *({**meta, key: value} for key in meta for value in (None, 1, "x", [], {}, [None], {"path": 1})),
        *({**meta, "source": {**meta["source"], "path": value}} for value in ("\0", "\ud800", 7, "x" * 5000)),
        *(
            {**meta, "source": {"path": "model.onnx", "files": [{**meta["source"]["files"][0], key: value}]}}
            for key in ("path", "hash", "stamp", "settled")
            for value in (None, 1, "\0", [1], [1, 2, "x", 4, 5], [2**70] * 5, [True] * 5)
        ),
        *(
            {**meta, "source": {"path": "model.onnx", "files": [*meta["source"]["files"], {**e, "path": path}]}}
            for e in meta["source"]["files"]
            for path in ("\0", "/", "..", "absent", "\ud800")
        ),
    ]
    changes += [
        {**meta, "shapes": [{"x": {"shape": shape, "value": value}}] * count}
        for shape in ([3, 8], [2**62, 8], [2**70, 8], [True, 8], [3])
        for value in (None, 0, True, 1.5, "", "f", "00" * 96, ["00"])
        for count in (1, 300)
    ]
    changes += [
        {**meta, "device": device} for device in ("\ud800", "\0", "sim:" + "x" * 5000, "sim:x\0y", "timed:us=9" * 500)
    ]
    changes += [{**meta, "mode": "\ud800"}, {**meta, "threads": 2**40}, {**meta, "kinds": {"x": "sequence(" * 999}}]
    texts = [json.dumps(change) for change in changes]
    texts += ["", "{", "[]", "nan", "\x00", text[: size // 2], "[" * 100_000, '{"a": ' * 100_000]
    for forged_text in texts:
        padded = forged_text.encode() + b" " * (-(start + len(forged_text)) % 64)
        forged = bytearray(good[:start] + padded + good[start + size :])
        struct.pack_into("<Q", forged, 24, len(padded))
        seal(forged)
        saved.write_bytes(forged)
        with contextlib.suppress(asc.AscendSchedError):
            asc.load(saved, warm=True).run(rows(3))
    assert max(len(record.getMessage()) for record in caplog.records) < 2500  # a log is no copy of a file


@pytest.mark.parametrize(
    "text",
    [b"\xff", b"\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xc3("],
)
def test_a_name_that_is_no_unicode_is_refused(text: bytes, tmp_path: Path) -> None:
    """What a run says of a value would not be text."""
    for length in (8, 15):
        name = "x" * length
        g = asc.Graph()
        g.output(g.op("Relu", g.input(name, "float32", ("n", 4))), "y")
        asc.compile(g, threads=1).save(tmp_path / "m.asc")
        good = (tmp_path / "m.asc").read_bytes()
        for end in (len(text), length):
            forged = bytearray(
                good.replace(name.encode(), name.encode()[: end - len(text)] + text + b"y" * (length - end))
            )
            seal(forged)
            (tmp_path / "m.asc").write_bytes(forged)
            with pytest.raises(asc.GraphError, match="not UTF-8"):
                asc.load(tmp_path / "m.asc")


def test_names_in_any_language_are_kept(tmp_path: Path) -> None:
    g = asc.Graph()
    g.output(g.op("Relu", g.input("\u00e9\u4e2d\ud7ff\ue000\U0010ffff\0", "float32", (2,))), "\U00010000")
    exe = asc.compile(g, threads=1)
    exe.save(tmp_path / "m.asc")
    again = asc.load(tmp_path / "m.asc")
    assert (again.inputs, again.outputs) == (exe.inputs, exe.outputs)


def test_forged_lengths_end_in_an_error(saved: Path) -> None:
    good = saved.read_bytes()
    sizes = SIZES.unpack_from(good, 16)
    for i in range(3):
        for value in (0, 1, sizes[i] - 1, sizes[i] + 1, sizes[i] + 64, len(good), 2**63, 2**64 - 1, 2**64 - 64):
            forged = bytearray(good)
            struct.pack_into("<Q", forged, 16 + 8 * i, value)
            struct.pack_into("<Q", forged, HEADER_BYTES - 8, _core.bytes_hash(bytes(forged[: HEADER_BYTES - 8])))
            saved.write_bytes(forged)
            (saved.parent / "model.onnx").unlink(missing_ok=True)
            with pytest.raises(asc.GraphError, match="is not used"):
                asc.load(saved)


@pytest.mark.parametrize("number", [1, 2])
def test_an_older_format_is_named(number: int, saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[8] = number
    saved.write_bytes(data)
    (saved.parent / "model.onnx").unlink()
    with pytest.raises(asc.GraphError, match=f"it has format {number}, this version reads 3"):
        asc.load(saved)
