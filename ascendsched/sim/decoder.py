"""Decoder-only language models of LLaMA's form, one operator per kernel of an eager framework, weights as inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.graph import Graph, Tensor
from ascendsched.sim.workload import PARTIAL


@dataclass(frozen=True)
class DecoderSize:
    """The dimensions of a decoder; `is_int8`: products of int8 with int8, activations quantised per token."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    vocabulary: int
    is_int8: bool = False


Join = Callable[[Graph, Tensor, str], Tensor]


class WeightedGraph:
    """A graph whose weights are inputs, and the shapes of all of its inputs."""

    def __init__(self, name: str) -> None:
        self.graph = Graph(name)
        self.shapes: dict[str, tuple[int, ...]] = {}

    def input(
        self, name: str, shape: tuple[int, ...], dtype: str = "float32", dims: tuple[int | str, ...] | None = None
    ) -> Tensor:
        """An input; `dims` names those of its dimensions that may vary."""
        self.shapes[name] = shape
        return self.graph.input(name, dtype, dims or shape)

    def op(self, op: str, *inputs: Any, **attributes: Any) -> Any:
        """Adds an operator."""
        return self.graph.op(op, *inputs, **attributes)

    def indices(self, *values: int) -> Tensor:
        """A constant list of int64."""
        return self.graph.constant(np.array(values, np.int64))


def build(
    size: DecoderSize, batch: int, tokens: int, cached: int, shards: int = 1, join: Join | None = None
) -> tuple[Graph, dict[str, tuple[int, ...]]]:
    """The graph of one forward step, and the shapes of its inputs.

    Parameters
    ----------
    tokens, cached : int
        New tokens per sequence, and those whose keys and values are in the cache.
    shards : int
        Ranks that share each layer: heads and feed-forward columns are divided among them.
    join : callable, optional
        (graph, partial sum, name) to the sum over the ranks; without it a partial sum goes on as it is.

    Raises
    ------
    AscendSchedError
        Where heads or columns cannot be divided so.
    """
    if shards < 1 or size.heads % shards or size.feed_forward % shards:
        raise AscendSchedError(
            f"[simulate] {size.heads} heads, {size.feed_forward} columns cannot be divided among {shards} ranks"
        )
    return _Builder(size, batch, tokens, cached, shards, join).build()


