"""Every code block of the guide's pages runs, and every message on the troubleshooting page is what the block gives."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import ascendsched
from ascendsched.errors import AscendSchedError

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
PAGES = [
    "devices.md",
    "diagnose.md",
    "from-onnxruntime.md",
    "own-operators.md",
    "threads-and-containers.md",
    "torch.md",
    "troubleshooting.md",
    "tuning.md",
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of code, and the message that the page shows right below it, if any."""

    language: str
    code: str
    message: str | None


def blocks(page: str) -> Iterator[Block]:
    found = BLOCK.findall((GUIDE / page).read_text(encoding="utf-8"))
    for i, (language, code) in enumerate(found):
        follows = found[i + 1] if i + 1 < len(found) else ("", "")
        if language != "text":
            yield Block(language, code, follows[1].strip() if follows[0] == "text" else None)


def save(path: Path, nodes: list[Any], inputs: list[Any], weights: dict[str, Any], opset: int = 17) -> Any:
    from onnx import helper, numpy_helper, save_model

    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    save_model(model, path)
    return model


def save_traces(folder: Path) -> None:
    """A profile of twenty late kernels in one step, alone and as the two ranks of a job."""
    common = {"ph": "X", "pid": 1, "tid": 1}
    events: list[dict[str, Any]] = [
        {**common, "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 2000}
    ]
    for i in range(20):
        linked = {"args": {"correlation": i + 1, "device": 0, "stream": 7}}
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": i * 100 + 70, "dur": 5, **linked}
        kernel = {"cat": "kernel", "name": "gemm", "ts": i * 100 + 80, "dur": 10, **linked}
        events += [{**common, **launch}, {**common, **kernel}]
    for name, rank in (("trace", 0), ("ranks/rank0", 0), ("ranks/rank1", 1)):
        path = folder / f"{name}.json.gz"
        path.parent.mkdir(exist_ok=True)
        document = {"distributedInfo": {"rank": rank}, "traceEvents": events}
        path.write_bytes(gzip.compress(json.dumps(document).encode()))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the pages' examples run: a folder with their models, and the command on the path."""
    from onnx import TensorProto, helper, save_model

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])
    weights = np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], "product"), helper.make_node("Tanh", ["p"], ["y"], "tanh")]
    model = save(tmp_path / "model.onnx", nodes, [x], {"w": weights})
    save_model(model, tmp_path / "external.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    save(tmp_path / "new.onnx", [helper.make_node("Tanh", ["x"], ["y"])], [x], {}, opset=99)
    nodes = [
        helper.make_node("MaxRoiPool", ["x", "x"], ["p"], "regions", pooled_shape=[1, 1]),
        helper.make_node("ImageDecoder", ["p"], ["y"], "decode"),
    ]
    save(tmp_path / "unknown.onnx", nodes, [x], {})
    small = helper.make_tensor_value_info("x", TensorProto.INT8, ["batch", 8])
    save(tmp_path / "int8.onnx", [helper.make_node("Erf", ["x"], ["y"], "error_function")], [small], {})
    index = helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])
    save(tmp_path / "gather.onnx", [helper.make_node("Gather", ["w", "i"], ["y"], "rows")], [index], {"w": weights})
    save_traces(tmp_path)
    rows = [f"2023-11-16 18:17:03.{i:07},{100 + i * i % 71},{i}" for i in range(40)]
    (tmp_path / "trace.csv").write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]) + "\n")
    command = tmp_path / "bin" / "ascendsched"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ascendsched "$@"\n')
    command.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("EXAMPLES", str(GUIDE.parents[1] / "examples"))
    monkeypatch.setenv("PYTHONPATH", str(Path(ascendsched.__file__).parents[1]))
    # `python` and `ascendsched` are those of the environment that runs the tests, as if it were activated.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    return tmp_path


def said_by(block: Block, names: dict[str, Any]) -> str | None:
    """Runs a block; the error that it gives, as the page spells it, or None."""
    if block.language == "sh":
        ran = subprocess.run(["bash", "-e", "-c", block.code], capture_output=True, text=True, timeout=240, check=False)
        return ran.stderr.strip() or f"exit status {ran.returncode}" if ran.returncode else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what one entry is about
            exec(compile(block.code, "guide", "exec"), names)
    except AscendSchedError as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_does_what_the_page_says(page: str) -> None:
    found = list(blocks(page))
    if any("onnxruntime as" in block.code for block in found):
        pytest.importorskip("onnxruntime", reason="the page's examples compare with it")
    if any("pip install" in block.code for block in found):
        pytest.importorskip("setuptools", reason="the page builds a package")
        if shutil.which("cc") is None:
            pytest.skip("the page builds a package, and there is no C compiler")
    if any("import torch" in block.code for block in found):
        pytest.importorskip("torch", reason="the page's examples are models of it")
    assert {block.language for block in found} <= {"python", "sh"}
    names: dict[str, Any] = {"__name__": "guide"}
    for block in found:
        said = said_by(block, names)
        if block.message is None:
            assert said is None, f"{block.code}\n{said}"
            continue
        pattern = ".*".join(re.escape(part) for part in " ".join(block.message.split()).split("…"))
        assert said is not None, f"{block.code} gives no error; the page says {block.message}"
        assert re.fullmatch(pattern, " ".join(said.split())), f"{block.code}\n{said}"


def test_the_pages_are_linked_from_the_readme_and_the_guide() -> None:
    for index in (GUIDE.parents[1] / "README.md", GUIDE / "running.md"):
        text = index.read_text(encoding="utf-8")
        assert not [page for page in PAGES if page not in text], index
