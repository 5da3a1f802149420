"""ResNet-50 and BERT-large, one operator per kernel, weights as inputs."""

from __future__ import annotations

import numpy as np

from ascendsched.graph import Graph, Tensor
from ascendsched.sim.decoder import WeightedGraph

Shapes = dict[str, tuple[int, ...]]


def build_resnet50(batch: int) -> tuple[Graph, Shapes]:
    """ResNet-50 at 224 x 224; normalisations are folded into the convolutions, as for inference."""
    g = WeightedGraph("resnet-50")

    def convolve(name: str, x: Tensor, inner: int, outer: int, kernel: int, stride: int, has_relu: bool) -> Tensor:
        weight = g.input(f"{name}.weight", (outer, inner, kernel, kernel))
        pad = kernel // 2
        bias = g.input(f"{name}.bias", (outer,))
        y: Tensor = g.op(
            "Conv",
            x,
            weight,
            bias,
            strides=(stride, stride),
            pads=(pad, pad, pad, pad),
            kernel_shape=(kernel, kernel),
            name=name,
        )
        if has_relu:
            y = g.op("Relu", y)
        return y

    x = convolve("stem", g.input("picture", (batch, 3, 224, 224)), 3, 64, 7, 2, True)
    x = g.op("MaxPool", x, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    inner = 64
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            name, stride = f"stage{stage}.block{block}", 2 if block == 0 and stage else 1
            y = convolve(f"{name}.a", x, inner, width, 1, 1, True)
            y = convolve(f"{name}.b", y, width, width, 3, stride, True)
            y = convolve(f"{name}.c", y, width, 4 * width, 1, 1, False)
            shortcut = x if block else convolve(f"{name}.shortcut", x, inner, 4 * width, 1, stride, False)
            x = g.op("Relu", g.op("Add", y, shortcut))
            inner = 4 * width
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    x = g.op("Gemm", x, g.input("head.weight", (2048, 1000)), g.input("head.bias", (1000,)), name="head")
    g.graph.output(x, "logits")
    return g.graph, g.shapes


def build_bert_large(batch: int, tokens: int) -> tuple[Graph, Shapes]:
    """BERT-large: 24 layers of 1,024 with 16 heads, feed-forward 4,096."""
    width, heads, layers = 1024, 16, 24
    g = WeightedGraph("bert-large")

    def linear(name: str, x: Tensor, rows: int, columns: int) -> Tensor:
        product = g.op("MatMul", x, g.input(f"{name}.weight", (rows, columns)), name=name)
        y: Tensor = g.op("Add", product, g.input(f"{name}.bias", (columns,)))
        return y

    def norm(name: str, x: Tensor) -> Tensor:
        weight, bias = g.input(f"{name}.weight", (width,)), g.input(f"{name}.bias", (width,))
        y: Tensor = g.op("LayerNormalization", x, weight, bias, axis=-1)
        return y

    def split(x: Tensor) -> Tensor:
        parts = g.op("Reshape", x, g.indices(batch, tokens, heads, width // heads))
        y: Tensor = g.op("Transpose", parts, perm=(0, 2, 1, 3))
        return y

    scale = g.graph.constant(np.float32((width // heads) ** -0.5))
    mask = g.input("mask", (batch, 1, 1, tokens))
    words = g.op("Gather", g.input("words", (30522, width)), g.input("ids", (batch, tokens), "int64"))
    x = norm("embedding", g.op("Add", words, g.input("positions", (tokens, width))))
    for layer in range(layers):
        name = f"layer{layer}"
        query, key, value = (split(linear(f"{name}.{p}", x, width, width)) for p in ("query", "key", "value"))
        scores = g.op("Mul", g.op("MatMul", query, g.op("Transpose", key, perm=(0, 1, 3, 2))), scale)
        mixed = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1), value)
        flat = g.op("Reshape", g.op("Transpose", mixed, perm=(0, 2, 1, 3)), g.indices(batch, tokens, width))
        x = norm(f"{name}.attention", g.op("Add", x, linear(f"{name}.out", flat, width, width)))
        wide = g.op("Gelu", linear(f"{name}.up", x, width, 4 * width))
        x = norm(f"{name}.feed_forward", g.op("Add", x, linear(f"{name}.down", wide, 4 * width, width)))
    g.graph.output(x, "hidden")
    return g.graph, g.shapes
