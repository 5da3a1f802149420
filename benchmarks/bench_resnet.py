"""What does scheduling matter where kernels are large: ResNet-18 on one image, with 1 and 2 threads?

How to read it: "host" and "sink" should be close, for kernels take nearly all of the time; the ratio to onnxruntime is
then one of kernels. Before each sample everyone rests, so that no thread of another row still spins.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from command import main
from harness import PEER, Array, Effort, Subject, Table, bind_session, compare, onnx_reference, then

import ascendsched as asc
from ascendsched.demo.models import resnet18
from ascendsched.demo.peers import create_session, has_onnxruntime
from ascendsched.options import default_threads

THREADS = (1, 2)
PAUSE_S = 0.02


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table per number of threads."""
    size = 112 if effort.is_quick else 224
    model = resnet18(shape=(1, 3, size, size))
    x = np.random.default_rng(0).standard_normal((1, 3, size, size)).astype(np.float32)
    reference = onnx_reference(model, x)
    for threads in THREADS:
        title = f"ResNet-18, {size} x {size}, threads: {threads}"
        table = compare(title, "run", _subjects(model, x, threads), reference, effort, pause_s=PAUSE_S, rate="images/s")
        if threads > default_threads():
            table.notes.append(f"more threads than the CPUs that this process may use ({default_threads()})")
        yield table


def _subjects(model: Any, x: Array, threads: int) -> Iterator[Subject]:
    for mode in ("host", "sink"):
        logits = np.empty((1, 1000), np.float32)
        bound = asc.compile(model, mode=mode, threads=threads).bind({"x": x}, outputs={"logits": logits}).run
        yield Subject(mode, bound, result=then(bound, logits))
    if has_onnxruntime():
        logits = np.empty((1, 1000), np.float32)
        peer = bind_session(create_session(model.SerializeToString(), threads), {"x": x}, {"logits": logits})
        yield Subject(f"{PEER}, IO binding", peer, result=then(peer, logits), is_peer=True)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"resnet": measure}))
