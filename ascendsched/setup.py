"""What an executable was compiled from and for; `store` keeps it in saved files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from ascendsched import _core
from ascendsched.errors import GraphError
from ascendsched.options import Options


@dataclass(frozen=True)
class SourceFile:
    """A file that the model was read from, as it was then."""

    path: Path
    bytes: int
    mtime_ns: int
    hash: str | None = None  # of the contents; None: not computed yet

    @classmethod
    def read(cls, path: Path, status: os.stat_result) -> SourceFile:
        """Describe a file that was read when `status` was taken."""
        return cls(path, status.st_size, status.st_mtime_ns)

    def hashed(self) -> SourceFile:
        """Return the same with its hash.

        Raises
        ------
        GraphError
            Where the file is gone or has changed since it was read.
        """
        if self.hash is not None:
            return self
        try:
            status = self.path.stat()
        except OSError as error:
            raise GraphError(f"[save] cannot read '{self.path}': {error.strerror}; compile the model again") from None
        if (status.st_size, status.st_mtime_ns) != (self.bytes, self.mtime_ns):
            raise GraphError(f"[save] '{self.path}' has changed since it was compiled; compile it again")
        return replace(self, hash=hash_of(self.path))


@dataclass(frozen=True)
class Setup:
    """The arguments of ``compile``, as given, and the files of the model, its own first; none for a model in memory."""

    device: str
    mode: str
    threads: int | None
    options: Options | None
    files: tuple[SourceFile, ...] = ()


def hash_of(path: Path) -> str:
    """Return the hash of a file's contents."""
    return f"{_core.file_hash(os.fspath(path)):016x}"
