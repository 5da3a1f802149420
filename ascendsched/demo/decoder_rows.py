"""The decoder's rows: growing KV cache in host mode and auto, fixed KV cache in sink mode, and onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.demo.models import decoder, decoder_reference
from ascendsched.demo.peers import OrtDecoder
from ascendsched.demo.rows import Row, Work
from ascendsched.demo.serving import BoundEngine, FixedEngine, GrowingEngine, Server, Workload

MODEL = "decoder"
VOCAB = 1000
PROMPTS = (5, 9, 14, 23)
CHECK_ROUNDS = 8
# A fixed cache is as large as a round number above what the requests need.
CAPACITY_STEP = 64


def decoder_rows(rounds: int, threads: int, show: Callable[[str], None]) -> list[Row]:
    """Builds, compiles and checks all rows; `rounds` is how many each may serve afterwards."""
    workload = Workload.create(PROMPTS, CHECK_ROUNDS + rounds, VOCAB)
    capacity = -(-workload.longest // CAPACITY_STEP) * CAPACITY_STEP
    show("building the decoder")
    growing = decoder(vocab=VOCAB)
    reference = _reference(workload)
    rows = []
    if OrtDecoder.is_available():
        show("checking the decoder in onnxruntime")
        peer = Server(OrtDecoder(growing.SerializeToString(), threads), workload)
        rows.append(_row("onnxruntime, IO binding", peer, None, None, reference))
    import ascendsched as asc  # the demo's data can be built without the core

    off = asc.Options(tiling_cache_bytes=0, schedule_cache_bytes=0, memo=False)
    for label, mode, options in (("host, caches off", "host", off), ("host", "host", None), ("auto", "auto", None)):
        show(f"checking the decoder: {label}")
        executable = asc.compile(growing, mode=mode, threads=threads, options=options)
        server = Server(GrowingEngine(executable), workload)
        # The same server for both: the lengths of the overlapped steps are new ones too.
        rows.append(_row(f"{label}, growing KV", server, server.serve_overlapped, executable, reference))
    show("checking the decoder: sink")
    executable = asc.compile(decoder(vocab=VOCAB, capacity=capacity), mode="sink", threads=threads)
    bound, unbound = Server(BoundEngine(executable), workload), Server(FixedEngine(executable), workload)
    sink = _row(f"sink, fixed KV of {capacity}", bound, unbound.serve_overlapped, executable, reference)
    rows.insert(len(rows) - 1, sink)
    return rows


def _row(label: str, server: Server, overlapped: Work | None, executable: Any, reference: NDArray[np.float64]) -> Row:
    row = Row(MODEL, label, "token", server.serve, overlapped, executable, len(PROMPTS))
    logits: list[NDArray[Any]] = []
    server.serve(CHECK_ROUNDS, keep=logits)
    row.check(np.stack(logits), reference)
    return row


def _reference(workload: Workload) -> NDArray[np.float64]:
    """Logits of the checked rounds in double precision, in the order in which they are served."""
    by_request = []
    for tokens, prompt in zip(workload.tokens, workload.prompts, strict=True):
        logits = decoder_reference(tokens[None, : prompt + CHECK_ROUNDS], vocab=VOCAB)
        by_request.append(np.asarray(logits)[0, prompt:])
    return np.stack(by_request, axis=1).reshape(-1, VOCAB)
