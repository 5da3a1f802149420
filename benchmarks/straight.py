"""The decoder without a scheduler: `native/decoder.cc`, compiled for this machine, as an engine of the demo."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from native_library import compile_library
from numpy.typing import NDArray

from ascendsched.demo.decoder_weights import DecoderConfig, decoder_weights

SOURCE = Path(__file__).parent / "native" / "decoder.cc"


def load_library() -> ctypes.CDLL:
    """Compiles and loads the decoder.

    Raises
    ------
    subprocess.CalledProcessError
        Where the compiler fails.
    """
    library = compile_library(SOURCE, fast_math=True)
    library.decoder_new.restype = ctypes.c_void_p
    library.decoder_step.restype = ctypes.c_bool
    library.decoder_step.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p]
    for name in ("decoder_reset", "decoder_delete"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return library


class StraightEngine:
    """One request at a time, token by token."""

    def __init__(self, config: DecoderConfig, capacity: int) -> None:
        self._library = load_library()
        self._weights = [np.ascontiguousarray(w) for w in decoder_weights(config).values()]
        self._frequencies = config.frequencies().astype(np.float32)
        sizes = [config.vocab, config.d, config.layers, config.heads, config.kv_heads, config.ff, capacity]
        pointers = (ctypes.c_void_p * len(self._weights))(*(w.ctypes.data for w in self._weights))
        self._logits = np.empty(config.vocab, np.float32)
        self._decoder = self._library.decoder_new(
            (ctypes.c_int * len(sizes))(*sizes), pointers, ctypes.c_void_p(self._frequencies.ctypes.data)
        )

    def __del__(self) -> None:
        if hasattr(self, "_decoder"):
            self._library.decoder_delete(self._decoder)

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Starts over with a prompt."""
        self._library.decoder_reset(self._decoder)
        for token in prompt.tolist():
            self.step(request, token)

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Logits after a token."""
        if not self._library.decoder_step(self._decoder, token, self._logits.ctypes.data):
            raise RuntimeError("the cache is full, or the token is not in the vocabulary")
        return self._logits
