"""The decoder's rows: growing KV cache in host mode and auto, fixed KV cache in sink mode, and onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.demo.models import decoder, decoder_reference
from ascendsched.demo.peers import OrtDecoder
from ascendsched.demo.rows import Row, Work
from ascendsched.demo.serving import BoundEngine, Engine, FixedEngine, GrowingEngine, Run, Workload, serve

MODEL = "decoder"
VOCAB = 1000
PROMPTS = (5, 9, 14, 23)
CHECK_ROUNDS = 8
# A fixed cache is as large as a round number above what the requests need.
CAPACITY_STEP = 64


class Progress:
    """Where an engine is in the workload: each call serves the next rounds."""

    def __init__(self, engine: Engine, workload: Workload) -> None:
        self.engine, self.workload, self.done = engine, workload, 0

    def serve(self, rounds: int, keep: list[NDArray[Any]] | None = None) -> None:
        """Serves the next `rounds` rounds."""
        serve(self.engine, self.workload, self.done, rounds, keep)
        self.done += rounds


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
        peer = Progress(OrtDecoder(growing.SerializeToString(), threads), workload)
        rows.append(_row("onnxruntime, IO binding", peer, None, None, reference))
    import ascendsched as asc  # the demo's data can be built without the core

    off = asc.Options(tiling_cache_bytes=0, schedule_cache_bytes=0, memo=False)
    for label, mode, options in (("host, caches off", "host", off), ("host", "host", None), ("auto", "auto", None)):
        show(f"checking the decoder: {label}")
        executable = asc.compile(growing, mode=mode, threads=threads, options=options)
        engine = GrowingEngine(executable.run, executable.inputs, executable.outputs)
        progress = Progress(engine, workload)
        overlapped = _through(engine, _run_async(executable), progress.serve)
        rows.append(_row(f"{label}, growing KV", progress, overlapped, executable, reference))
    show("checking the decoder: sink")
    executable = asc.compile(decoder(vocab=VOCAB, capacity=capacity), mode="sink", threads=threads)
    progress = Progress(BoundEngine(executable), workload)
    stepwise = Progress(FixedEngine(_run_async(executable), executable.inputs, executable.outputs), workload)
    sink = _row(f"sink, fixed KV of {capacity}", progress, stepwise.serve, executable, reference)
    rows.insert(len(rows) - 1, sink)
    return rows


def _row(
    label: str, progress: Progress, overlapped: Work | None, executable: Any, reference: NDArray[np.float64]
) -> Row:
    row = Row(MODEL, label, "token", progress.serve, overlapped, executable, len(PROMPTS))
    logits: list[NDArray[Any]] = []
    progress.serve(CHECK_ROUNDS, keep=logits)
    row.check(np.stack(logits), reference)
    return row


def _through(engine: GrowingEngine, run: Run, work: Work) -> Work:
    """The same work on the same requests, with another way to run: its lengths are new ones too."""

    def other(count: int) -> None:
        usual, engine.run = engine.run, run
        try:
            work(count)
        finally:
            engine.run = usual

    return other


def _run_async(executable: Any) -> Run:
    return lambda feeds: executable.run_async(feeds).wait()


def _reference(workload: Workload) -> NDArray[np.float64]:
    """Logits of the checked rounds in double precision, in the order in which they are served."""
    by_request = []
    for tokens, prompt in zip(workload.tokens, workload.prompts, strict=True):
        logits = decoder_reference(tokens[None, : prompt + CHECK_ROUNDS], vocab=VOCAB)
        by_request.append(np.asarray(logits)[0, prompt:])
    return np.stack(by_request, axis=1).reshape(-1, VOCAB)
