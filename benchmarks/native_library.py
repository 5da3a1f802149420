"""C++ files of the benchmarks, compiled for this machine when they are needed."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

FLAGS = ["-O3", "-march=native", "-std=c++17", "-shared", "-fPIC"]


def compiler() -> str | None:
    """The C++ compiler's command, or None."""
    return shutil.which(os.environ.get("CXX", "g++"))


def compile_library(source: Path, *, fast_math: bool) -> ctypes.CDLL:
    """Compiles and loads a file.

    Raises
    ------
    subprocess.CalledProcessError
        Where the compiler fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{source.stem}.so"
        flags = [*FLAGS, "-ffast-math"] if fast_math else FLAGS
        command = [compiler() or "g++", *flags, str(source), "-o", str(target)]
        subprocess.run(command, check=True)  # noqa: S603 - the user's compiler on a file of ours
        return ctypes.CDLL(str(target))
