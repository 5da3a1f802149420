"""How far from arithmetic alone? Decoders in mode "auto" beside the same decoder written straight in C++.

The cache grows, and its lengths come back: every sample is a request of its own. One thread. The straight decoder keeps
its cache in place, where ours returns it as arrays, token by token.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from bench_decode import PROMPT, STEPS, Request
from command import main
from harness import PEER, Effort, Figures, Subject, Table, compare
from native_library import compiler
from straight import StraightEngine

import ascendsched as asc
from ascendsched.demo.decoder_weights import DecoderConfig
from ascendsched.demo.models import decoder, decoder_reference
from ascendsched.demo.peers import OrtDecoder, has_onnxruntime
from ascendsched.demo.serving import GrowingEngine

CONFIGS = {
    "small decoder, width 64, 4 layers": DecoderConfig(),
    "large decoder, width 256, 8 layers": DecoderConfig(d=256, layers=8, heads=8, kv_heads=4, ff=688),
}


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table per decoder."""
    if compiler() is None:
        yield Figures("straight C++", "token", [], notes=["no C++ compiler: set CXX"])
        return
    for title, config in CONFIGS.items():
        sizes = {name: getattr(config, name) for name in ("vocab", "d", "layers", "heads", "kv_heads", "ff", "seed")}
        model = decoder(**sizes)
        tokens = np.random.default_rng(3).integers(0, config.vocab, PROMPT + STEPS)
        reference = decoder_reference(tokens[None], **sizes)[0, PROMPT:]
        engines = {
            "straight C++": StraightEngine(config, 64),
            "auto": GrowingEngine(asc.compile(model, mode="auto", threads=1)),
        }
        if has_onnxruntime():
            engines[PEER] = OrtDecoder(model.SerializeToString(), 1)
        subjects = []
        for label, engine in engines.items():
            request = Request(engine, tokens)
            subjects.append(
                Subject(label, request.advance, STEPS, request.result, request.started, is_peer=label == PEER)
            )
        table = compare(title, "token", subjects, reference, effort, calls=1, rate="tokens/s")
        ratio = table.subject("auto").median_us / table.subject("straight C++").median_us
        table.notes.append(f"auto takes {ratio:.2f} times as long as straight C++")
        yield table


if __name__ == "__main__":
    sys.exit(main(__doc__, {"straight": measure}))
