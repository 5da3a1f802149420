"""Saved executables for tests, and what changes them."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import ascendsched as asc
from ascendsched import _core

from . import onnx_models as models

Feeds = dict[str, Any]
HEADER_BYTES = _core.SAVED_HEADER_BYTES
SIZES = struct.Struct("<3Q")  # of structure, description and constants, behind magic number and format


def small_mlp() -> onnx.ModelProto:
    return models.mlp(width=8, layers=2)


def rows(count: int) -> Feeds:
    return {"x": np.random.default_rng(count).standard_normal((count, 8)).astype(np.float32)}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return list(a) == list(b) and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes() for k in a
    )


def written(folder: Path, model: onnx.ModelProto, name: str = "model.onnx") -> Path:
    path = folder / name
    onnx.save(model, path)
    return path


def seal(data: bytearray) -> None:
    """Put the checksums right after a change."""
    ends = np.cumsum([HEADER_BYTES, *SIZES.unpack_from(data, 16)])
    hashes = [_core.bytes_hash(bytes(data[begin:end])) for begin, end in itertools.pairwise(ends)]
    SIZES.pack_into(data, 16 + SIZES.size, *hashes)
    struct.pack_into("<Q", data, HEADER_BYTES - 8, _core.bytes_hash(bytes(data[: HEADER_BYTES - 8])))


def rewritten_at(data: bytes, name: bytes) -> int:
    """Where a file says whether its graph was rewritten: behind the graph's name."""
    text = struct.pack("<I", len(name)) + name
    assert data.count(text) == 1
    return data.index(text) + len(text)


def rebuilt(log: pytest.LogCaptureFixture) -> bool:
    return any("compiling the model instead" in record.message for record in log.records)


def save_mlp(folder: Path) -> Path:
    """Save an MLP that ran with 3 rows, its model beside it."""
    exe = asc.compile(written(folder, small_mlp()), threads=1)
    exe.run(rows(3))
    exe.save(folder / "m.asc")
    return folder / "m.asc"
