"""The example package builds against the headers that are shipped, installs and runs in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ascendsched

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import numpy as np
import ascendsched as asc

g = asc.Graph()
x = g.input("x", "float32", ("n",))
g.output(g.op("gauss::bump", x, sharpness=2.0), "y")
exe = asc.compile(g)
for n in (3, 5, 5, 5):
    x = np.linspace(-1, 1, n, dtype=np.float32)
    np.testing.assert_allclose(exe(x), np.exp(-2 * x * x), rtol=1e-6)
assert exe.stats()["host_calls"] == 0
print("done")
"""


@pytest.mark.skipif(importlib.util.find_spec("Cython") is None, reason="Cython is not installed")
@pytest.mark.skipif(importlib.util.find_spec("setuptools") is None, reason="setuptools is not installed")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_package_builds_installs_and_runs(tmp_path: Path) -> None:
    source, target = tmp_path / "package", tmp_path / "site"
    shutil.copytree(ROOT / "examples" / "operator_package", source)
    paths = os.pathsep.join([str(target), str(Path(ascendsched.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths}
    install = ["-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(target), "."]
    for command in (install, ["-c", PROGRAM]):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=source,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"
