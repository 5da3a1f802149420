"""ResNet-18's rows: host mode, sink mode and onnxruntime on one image."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.demo.models import resnet18
from ascendsched.demo.peers import OrtBound, has_onnxruntime
from ascendsched.demo.rows import Row, Work, await_run

MODEL = "ResNet-18"
IN_FLIGHT = 2  # runs, where they overlap: the host prepares one while the device works on the other


def vision_rows(size: int, threads: int, show: Callable[[str], None]) -> list[Row]:
    """Builds, compiles and checks all rows for one image of `size` x `size`."""
    import ascendsched as asc  # the demo's data can be built without the core

    show("building ResNet-18")
    model = resnet18()
    image = np.random.default_rng(0).standard_normal((1, 3, size, size)).astype(np.float32)
    rows = []
    if has_onnxruntime():
        show("checking ResNet-18 in onnxruntime")
        peer = OrtBound(model.SerializeToString(), threads, image)
        reference = np.array(peer.run(), dtype=np.float64)
        rows.append(Row(MODEL, "onnxruntime, IO binding", "run", _repeat(peer.run)))
    else:
        show("computing ResNet-18's reference in NumPy (a few seconds)")
        reference = _numpy_reference(model, image)
    for mode in ("host", "sink"):
        show(f"checking ResNet-18: {mode}")
        executable = asc.compile(model, mode=mode, threads=threads)
        feeds = {executable.inputs[0].name: image}
        result = np.zeros(reference.shape, np.float32)
        binding = executable.bind(feeds, outputs={executable.outputs[0].name: result})
        row = Row(MODEL, mode, "run", _repeat(binding.run), _in_flight(executable, feeds), executable)
        row.work(1)
        row.check(result, reference)
        rows.append(row)
    return rows


def _repeat(call: Callable[[], Any]) -> Work:
    def work(count: int) -> None:
        for _ in range(count):
            call()

    return work


def _in_flight(executable: Any, feeds: dict[str, NDArray[Any]]) -> Work:
    def work(count: int) -> None:
        flight: deque[Any] = deque()
        for _ in range(count):
            if len(flight) == IN_FLIGHT:
                await_run(flight.popleft())
            flight.append(executable.run_async(feeds))
        for run in flight:
            await_run(run)

    return work


def _numpy_reference(model: Any, image: NDArray[np.float32]) -> NDArray[np.float64]:
    from onnx.reference import ReferenceEvaluator  # slow to import

    outputs: Any = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: image})
    return np.asarray(outputs[0], dtype=np.float64)
