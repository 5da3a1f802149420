"""Reads files of others: whatever they are, no more of them than was said."""

from __future__ import annotations

import math
import os
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

SETTINGS_BYTES = 16 << 20  # settings and descriptions, which people write
TABLE_BYTES = 256 << 20  # traces and tables, of which every line becomes an object

_SHOWN = 500  # characters
_PIECE_BYTES = 1 << 20


def read_bytes(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """The content of a file, a pipe or a device.

    Raises
    ------
    OSError
        Where it cannot be read.
    ValueError
        Where it is larger, or no path.
    """
    parts, size = [], 0
    with Path(path).open("rb") as file:
        while part := file.read(_PIECE_BYTES):
            size += len(part)
            if size > most_bytes:  # what it says of its own size need not hold
                raise ValueError(f"it has more than {most_bytes} bytes, the most that is read")
            parts.append(part)
    return b"".join(parts)


def read_text(path: str | os.PathLike[str], most_bytes: int) -> str:
    """The same as text: UTF-8, a byte order mark left out; a `ValueError` where it is something else."""
    return read_bytes(path, most_bytes).decode("utf-8-sig")


def reason(error: OSError | ValueError) -> str:
    """Why a file cannot be read, for a message that names it: what an `OSError` says without number and path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def shortened(value: object) -> str:
    """What a message shows of a text that comes from a file."""
    text = str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """What ``numpy.save`` wrote; memory is taken for what the file has, not for what its header claims.

    Raises
    ------
    OSError, ValueError
        Where it cannot be read, or is something else.
    """
    try:
        with Path(path).open("rb") as file:
            return _array_of(file)
    except (EOFError, MemoryError, OverflowError, RecursionError, SyntaxError, TokenError, TypeError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def _array_of(file: IO[bytes]) -> NDArray[Any]:
    if file.peek(2)[:2] == b"PK":  # type: ignore[attr-defined]  # a buffered file
        raise ValueError("it holds several arrays")
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it has version {version} of the format, 1 and 2 are read")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(file)
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"it holds {dtype}, which is no number and no text")
    begin = file.tell()
    count, room = math.prod(shape), (file.seek(0, os.SEEK_END) - begin) // dtype.itemsize
    if min(shape, default=0) < 0 or count > room:
        raise ValueError(f"its header says {tuple(shape)} of {dtype}, but there are {room} elements")
    file.seek(begin)
    return np.fromfile(file, dtype, count).reshape(shape, order="F" if is_fortran else "C")
