"""How long until a model can run: compile, load a saved file, create a session of onnxruntime?

How to read it: "load" against "compile" says what saving is worth; both have resolved no shape yet, as a session has
not. "load, warm" has resolved the shape that ran before, and has run once. One thread; the model is a file.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from command import main
from harness import PEER, Effort, Subject, Table, compare, onnx_reference

import ascendsched as asc
from ascendsched.demo.models import decoder, resnet18
from ascendsched.demo.peers import create_session, has_onnxruntime


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table per model."""
    image = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    yield _compare("ResNet-18", resnet18(), {"x": image}, effort)
    model = decoder(capacity=16)
    feeds = {
        i.name: np.zeros([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32) for i in model.graph.input
    }
    feeds |= {"input_ids": np.ones((1, 1), np.int64), "position": np.zeros(1, np.int64)}
    yield _compare("decoder, 4 layers", model, feeds, effort)


def _compare(title: str, model: onnx.ModelProto, feeds: dict[str, Any], effort: Effort) -> Table:
    reference = onnx_reference(model, *(feeds[i.name] for i in model.graph.input))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        subjects = list(_subjects(path, feeds))
        return compare(title, "start", subjects, reference, effort, calls=1)


def _subjects(path: Path, feeds: dict[str, Any]) -> Iterator[Subject]:
    saved = path.with_suffix(".asc")
    exe = asc.compile(path, threads=1)
    exe.run(feeds)
    exe.save(saved)
    yield Subject("compile", lambda: asc.compile(path, threads=1), result=lambda: asc.compile(path).run(feeds))
    yield Subject("load", lambda: asc.load(saved, warm=False), result=lambda: asc.load(saved, warm=False).run(feeds))
    yield Subject("load, warm", lambda: asc.load(saved), result=lambda: asc.load(saved).run(feeds))
    if has_onnxruntime():
        create = partial(create_session, str(path), 1)
        yield Subject(f"{PEER}, session", create, result=lambda: create().run(None, feeds), is_peer=True)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"start": measure}))