class _Builder:
    def __init__(self, size: DecoderSize, batch: int, tokens: int, cached: int, shards: int, join: Join | None) -> None:
        self.size, self.batch, self.tokens, self.cached, self.shards = size, batch, tokens, cached, shards
        self.join = join
        self.g = WeightedGraph("decoder")
        self.heads = size.heads // shards
        self.head = size.width // size.heads

    def build(self) -> tuple[Graph, dict[str, tuple[int, ...]]]:
        g, size = self.g, self.size
        ids = g.input("ids", (self.batch, self.tokens), "int64")
        self.cos = g.input("cos", (self.tokens, self.head))
        self.sin = g.input("sin", (self.tokens, self.head))
        seen = (self.batch, 1, self.tokens, self.tokens + self.cached)
        self.mask = g.input("mask", seen, dims=(*seen[:3], "seen") if self.cached else None)
        self.scale = g.graph.constant(np.float32(self.head**-0.5))
        x = g.op("Gather", g.input("embedding", (size.vocabulary, size.width)), ids)
        for layer in range(size.layers):
            x = g.op("Add", x, self._attention(f"layer{layer}", self._norm(f"layer{layer}.attention", x)))
            x = g.op("Add", x, self._feed_forward(f"layer{layer}", self._norm(f"layer{layer}.feed_forward", x)))
        x = self._norm("final", x)
        if self.tokens > 1:
            x = g.op("Slice", x, g.indices(self.tokens - 1), g.indices(self.tokens), g.indices(1))
        logits = g.op("MatMul", x, g.input("head.weight", (size.width, size.vocabulary)), name="head")
        g.graph.output(g.op("ArgMax", logits, axis=-1), "next")
        return g.graph, g.shapes

    def _norm(self, name: str, x: Tensor) -> Tensor:
        normed: Tensor = self.g.op("RMSNormalization", x, self.g.input(f"{name}.norm", (self.size.width,)), axis=-1)
        return normed

    def _product(self, name: str, x: Tensor, rows: int, columns: int, is_partial: bool = False) -> Tensor:
        g = self.g
        label = name + (PARTIAL if is_partial and self.shards > 1 else "")
        if not self.size.is_int8:
            product: Tensor = g.op("MatMul", x, g.input(f"{name}.weight", (rows, columns)), name=label)
            return product
        quantised, scale, zero = g.op("DynamicQuantizeLinear", x, outputs=3, name=f"{name}.quantise")
        weight = g.input(f"{name}.weight", (rows, columns), "int8")
        sums = g.op("MatMulInteger", quantised, weight, zero, name=f"{name}.int8")
        scales = g.op("Mul", scale, g.input(f"{name}.scales", (columns,)))
        scaled: Tensor = g.op("Mul", g.op("Cast", sums, to=1), scales, name=label)
        return scaled

    def _split_heads(self, x: Tensor) -> Tensor:
        shape = self.g.indices(self.batch, self.tokens, self.heads, self.head)
        split: Tensor = self.g.op("Transpose", self.g.op("Reshape", x, shape), perm=(0, 2, 1, 3))
        return split

    def _rotate(self, x: Tensor) -> Tensor:
        """Rotary embedding, spelt out as eager frameworks launch it (Su et al., arXiv:2104.09864)."""
        g, half = self.g, self.head // 2
        axis = g.indices(3)
        low = g.op("Slice", x, g.indices(0), g.indices(half), axis)
        high = g.op("Slice", x, g.indices(half), g.indices(self.head), axis)
        turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
        rotated: Tensor = g.op("Add", g.op("Mul", x, self.cos), g.op("Mul", turned, self.sin))
        return rotated

    def _extend(self, name: str, new: Tensor) -> Tensor:
        """The cache with the new entries behind it; it is a result, so that the next step can take it."""
        if self.cached:
            shape = (self.batch, self.heads, self.cached, self.head)
            cache = self.g.input(name, shape, dims=(self.batch, self.heads, "cached", self.head))
            new = self.g.op("Concat", cache, new, axis=2)
        self.g.graph.output(new, f"{name}.next")
        return new

    def _attention(self, name: str, x: Tensor) -> Tensor:
        g, width, share = self.g, self.size.width, self.size.width // self.shards
        query, key, value = (
            self._split_heads(self._product(f"{name}.{part}", x, width, share)) for part in ("query", "key", "value")
        )
        keys = self._extend(f"{name}.keys", self._rotate(key))
        values = self._extend(f"{name}.values", value)
        scores = g.op("MatMul", self._rotate(query), g.op("Transpose", keys, perm=(0, 1, 3, 2)))
        weights = g.op("Softmax", g.op("Add", g.op("Mul", scores, self.scale), self.mask), axis=-1)
        mixed = g.op("Transpose", g.op("MatMul", weights, values), perm=(0, 2, 1, 3))
        flat = g.op("Reshape", mixed, g.indices(self.batch, self.tokens, share))
        return self._whole(f"{name}.out", self._product(f"{name}.out", flat, share, width, is_partial=True))

    def _feed_forward(self, name: str, x: Tensor) -> Tensor:
        g, width, share = self.g, self.size.width, self.size.feed_forward // self.shards
        gate = self._product(f"{name}.gate", x, width, share)
        up = self._product(f"{name}.up", x, width, share)
        active = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
        return self._whole(f"{name}.down", self._product(f"{name}.down", active, share, width, is_partial=True))

    def _whole(self, name: str, partial: Tensor) -> Tensor:
        return partial if self.join is None else self.join(self.g.graph, partial, name)
