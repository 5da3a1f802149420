"""The demo's decoder as ONNX models: with a KV cache that grows, and with one of fixed capacity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ascendsched.demo.decoder_weights import MASKED, NORM_EPSILON, DecoderConfig, decoder_weights
from ascendsched.demo.onnx_writer import OnnxWriter
from ascendsched.errors import GraphError

if TYPE_CHECKING:
    import onnx


_Keep = Callable[[int, str, str], str]  # keeps a layer's new "k" or "v", returns all that the layer sees


class _Positions(NamedTuple):
    """Values that all layers share, computed once at the start of a step."""

    cos: str
    sin: str
    mask: str


def growing_decoder(config: DecoderConfig) -> onnx.ModelProto:
    """Return the decoder whose keys and values go in as ``past_*`` and come out longer as ``present_*``."""
    writer = _DecoderWriter(config, "decoder_growing")
    return writer.write_growing()


def fixed_decoder(config: DecoderConfig, capacity: int) -> onnx.ModelProto:
    """Return the decoder of one token a step whose caches hold ``capacity`` positions: every shape is static."""
    if capacity < 1:
        raise GraphError(f"[decoder] capacity must be positive, got {capacity}")
    writer = _DecoderWriter(config, "decoder_fixed")
    return writer.write_fixed(capacity)


class _DecoderWriter(OnnxWriter):
    def __init__(self, config: DecoderConfig, name: str) -> None:
        super().__init__(name)
        self._config = config
        self._weights = decoder_weights(config)

    def write_growing(self) -> onnx.ModelProto:
        config = self._config
        cache = ("batch", config.kv_heads, "past", config.head_dim)
        grown = ("batch", config.kv_heads, "total", config.head_dim)
        ids = self.input("input_ids", "int64", ("batch", "seq"))
        self.output("logits", "float32", ("batch", "seq", config.vocab))
        for i in range(config.layers):
            for kind in "kv":
                self.input(f"past_{kind}_{i}", "float32", cache)
                self.output(f"present_{kind}_{i}", "float32", grown)
        positions = self._growing_positions()

        def extend(i: int, kind: str, new: str) -> str:
            return self.add("Concat", f"past_{kind}_{i}", new, name=f"present_{kind}_{i}", axis=2)

        return self._write_layers(ids, positions, extend)

    def write_fixed(self, capacity: int) -> onnx.ModelProto:
        config = self._config
        cache = (1, config.kv_heads, capacity, config.head_dim)
        ids = self.input("input_ids", "int64", (1, 1))
        self.input("position", "int64", (1,))
        self.output("logits", "float32", (1, 1, config.vocab))
        for i in range(config.layers):
            for kind in "kv":
                self.input(f"cache_{kind}_{i}", "float32", cache)
                self.output(f"updated_{kind}_{i}", "float32", cache)
        positions = self._fixed_positions(capacity)
        slots = self._cache_slots()

        def write(i: int, kind: str, new: str) -> str:
            return self.add("ScatterND", f"cache_{kind}_{i}", slots, new, name=f"updated_{kind}_{i}")

        return self._write_layers(ids, positions, write)

    def _growing_positions(self) -> _Positions:
        first = self.ints(0)
        past = self.add("Squeeze", self.add("Shape", "past_k_0", name="past_dim", start=2, end=3), first, name="past")
        new = self.add("Squeeze", self.add("Shape", "input_ids", name="seq_dim", start=1, end=2), first, name="seq")
        total = self.add("Add", past, new, name="total")
        zero, one = self.constant("zero", 0, "int64"), self.constant("one", 1, "int64")
        rows = self.add("Range", past, total, one, name="positions")
        columns = self.add("Range", zero, total, one, name="columns")
        row = self.add("Unsqueeze", rows, self.ints(1), name="row_positions")
        return self._rotary_and_mask(row, columns)

    def _fixed_positions(self, capacity: int) -> _Positions:
        columns = self.constant("columns", np.arange(capacity), "int64")
        row = self.add("Unsqueeze", "position", self.ints(1), name="row_positions")
        return self._rotary_and_mask(row, columns)

    def _rotary_and_mask(self, row: str, columns: str) -> _Positions:
        """From positions [seq, 1] and the positions of the keys [total]."""
        frequencies = self.constant("frequencies", self._config.frequencies())
        as_float = self.add("Cast", row, name="row_positions_float", to=1)
        half = self.add("Mul", as_float, frequencies, name="half_angles")
        angles = self.add("Concat", half, half, name="angles", axis=-1)
        visible = self.add("LessOrEqual", columns, row, name="visible")
        mask = self.add("Where", visible, self.scalar(0.0), self.scalar(MASKED), name="mask")
        return _Positions(self.add("Cos", angles, name="cos"), self.add("Sin", angles, name="sin"), mask)

    def _cache_slots(self) -> str:
        """Indices [1, kv_heads, 1, 3] of the cache rows at ``position``."""
        heads = self._config.kv_heads
        base = np.zeros((1, heads, 1, 3))
        base[0, :, 0, 1] = np.arange(heads)
        step = self.constant("slot_step", [0, 0, 1], "int64")
        offset = self.add("Mul", "position", step, name="slot_offset")
        return self.add("Add", self.constant("slot_base", base, "int64"), offset, name="slots")

    def _write_layers(self, ids: str, positions: _Positions, keep: _Keep) -> onnx.ModelProto:
        x = self.add("Gather", self._weight("embedding"), ids, name="embedded")
        for i in range(self._config.layers):
            x = self._attention(i, x, positions, keep)
            x = self._mlp(i, x)
        normed = self._norm("final_norm", x)
        self.add("MatMul", normed, self._weight("head"), name="logits")
        return self.model()

    def _attention(self, i: int, x: str, positions: _Positions, keep: _Keep) -> str:
        config, layer = self._config, f"layer{i}"
        normed = self._norm(f"{layer}.attention_norm", x)
        query = self._rotate(self._heads(normed, f"{layer}.query", config.heads), positions)
        key = self._rotate(self._heads(normed, f"{layer}.key", config.kv_heads), positions)
        value = self._heads(normed, f"{layer}.value", config.kv_heads)
        keys = self._share(keep(i, "k", key), f"{layer}.keys")
        values = self._share(keep(i, "v", value), f"{layer}.values")
        keys_t = self.add("Transpose", keys, name=f"{layer}.keys_t", perm=[0, 1, 3, 2])
        product = self.add("MatMul", query, keys_t, name=f"{layer}.product")
        scale = self.constant("score_scale", config.head_dim**-0.5)
        scaled = self.add("Mul", product, scale, name=f"{layer}.scaled")
        scores = self.add("Add", scaled, positions.mask, name=f"{layer}.scores")
        weights = self.add("Softmax", scores, name=f"{layer}.softmax", axis=-1)
        mixed = self.add("MatMul", weights, values, name=f"{layer}.mixed")
        merged = self.add("Transpose", mixed, name=f"{layer}.merged", perm=[0, 2, 1, 3])
        flat = self.add("Reshape", merged, self.ints(0, 0, config.d), name=f"{layer}.flat")
        projected = self.add("MatMul", flat, self._weight(f"{layer}.output"), name=f"{layer}.projected")
        return self.add("Add", x, projected, name=f"{layer}.attended")

    def _mlp(self, i: int, x: str) -> str:
        layer = f"layer{i}"
        normed = self._norm(f"{layer}.mlp_norm", x)
        gate = self.add("MatMul", normed, self._weight(f"{layer}.gate"), name=f"{layer}.gated")
        sigmoid = self.add("Sigmoid", gate, name=f"{layer}.sigmoid")
        silu = self.add("Mul", gate, sigmoid, name=f"{layer}.silu")
        up = self.add("MatMul", normed, self._weight(f"{layer}.up"), name=f"{layer}.raised")
        product = self.add("Mul", silu, up, name=f"{layer}.gated_up")
        down = self.add("MatMul", product, self._weight(f"{layer}.down"), name=f"{layer}.lowered")
        return self.add("Add", x, down, name=f"{layer}.result")

    def _weight(self, name: str) -> str:
        return self.constant(f"{name}.weight", self._weights[name])

    def _norm(self, name: str, x: str) -> str:
        """Root mean square norm."""
        squares = self.add("Mul", x, x, name=f"{name}.squares")
        mean = self.add("ReduceMean", squares, self.ints(-1), name=f"{name}.mean")
        shifted = self.add("Add", mean, self.scalar(NORM_EPSILON), name=f"{name}.shifted")
        root = self.add("Sqrt", shifted, name=f"{name}.root")
        normed = self.add("Div", x, root, name=f"{name}.normed")
        return self.add("Mul", normed, self._weight(name), name=name)

    def _heads(self, x: str, name: str, heads: int) -> str:
        """Project to [batch, heads, seq, head_dim]."""
        projected = self.add("MatMul", x, self._weight(name), name=f"{name}.projected")
        split = self.add("Reshape", projected, self.ints(0, 0, heads, self._config.head_dim), name=f"{name}.split")
        return self.add("Transpose", split, name=name, perm=[0, 2, 1, 3])

    def _rotate(self, x: str, positions: _Positions) -> str:
        half = self._config.head_dim // 2
        last, zero, middle, end = self.ints(3), self.ints(0), self.ints(half), self.ints(2 * half)
        low = self.add("Slice", x, zero, middle, last, name=f"{x}.low")
        high = self.add("Slice", x, middle, end, last, name=f"{x}.high")
        turned = self.add("Concat", self.add("Neg", high, name=f"{x}.negated"), low, name=f"{x}.turned", axis=-1)
        along = self.add("Mul", x, positions.cos, name=f"{x}.along")
        across = self.add("Mul", turned, positions.sin, name=f"{x}.across")
        return self.add("Add", along, across, name=f"{x}.rotated")

    def _share(self, x: str, name: str) -> str:
        """Repeat each head of keys or values for the query heads that share it."""
        config = self._config
        repeats = config.heads // config.kv_heads
        grouped = self.add("Unsqueeze", x, self.ints(2), name=f"{name}.grouped")
        repeated = self.add("Expand", grouped, self.ints(1, 1, repeats, 1, 1), name=f"{name}.repeated")
        return self.add("Reshape", repeated, self.ints(0, config.heads, -1, config.head_dim), name=name)
