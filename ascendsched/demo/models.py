"""The demo's models: real ONNX models with seeded weights, written here and now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ascendsched.demo.decoder_model import fixed_decoder, growing_decoder
from ascendsched.demo.decoder_weights import DecoderConfig
from ascendsched.demo.reference import decoder_reference
from ascendsched.demo.resnet_model import ResNetWriter
from ascendsched.errors import GraphError

if TYPE_CHECKING:
    import onnx

__all__ = ["decoder", "decoder_reference", "resnet18"]


def decoder(
    vocab: int = 1000,
    d: int = 64,
    layers: int = 4,
    heads: int = 4,
    kv_heads: int = 2,
    ff: int = 172,
    seed: int = 0,
    capacity: int | None = None,
) -> onnx.ModelProto:
    """Return a LLaMA-like decoder: RMS norm, rotary embedding, grouped-query attention, SwiGLU.

    Parameters
    ----------
    vocab, d, layers, heads, kv_heads, ff, seed
        Size and seed of the weights, see `DecoderConfig`.
    capacity
        None: a KV cache that grows. Inputs ``input_ids`` [batch, seq], ``past_k_0``, ``past_v_0``, ``past_k_1``, ...
        [batch, kv_heads, past, head_dim]; outputs ``logits`` [batch, seq, vocab], ``present_k_0``, ...
        A number: caches of that many positions and one token a step, all shapes static. Inputs ``input_ids`` [1, 1],
        ``position`` [1] (int64, below the capacity), ``cache_k_0``, ``cache_v_0``, ...
        [1, kv_heads, capacity, head_dim]; outputs ``logits`` [1, 1, vocab], ``updated_k_0``, ... The results equal
        those of the growing cache to within rounding.

    Raises
    ------
    GraphError
        Where the sizes do not fit each other.
    """
    config = DecoderConfig(vocab, d, layers, heads, kv_heads, ff, seed)
    return growing_decoder(config) if capacity is None else fixed_decoder(config, capacity)


def resnet18(seed: int = 0, shape: Sequence[int] | None = None) -> onnx.ModelProto:
    """Return ResNet-18: input ``x`` [batch, 3, height, width], output ``logits`` [batch, 1000].

    Parameters
    ----------
    seed
        Seed of the weights.
    shape
        The only input shape, such as ``(1, 3, 224, 224)``; None leaves batch, height and width open.

    Raises
    ------
    GraphError
        Where ``shape`` is not four positive numbers with three channels.
    """
    dims: Sequence[int | str] = ("batch", 3, "height", "width") if shape is None else tuple(shape)
    if shape is not None and (len(shape) != 4 or shape[1] != 3 or min(shape) < 1):
        raise GraphError(f"[resnet18] shape must be (batch, 3, height, width), got {tuple(shape)}")
    return ResNetWriter(seed).write(dims)
