"""Writes files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ascendsched.bounded import reason
from ascendsched.errors import WriteError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yields a file that takes the place of `path` at the end of the block; an error in it leaves what was there.

    A link stays one, and permissions are kept; a new file has those of all files that this process makes.

    Raises
    ------
    OSError, ValueError
        Where it cannot be written, or is no path.
    """
    target = Path(os.path.realpath(path))
    if not _is_replaceable(target):
        raise OSError(f"'{target}' is no regular file")
    scratch = target.with_name(f".{secrets.token_hex(8)}.part")  # as short as names may have to be
    file = scratch.open("xb")
    try:
        with file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: str | bytes, where: str) -> str:
    """Writes a file, or replaces it, and returns its path. A device or a pipe is written to.

    Parameters
    ----------
    path : path
        The file.
    content : str or bytes
        All of it; text is written as UTF-8.
    where : str
        What a message begins with.

    Raises
    ------
    WriteError
        Where it cannot be written; what was there stays.
    """
    target = Path(path)
    try:
        data = content.encode() if isinstance(content, str) else content
        if _is_replaceable(target):
            with replacing(target) as file:
                file.write(data)
        else:
            target.write_bytes(data)
    except (OSError, ValueError) as error:
        raise write_error(where, target, error) from None
    return str(target)


def write_error(where: str, path: str | os.PathLike[str], error: OSError | ValueError) -> WriteError:
    """The error that says why a file cannot be written."""
    if isinstance(error, FileNotFoundError):
        return no_folder_error(where, path)
    return WriteError(f"[{where}] cannot write '{os.fspath(path)}': {reason(error)}; choose another path")


def no_folder_error(where: str, path: str | os.PathLike[str]) -> WriteError:
    """The error that says that there is no folder for a file."""
    return WriteError(f"[{where}] cannot write '{os.fspath(path)}': no folder for it; create it first")


def _is_replaceable(path: Path) -> bool:
    return path.is_file() or not path.exists()
