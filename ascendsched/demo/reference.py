"""The demo's decoder in NumPy and double precision: judges results where no other runtime is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascendsched.demo.decoder_weights import MASKED, NORM_EPSILON, DecoderConfig, decoder_weights

Array = NDArray[np.float64]


def decoder_reference(input_ids: NDArray[np.integer[Any]], **sizes: int) -> Array:
    """Return the logits of whole sequences, which a decoder with a KV cache gives token by token.

    Parameters
    ----------
    input_ids
        Tokens [batch, seq].
    **sizes
        As for `ascendsched.demo.models.decoder`: vocab, d, layers, heads, kv_heads, ff, seed.

    Returns
    -------
    numpy.ndarray
        Float64 logits [batch, seq, vocab].
    """
    config = DecoderConfig(**sizes)
    weights = {name: values.astype(np.float64) for name, values in decoder_weights(config).items()}
    seq = input_ids.shape[1]
    half = np.arange(seq)[:, None] * config.frequencies()
    angles = np.concatenate([half, half], axis=-1)
    mask = np.where(np.arange(seq) <= np.arange(seq)[:, None], 0.0, MASKED)
    x = weights["embedding"][input_ids]
    for i in range(config.layers):
        layer = {name.partition(".")[2]: w for name, w in weights.items() if name.startswith(f"layer{i}.")}
        x = x + _attention(config, layer, _norm(x, layer["attention_norm"]), angles, mask)
        normed = _norm(x, layer["mlp_norm"])
        gate = normed @ layer["gate"]
        x = x + (gate / (1.0 + np.exp(-gate)) * (normed @ layer["up"])) @ layer["down"]
    logits: Array = _norm(x, weights["final_norm"]) @ weights["head"]
    return logits


def _norm(x: Array, weight: Array) -> Array:
    normed: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + NORM_EPSILON) * weight
    return normed


def _attention(config: DecoderConfig, layer: dict[str, Array], x: Array, angles: Array, mask: Array) -> Array:
    batch, seq, _ = x.shape

    def heads(name: str, count: int) -> Array:
        split: Array = (x @ layer[name]).reshape(batch, seq, count, config.head_dim).transpose(0, 2, 1, 3)
        return split

    repeats = config.heads // config.kv_heads
    query = _rotate(heads("query", config.heads), angles)
    key = np.repeat(_rotate(heads("key", config.kv_heads), angles), repeats, axis=1)
    value = np.repeat(heads("value", config.kv_heads), repeats, axis=1)
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(config.head_dim) + mask
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = scores / scores.sum(axis=-1, keepdims=True) @ value
    merged: Array = mixed.transpose(0, 2, 1, 3).reshape(batch, seq, config.d) @ layer["output"]
    return merged


def _rotate(x: Array, angles: Array) -> Array:
    low, high = np.split(x, 2, axis=-1)
    rotated: Array = x * np.cos(angles) + np.concatenate([-high, low], axis=-1) * np.sin(angles)
    return rotated
