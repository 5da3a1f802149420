"""What an executable was compiled from and for; `store` keeps it in saved files."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from ascendsched.errors import GraphError
from ascendsched.native import core as _core
from ascendsched.options import Options

_SETTLED_NS = 2_000_000_000  # a file system may keep its times in steps of up to two seconds

# Device, inode, size, times of the last changes of contents and of anything. Every write changes the last one, and no
# program can set it back: where the stamp is the same, so are the contents.
Stamp = tuple[int, int, int, int, int]


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what tells a file from itself after a change."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True)
class SourceFile:
    """A file that the model was read from, as it was then."""

    path: str
    stamp: Stamp
    hash: str | None = None  # of the contents; None: not computed yet
    is_settled: bool = False  # hashed long after its last change: a later one cannot have kept the stamp

    @classmethod
    def read(cls, path: Path, status: os.stat_result) -> SourceFile:
        """Describe a file that was read when `status` was taken."""
        return cls(os.fspath(path), stamp_of(status))

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
            before = stamp_of(os.stat(self.path))
            found = hash_of(self.path)
            after = stamp_of(os.stat(self.path))
        except OSError as error:
            raise GraphError(f"[save] cannot read '{self.path}': {error.strerror}; compile the model again") from None
        if not before == after == self.stamp:
            raise GraphError(f"[save] '{self.path}' has changed since it was compiled; compile it again")
        return replace(self, hash=found, is_settled=time.time_ns() - self.stamp[4] > _SETTLED_NS)

    def is_unchanged(self) -> bool:
        """Whether the file still has the contents that it had, by its stamp or, where that differs, by its hash.

        Raises
        ------
        OSError, GraphError
            Where there is no such file.
        """
        now = stamp_of(os.stat(self.path))
        return (self.is_settled and now == self.stamp) or (now[2] == self.stamp[2] and hash_of(self.path) == self.hash)


@dataclass(frozen=True)
class Setup:
    """The arguments of ``compile``, as given; the files of the model, its own first, none for a model in memory; the
    kinds of its inputs and outputs that are packed values; the shapes that it declares for its outputs."""

    device: str
    mode: str
    threads: int | None
    options: Options | None
    files: tuple[SourceFile, ...] = ()
    kinds: dict[str, str] = field(default_factory=dict)
    results: dict[str, tuple[int | str | None, ...]] = field(default_factory=dict)


def hash_of(path: str) -> str:
    """Return the hash of a file's contents."""
    return f"{_core.file_hash(os.fsencode(path)):016x}"
