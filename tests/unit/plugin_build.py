"""Builds plug-ins from source, and makes capsules of what they export."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import ascendsched as asc

HAS_COMPILER = shutil.which("cc") is not None and shutil.which("c++") is not None
_SANITIZERS = {"thread": ["-fsanitize=thread"], "address": ["-fsanitize=address,undefined"]}


def build_library(source: Path, folder: Path) -> ctypes.CDLL:
    """Compiles a plug-in in C or C++ against the shipped headers, with the sanitizer that the core was built with."""
    made = folder / f"{source.stem}{sysconfig.get_config_var('SHLIB_SUFFIX')}"
    compiler = ["cc"] if source.suffix == ".c" else ["c++", "-std=c++17"]
    flags = ["-O1", "-g", "-shared", "-fPIC", "-pthread", "-Wall", "-Wno-missing-field-initializers"]
    flags += _SANITIZERS.get(os.environ.get("ASCENDSCHED_SANITIZE", ""), [])
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [*compiler, *flags, f"-I{asc.get_include()}", str(source), "-o", str(made)]
    subprocess.run(command, check=True, timeout=240, env=environment)
    return ctypes.CDLL(str(made))


def capsule(library: ctypes.CDLL, symbol: str, name: ctypes.Array[ctypes.c_char]) -> Any:
    """A capsule around an exported struct; `name` must live as long."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return make(ctypes.addressof(ctypes.c_char.in_dll(library, symbol)), ctypes.addressof(name), None)
