"""Size and seeded weights of the demo's decoder, shared by its ONNX models and its NumPy reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascendsched.errors import GraphError

ROPE_BASE = 10000.0
NORM_EPSILON = 1e-5
MASKED = -1e9  # added to scores of positions that may not be seen


@dataclass(frozen=True)
class DecoderConfig:
    """Size of a LLaMA-like decoder.

    Parameters
    ----------
    vocab, d, layers, ff
        Size of the vocabulary, width, number of layers, width of the feed-forward part.
    heads, kv_heads
        Query heads, and heads of keys and values, each shared by ``heads // kv_heads`` query heads.
    seed
        Seed of the weights.

    Raises
    ------
    GraphError
        Where the sizes do not divide.
    """

    vocab: int = 1000
    d: int = 64
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    ff: int = 172
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = (self.vocab, self.d, self.layers, self.heads, self.kv_heads, self.ff)
        if min(sizes) < 1 or self.heads % self.kv_heads or self.d % (2 * self.heads):
            raise GraphError(
                f"[decoder] sizes must be positive, heads a multiple of kv_heads, d a multiple of 2 * heads: {self}"
            )

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.d // self.heads

    def frequencies(self) -> NDArray[np.float64]:
        """Return the rotary embedding's angle per position, [head_dim / 2]."""
        half = np.arange(0, self.head_dim, 2, dtype=np.float64)
        return ROPE_BASE ** (-half / self.head_dim)


def decoder_weights(config: DecoderConfig) -> dict[str, NDArray[np.float32]]:
    """Return the weights by name; matrices are [in, out]."""
    rng = np.random.default_rng(config.seed)
    return {name: _draw(rng, name, shape) for name, shape in _shapes(config)}


def _shapes(config: DecoderConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    kv_width = config.kv_heads * config.head_dim
    yield "embedding", (config.vocab, config.d)
    for i in range(config.layers):
        yield f"layer{i}.attention_norm", (config.d,)
        yield f"layer{i}.query", (config.d, config.d)
        yield f"layer{i}.key", (config.d, kv_width)
        yield f"layer{i}.value", (config.d, kv_width)
        yield f"layer{i}.output", (config.d, config.d)
        yield f"layer{i}.mlp_norm", (config.d,)
        yield f"layer{i}.gate", (config.d, config.ff)
        yield f"layer{i}.up", (config.d, config.ff)
        yield f"layer{i}.down", (config.ff, config.d)
    yield "final_norm", (config.d,)
    yield "head", (config.d, config.vocab)


def _draw(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    if name.endswith("norm"):
        return rng.uniform(0.8, 1.2, shape).astype(np.float32)
    scale = 1.0 if name == "embedding" else shape[0] ** -0.5
    return (scale * rng.standard_normal(shape)).astype(np.float32)
