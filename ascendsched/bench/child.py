"""A fresh process that compiles and runs one model in one runtime: cold times and peak memory, disturbed by nobody.

Reads a request in JSON from stdin, writes the answer in JSON to stdout; `measure_cold` is the caller's side.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.bench.runtimes import PEER, create

_WARM_RUNS = 2  # after the first: what a runtime allocates only then counts too


@dataclass(frozen=True)
class Cold:
    """What one runtime needs in a fresh process.

    Attributes
    ----------
    compile_ms, first_run_ms : float
        Loading the model, and its first run.
    base_bytes, peak_bytes : int
        Peak memory of the process with the runtime and the inputs loaded, and after runs of the model.
    """

    compile_ms: float
    first_run_ms: float
    base_bytes: int
    peak_bytes: int


def measure_cold(runtime: str, model: str, threads: int, feeds: Mapping[str, NDArray[Any]]) -> Cold | str:
    """Measures in a child process; a str is the last line of what it said when it failed."""
    with tempfile.TemporaryDirectory(prefix="ascendsched-bench-") as folder:
        inputs = []
        for i, (name, array) in enumerate(feeds.items()):
            path = os.path.join(folder, f"{i}.npy")
            stored = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
            np.save(path, stored, allow_pickle=False)
            inputs.append([name, path, array.dtype.name])
        request = {"runtime": runtime, "model": model, "threads": threads, "inputs": inputs}
        package = str(Path(__file__).resolve().parents[2])
        path_list = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        ran = subprocess.run(
            [sys.executable, "-m", "ascendsched.bench.child"],
            input=json.dumps(request),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path_list)},
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        lines = ran.stderr.strip().splitlines()
        return lines[-1] if lines else f"the process ended with status {ran.returncode}"
    return Cold(**json.loads(ran.stdout))


def main() -> None:
    """The child's side."""
    request = json.load(sys.stdin)
    feeds = {name: _load(path, dtype) for name, path, dtype in request["inputs"]}
    if request["runtime"] == PEER:
        importlib.import_module(PEER)  # importing it is no part of compiling
    else:
        import onnx  # noqa: F401

        import ascendsched.executable  # noqa: F401
    base = peak_bytes()
    begin = time.perf_counter_ns()
    compiled = create(request["runtime"], request["model"], request["threads"])
    compile_ns = time.perf_counter_ns() - begin
    begin = time.perf_counter_ns()
    compiled.run(feeds)
    first_ns = time.perf_counter_ns() - begin
    for _ in range(_WARM_RUNS):
        compiled.run(feeds)
    cold = {"compile_ms": compile_ns / 1e6, "first_run_ms": first_ns / 1e6}
    print(json.dumps({**cold, "base_bytes": base, "peak_bytes": peak_bytes()}))


def peak_bytes() -> int:
    """Peak resident memory of this process.

    Linux hands ``ru_maxrss`` on from the process that started this one; its own peak stands in ``/proc``.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def _load(path: str, dtype: str) -> NDArray[Any]:
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    if dtype == "bfloat16":
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)
    return array


if __name__ == "__main__":
    main()
