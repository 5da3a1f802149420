"""What do products with small weights take: codes of 4 and 8 bits against onnxruntime, bfloat16 against float32?

How to read it: times are of CPU, one thread, the lowest tenth of interleaved runs. "error" is the largest difference
from float64, by the largest result. Two executables that differ in ``fuse`` show bfloat16: without it, weights are
converted to float32.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
from command import main
from harness import PEER, Array, Effort, Figures, Table
from onnx import ModelProto
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc
from ascendsched.demo.peers import create_session, has_onnxruntime

BLOCK = 32
SHAPES = ((1, 1024, 1024), (1, 4096, 4096), (4, 4096, 4096), (16, 2048, 2048), (128, 2048, 2048))
SMALL_SHAPES = SHAPES[:1]


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table per kind of weights."""
    shapes = SMALL_SHAPES if effort.is_quick else SHAPES
    for bits in (4, 8):
        table = Figures(f"{bits} bits, blocks of {BLOCK}", "product", [])
        table.headings = ("us", f"us {PEER}", "ratio", "error", f"error {PEER}")
        if has_onnxruntime():
            table.rows = [(" x ".join(map(str, shape)), _bits(*shape, bits, effort)) for shape in shapes]
        else:
            table.notes = [f"{PEER} is not installed"]
        yield table
    table = Figures("bfloat16", "product", [])
    table.headings = ("us", "us in float32", "ratio", "error", "error in float32")
    table.rows = [(" x ".join(map(str, shape)), _half(*shape, effort)) for shape in shapes]
    yield table


def _bits(m: int, k: int, n: int, bits: int, effort: Effort) -> list[Any]:
    rng = np.random.default_rng(k)
    blocks = k // BLOCK
    codes = rng.integers(0, 256, (n, blocks, BLOCK * bits // 8), dtype=np.uint8)
    scales = (rng.random((n, blocks)) / 2**bits).astype(np.float32)
    pairs = np.stack([codes & 15, codes >> 4], -1).reshape(n, blocks, -1) if bits == 4 else codes
    weights = ((pairs - 2.0 ** (bits - 1)) * scales[..., None]).reshape(n, k).T
    options = {"domain": "com.microsoft", "K": k, "N": n, "bits": bits, "block_size": BLOCK}
    model = _model("MatMulNBits", np.float32, {"codes": codes, "scales": scales.reshape(-1)}, **options)
    x = rng.standard_normal((m, k)).astype(np.float32)
    exe, session = asc.compile(model, threads=1), create_session(model.SerializeToString(), 1)
    return _row(lambda: exe.run({"x": x})["y"], lambda: session.run(None, {"x": x})[0], x @ weights, effort)


def _half(m: int, k: int, n: int, effort: Effort) -> list[Any]:
    rng = np.random.default_rng(k)
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    model = _model("MatMul", ml_dtypes.bfloat16, {"w": w})
    exe, plain = (asc.compile(model, threads=1, options=asc.Options(fuse=fuse)) for fuse in (True, False))
    wanted = x.astype(np.float64) @ w.astype(np.float64)
    return _row(lambda: exe.run({"x": x})["y"], lambda: plain.run({"x": x})["y"], wanted, effort)


def _model(op: str, dtype: Any, weights: dict[str, Array], **attributes: Any) -> ModelProto:
    node = h.make_node(op, ["x", *weights], ["y"], name="product", **attributes)
    infos = [h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(np.dtype(dtype)), None) for name in "xy"]
    graph = h.make_graph([node], "g", infos[:1], infos[1:], [nh.from_array(v, name) for name, v in weights.items()])
    opsets = [h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)]
    return h.make_model(graph, opset_imports=opsets, ir_version=10)


def _row(ours: Callable[[], Array], theirs: Callable[[], Array], wanted: Array, effort: Effort) -> list[Any]:
    errors = [float(np.abs(call().astype(np.float64) - wanted).max() / np.abs(wanted).max()) for call in (ours, theirs)]
    times: list[list[float]] = [[], []]
    for _ in range(2 * effort.samples):
        for call, taken in zip((ours, theirs), times, strict=True):
            start = time.thread_time_ns()
            call()
            taken.append((time.thread_time_ns() - start) / 1e3)
    mine, peer = (sorted(taken)[len(taken) // 10] for taken in times)
    return [mine, peer, mine / peer, *(f"{error:.0e}" for error in errors)]


if __name__ == "__main__":
    sys.exit(main(__doc__, {"weights": measure}))
