"""What do quantised convolutional networks take, by format and number of threads, against onnxruntime?

How to read it: the ratio is ours over onnxruntime's, each the lowest tenth of interleaved runs; with one thread it is
of CPU time, so that other work on the machine counts less. "steps" is how far the results are apart, in steps of the
result's own scale: rounding ties, which each runtime breaks in its own way and later layers amplify.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from command import main
from harness import PEER, Array, Effort, Figures, Table
from mobilenet import mobilenet

import ascendsched as asc
from ascendsched.demo.models import resnet18
from ascendsched.demo.peers import create_session, has_onnxruntime
from ascendsched.options import default_threads

PAUSE_S = 0.02
#: By name: format, unsigned activations, unsigned weights, a scale per channel.
FORMATS = {
    "QDQ, u8 s8": ("QDQ", True, False, False),
    "QDQ, s8 s8, per channel": ("QDQ", False, False, True),
    "QOperator, u8 s8, per channel": ("QOperator", True, False, True),
    "QOperator, u8 u8": ("QOperator", True, True, False),
}


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table per network."""
    if not has_onnxruntime():
        yield Figures("int8", "", [], notes=[f"{PEER} quantises the networks, and is not installed"])
        return
    logging.disable(logging.WARNING)
    size = 112 if effort.is_quick else 224
    x = np.random.default_rng(0).standard_normal((1, 3, size, size)).astype(np.float32)
    threads = [n for n in (1, 2) if n <= default_threads()]
    for name, model in (("ResNet-18", resnet18(shape=x.shape)), ("MobileNet", mobilenet(size))):
        table = Figures(f"{name}, {size} x {size}", "run", [])
        table.headings = ("threads", "us", f"us {PEER}", "ratio", "steps")
        with tempfile.TemporaryDirectory() as folder:
            for title, path in _quantized(model, x, Path(folder)):
                table.rows += [(title, _compare(path, x, n, effort)) for n in threads]
        yield table


def _quantized(model: Any, x: Array, folder: Path) -> Iterator[tuple[str, Path]]:
    import onnx
    from onnxruntime import quantization as q

    onnx.save(model, folder / "float.onnx")
    for title, (form, unsigned_x, unsigned_w, per_channel) in FORMATS.items():
        types = [q.QuantType.QUInt8 if unsigned else q.QuantType.QInt8 for unsigned in (unsigned_x, unsigned_w)]
        to = folder / f"{len(list(folder.iterdir()))}.onnx"
        q.quantize_static(
            folder / "float.onnx",
            to,
            _Calibration(iter([{"x": x}])),
            quant_format=q.QuantFormat[form],
            activation_type=types[0],
            weight_type=types[1],
            per_channel=per_channel,
        )
        yield title, to


class _Calibration:
    """Hands out feeds one by one, as onnxruntime's calibration asks for them."""

    def __init__(self, feeds: Iterator[dict[str, Array]]) -> None:
        self._feeds = feeds

    def get_next(self) -> dict[str, Array] | None:
        """The next feed, or None."""
        return next(self._feeds, None)


def _compare(path: Path, x: Array, threads: int, effort: Effort) -> list[Any]:
    session = create_session(path.read_bytes(), threads)
    exe = asc.compile(path, mode="sink", threads=threads)
    ours, theirs = next(iter(exe.run({"x": x}).values())), session.run(None, {"x": x})[0]
    values = np.unique(theirs)
    step = np.diff(values).min() if values.size > 1 else 1.0
    calls: list[Callable[[], object]] = [lambda: exe.run({"x": x}), lambda: session.run(None, {"x": x})]
    mine, peer = _times(calls, 5 * effort.samples, time.thread_time_ns if threads == 1 else time.perf_counter_ns)
    return [threads, mine, peer, mine / peer, float(np.abs(ours - theirs).max() / step)]


def _times(calls: list[Callable[[], object]], rounds: int, clock: Callable[[], int]) -> list[float]:
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            if clock is time.perf_counter_ns:
                time.sleep(PAUSE_S)  # threads of the other one may spin for a while
                call()
            start = clock()
            call()
            taken.append((clock() - start) / 1e3)
    return [sorted(taken)[len(taken) // 10] for taken in times]


if __name__ == "__main__":
    sys.exit(main(__doc__, {"int8": measure}))
