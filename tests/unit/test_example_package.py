"""The example packages build against the headers that are shipped, install and run in a process of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ascendsched

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OPERATOR = """
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

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("setuptools") is None, reason="setuptools is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


class Installed:
    """A copy of an example package, installed into a folder of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.source, self.target = folder / "package", folder / "site"
        shutil.copytree(EXAMPLES / name, self.source)
        options = ["--no-build-isolation", "--no-deps", "--no-index", "--target", str(self.target)]
        done = self.run("-m", "pip", "install", *options, ".")
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(self.target), str(Path(ascendsched.__file__).parents[1])])
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.source,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.mark.skipif(importlib.util.find_spec("Cython") is None, reason="Cython is not installed")
def test_the_operator_package_builds_installs_and_runs(tmp_path: Path) -> None:
    done = Installed("operator_package", tmp_path).run("-c", OPERATOR)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


def test_the_device_package_builds_installs_and_conforms(tmp_path: Path) -> None:
    package = Installed("device_package", tmp_path)
    done = package.run("-m", "ascendsched", "tools", "conformance", "toy", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {c["check"]: c["verdict"] for c in json.loads(done.stdout)["checks"]}
    assert set(verdicts.values()) == {"passed", "unsupported"}
    assert verdicts["kernel[Relu]"] == "passed"
    assert verdicts["kernel[Conv]"] == "unsupported"
    assert [name for name in verdicts if "[host]" in name and verdicts[name] != "passed"] == [
        "shapes_that_depend_on_data_stay_in_bounds[host]"
    ]


def test_the_device_example_is_short() -> None:
    (source,) = (EXAMPLES / "device_package").rglob("*.c")
    assert len(source.read_text(encoding="utf-8").splitlines()) <= 120
