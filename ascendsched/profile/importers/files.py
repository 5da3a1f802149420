"""Reads a profile's file, gzipped or not, within bounds; and says where it came from without naming the reader."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from ascendsched import bounded
from ascendsched.errors import AscendSchedError

#: A larger file would not fit beside its events in the memory of a usual machine.
MAX_BYTES = 2 << 30
# Traces shrink 10 to 30 times under gzip; what shrinks more than this is a bomb, not a trace.
MAX_RATIO = 250
CHUNK_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"

# A folder of homes, wherever it lies, with the owner's name; and the administrator's home.
HOMES = re.compile(
    r"(?<![\w.-])(?:/[\w.-]+)*/(?:home|Users)/[^/\s\"';:,()]+"
    r"|\b[A-Za-z]:\\+Users\\+[^\\\s\"';:,()]+"
    r"|(?<![\w.-])/root(?![\w.-])"
)


class NoProfileError(AscendSchedError):
    """A file that can be read, but holds no profile that is known here."""


def redact(text: str) -> str:
    """The text with the owners of home folders left out: "/home/someone/x" is "~/x"."""
    return HOMES.sub("~", text)


def shown(path: Path) -> str:
    """A path as reports show it."""
    return redact(str(path))


def fail(path: Path, what: str, then: str) -> AscendSchedError:
    """The error for a file that cannot be read as a profile."""
    return AscendSchedError(f"[diagnose] {shown(path)}: {what}; {then}")


def read_bytes(path: Path) -> bytes:
    """The file's content, decompressed where it is gzip.

    Raises
    ------
    AscendSchedError
        Where it does not exist, is empty, is damaged, or is too large.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise fail(path, f"{size} bytes, at most {MAX_BYTES} are read", "profile fewer steps")
        data = bounded.read_bytes(path, MAX_BYTES)
    except OSError as error:
        raise fail(path, f"cannot be read ({error.strerror})", "pass a profile's file or folder") from None
    except ValueError as error:
        raise fail(path, f"cannot be read ({error})", "profile fewer steps") from None
    if data.startswith(GZIP_MAGIC):
        data = _inflate(path, data)
    if not data or data.isspace():
        raise fail(path, "is empty", "record the profile again")
    return data


def _inflate(path: Path, data: bytes) -> bytes:
    limit = min(MAX_BYTES, max(len(data) * MAX_RATIO, 16 * CHUNK_BYTES))
    parts: list[bytes] = []
    size = 0
    try:
        while data.startswith(GZIP_MAGIC):  # a gzip file may hold several members
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                part = member.decompress(data, CHUNK_BYTES)
                data = member.unconsumed_tail
                size += len(part)
                if size > limit:
                    raise fail(path, f"inflates to more than {limit} bytes", "this is no profile; record it again")
                parts.append(part)
                if not part and not data and not member.eof:
                    raise fail(path, "ends in the middle of its gzip data", "copy or record it again")
            data = member.unused_data
    except zlib.error:
        raise fail(path, "holds damaged gzip data", "copy or record it again") from None
    return b"".join(parts)
