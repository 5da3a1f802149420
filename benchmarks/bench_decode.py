"""How many tokens per second does a small decoder reach, one request, one token a step, on one thread?

The demo's LLaMA-like decoder: with a KV cache that grows, every step has new shapes; with one of fixed capacity, all
steps have the same, and each attends to the whole capacity. Once a single request goes on and on, so that every length
is seen for the first time; once each sample is a request of its own, so that lengths come back. Prompts are not timed.

How to read it: "host, caches off" is the price of resolving every operator in every step, "host" keeps what does not
change, "auto" sinks lengths that come back, and "sink" shows what remains when nothing is left to resolve. Compare rows
with a growing cache with each other, and rows with a fixed cache with each other; the ratio is to the faster of
onnxruntime's rows. In the first case the samples grow longer, which spreads minimum and maximum.

The last table asks what launching task by task costs a larger decoder, whose kernels take a millisecond a token: host
mode beside sink mode, in turn, at lengths that come back. Host mode is to be within 10 % of sink mode.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from command import main
from harness import PEER, Array, Effort, Subject, Table, compare, compile_variants

import ascendsched as asc
from ascendsched.demo.models import decoder, decoder_reference
from ascendsched.demo.peers import OrtDecoder, create_session, has_onnxruntime
from ascendsched.demo.serving import BoundEngine, Engine, FixedEngine, GrowingEngine

VOCAB = 1000
PROMPT = 8
STEPS = 8  # a sample
CAPACITY_STEP = 64
LARGE = {"d": 256, "layers": 8, "heads": 8, "kv_heads": 4, "ff": 688}


class Request:
    """One request of an engine, and how far it is."""

    def __init__(self, engine: Engine, tokens: Array) -> None:
        self._engine, self._tokens, self._position = engine, tokens, 0

    def start(self) -> None:
        """Feeds the prompt, with an empty cache."""
        self._engine.prefill(0, self._tokens[:PROMPT])
        self._position = PROMPT

    def advance(self) -> None:
        """Feeds the tokens of one sample."""
        for token in self._tokens[self._position : self._position + STEPS].tolist():
            self._engine.step(0, token)
        self._position += STEPS

    def result(self) -> Array:
        """Starts again, feeds as many tokens as a sample has and returns the logits after each."""
        self.start()
        tokens = self._tokens[self._position : self._position + STEPS].tolist()
        self._position += STEPS
        return np.stack([self._engine.step(0, token).copy() for token in tokens])

    @contextmanager
    def started(self) -> Iterator[None]:
        """Around a sample that is a request of its own."""
        self.start()
        yield


def measure(effort: Effort) -> Iterator[Table]:
    """Yields a table with lengths that are new, one with lengths that come back, and one of a larger decoder."""
    for title, samples, returns in (
        ("decoder, every length is new", effort.samples + 1, False),
        ("decoder, lengths come back", 1, True),
    ):
        tokens = np.random.default_rng(3).integers(0, VOCAB, PROMPT + samples * STEPS)
        reference = decoder_reference(tokens[None, : PROMPT + STEPS], vocab=VOCAB)[0, PROMPT:]
        capacity = -(-len(tokens) // CAPACITY_STEP) * CAPACITY_STEP
        subjects = []
        for label, engine in _engines(capacity):
            request = Request(engine, tokens)
            around = request.started if returns else nullcontext
            is_peer = label.startswith(PEER)
            subjects.append(Subject(label, request.advance, STEPS, request.result, around, is_peer))
        yield compare(title, "token", subjects, reference, effort, calls=1, rate="tokens/s")
    yield _host_beside_sink(effort)


def _host_beside_sink(effort: Effort) -> Table:
    tokens = np.random.default_rng(3).integers(0, VOCAB, PROMPT + STEPS)
    reference = decoder_reference(tokens[None], vocab=VOCAB, **LARGE)[0, PROMPT:]
    model = decoder(vocab=VOCAB, **LARGE)
    engines: list[tuple[str, Engine]] = [
        (f"{mode}, growing", GrowingEngine(asc.compile(model, mode=mode, threads=1))) for mode in ("host", "sink")
    ]
    if has_onnxruntime():
        engines.append((f"{PEER}, growing, IO binding", OrtDecoder(model.SerializeToString(), 1)))
    subjects = []
    for label, engine in engines:
        request = Request(engine, tokens)
        for _ in range(3):  # host mode keeps a schedule once its shapes came back often enough
            request.result()
        subjects.append(Subject(label, request.advance, STEPS, request.result, request.started, label.startswith(PEER)))
    table = compare("larger decoder, lengths come back", "token", subjects, reference, effort, calls=1, rate="tokens/s")
    host, sink = (np.array(subject.times_us) for subject in table.subjects[:2])
    cpu = table.subjects[0].cpu_us / table.subjects[1].cpu_us
    table.notes.append(
        f"host / sink: {min(host) / min(sink):.2f} of the least times, {np.median(host) / np.median(sink):.2f} of the "
        f"medians, {np.median(host / sink):.2f} in the middle of all turns, {cpu:.2f} of CPU time; 1.10 may be"
    )
    return table


def _engines(capacity: int) -> Iterator[tuple[str, Engine]]:
    growing, fixed = decoder(vocab=VOCAB), decoder(vocab=VOCAB, capacity=capacity)
    for label, executable in compile_variants(growing):
        yield f"{label}, growing", GrowingEngine(executable)
    sink = asc.compile(fixed, mode="sink", threads=1)
    yield f"sink, fixed {capacity}", BoundEngine(sink)
    if has_onnxruntime():
        yield f"{PEER}, growing, IO binding", OrtDecoder(growing.SerializeToString(), 1)
        session = create_session(fixed.SerializeToString(), 1)
        yield f"{PEER}, fixed {capacity}", FixedEngine(_Session(session, sink))


class _Session:
    """An onnxruntime session that is called as our executables are."""

    def __init__(self, session: Any, like: asc.Executable) -> None:
        self._session = session
        self.inputs, self.outputs = like.inputs, like.outputs
        self._names = [output.name for output in session.get_outputs()]

    def run(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """Results by name."""
        return dict(zip(self._names, self._session.run(None, feeds), strict=True))


if __name__ == "__main__":
    sys.exit(main(__doc__, {"decode": measure}))
