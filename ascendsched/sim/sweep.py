"""Small models over many sizes, whose kernels calibrate a `KernelLibrary`; none of them is one that it predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ascendsched.graph import Graph
from ascendsched.sim.decoder import DecoderSize, build

Array = np.ndarray[Any, Any]

WIDTHS = (8, 16, 32, 64, 128, 256, 512)
ROWS = (1, 7, 32, 128)
PICTURES = ((7, 64), (14, 32), (28, 32), (28, 128), (56, 16), (56, 64), (112, 16), (112, 32))
LENGTHS = (16, 256, 4096, 65536, 1 << 20)
#: (channels, height, width, kernel): few places with many channels, rows of text, and signals of one dimension.
NARROW = (
    (192, 1, 6, (1, 5)),
    (128, 1, 4, (1, 3)),
    (64, 1, 16, (1, 7)),
    (240, 12, 80, (1, 1)),
    (480, 6, 80, (1, 1)),
    (64, 24, 96, (1, 1)),
)
GATED = ((16, 24, 96), (88, 3, 96), (240, 6, 80), (480, 3, 80))  # channels, height, width
CELLS = ((1, 64), (7, 128), (15, 56), (16, 112), (32, 256), (1, 400))  # steps, hidden


def sweep_models(seed: int = 0) -> Iterator[tuple[Graph, dict[str, Array]]]:
    """Yields graphs with seeded inputs: perceptrons, convolutions, decoders, and chains of single operators."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        array: Array = (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        return array

    for rows in ROWS:
        for width in WIDTHS:
            yield _perceptron(rows, width, normal)
    for side, channels in PICTURES:
        for kernel, groups in ((1, 1), (3, 1), (3, channels)):
            yield _convolution(side, channels, kernel, groups, normal)
    for channels, height, width, window in NARROW:
        yield _narrow(channels, height, width, window, normal)
    for channels, height, width in GATED:
        yield _gated(channels, height, width, normal)
    for steps, hidden in CELLS:
        yield _recurrent(steps, hidden, normal)
    for rows in ROWS[:3]:
        for width in (64, 128, 384, 512):
            yield _bytes(rows, width, normal)
    for length in LENGTHS:
        yield _elements(length, normal)
    for width, cached in ((16, 8), (32, 64), (64, 16), (128, 128), (256, 64)):
        size = DecoderSize(
            layers=2, width=width, heads=max(2, width // 32), feed_forward=3 * width, vocabulary=4 * width
        )
        graph, shapes = build(size, 1, 1, cached)
        feeds = {name: normal(*shape) if shape else normal(1)[0] for name, shape in shapes.items()}
        feeds["ids"] = np.zeros(shapes["ids"], np.int64)
        yield graph, feeds


def _perceptron(rows: int, width: int, normal: Any) -> tuple[Graph, dict[str, Array]]:
    g = Graph(f"perceptron_{rows}_{width}")
    x = g.input("x", "float32", (rows, width))
    wide = g.op("Add", g.op("MatMul", x, g.constant(normal(width, 4 * width))), g.constant(normal(4 * width)))
    y = g.op("MatMul", g.op("Relu", wide), g.constant(normal(4 * width, width)))
    normed = g.op("LayerNormalization", g.op("Add", x, y), g.constant(np.ones(width, np.float32)), axis=-1)
    gemm = g.op("Gemm", normed, g.constant(normal(width, width)), g.constant(normal(width)))
    g.output(g.op("Softmax", gemm, axis=-1), "y")
    g.output(g.op("Transpose", g.op("Sigmoid", normed), perm=(1, 0)), "t")
    g.output(g.op("Gather", g.constant(normal(1000, width)), g.constant(np.arange(rows))), "rows")
    return g, {"x": normal(rows, width)}


def _convolution(side: int, channels: int, kernel: int, groups: int, normal: Any) -> tuple[Graph, dict[str, Array]]:
    g = Graph(f"convolution_{side}_{channels}_{kernel}_{groups}")
    x, pad = g.input("x", "float32", (1, channels, side, side)), kernel // 2
    attributes: dict[str, Any] = {"kernel_shape": (kernel, kernel), "pads": (pad,) * 4, "group": groups}
    for _ in range(2):
        weights = g.constant(normal(channels, channels // groups, kernel, kernel))
        x = g.op("Relu", g.op("Conv", x, weights, g.constant(normal(channels)), **attributes))
    pooled = g.op("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2))
    g.output(g.op("Concat", pooled, pooled, axis=1), "joined")
    g.output(g.op("GlobalAveragePool", x), "mean")
    return g, {"x": normal(1, channels, side, side)}


def _elements(length: int, normal: Any) -> tuple[Graph, dict[str, Array]]:
    g = Graph(f"elements_{length}")
    x = g.input("x", "float32", (length // 16, 16))
    y = g.op("Mul", g.op("Add", x, g.constant(np.float32(1))), g.op("Sigmoid", x))
    g.output(g.op("Transpose", y, perm=(1, 0)), "t")
    g.output(g.op("ReduceMean", y, g.constant(np.array([1])), keepdims=0), "m")
    g.output(g.op("Concat", x, y, axis=1), "c")
    g.output(g.op("Tanh", g.op("Erf", x)), "e")
    return g, {"x": normal(length // 16, 16)}


def _narrow(
    channels: int, height: int, width: int, window: tuple[int, int], normal: Any
) -> tuple[Graph, dict[str, Array]]:
    g = Graph(f"narrow_{channels}_{height}_{width}_{window[1]}")
    y = g.input("x", "float32", (1, channels, height, width))
    attributes: dict[str, Any] = {"kernel_shape": window, "pads": (0, window[1] // 2, 0, window[1] // 2)}
    for i in range(3):
        weights = g.constant(normal(channels, channels, *window) / np.float32(channels**0.5))
        y = g.op("Conv", y, weights, g.constant(normal(channels)), **attributes)
        if i == 1:  # hard swish, as exporters write it
            shifted = g.op(
                "Clip", g.op("Add", y, g.constant(np.float32(3))), *(g.constant(np.float32(v)) for v in (0, 6))
            )
            y = g.op("Div", g.op("Mul", y, shifted), g.constant(np.float32(6)))
    g.output(g.op("Relu", g.op("Add", y, g.constant(normal(1, channels, 1, 1)))), "y")
    return g, {"x": normal(1, channels, height, width)}


def _gated(channels: int, height: int, width: int, normal: Any) -> tuple[Graph, dict[str, Array]]:
    """A depthwise convolution with squeeze and excitation: Hu et al., arXiv:1709.01507."""
    g = Graph(f"gated_{channels}_{height}_{width}")
    x = g.input("x", "float32", (1, channels, height, width))
    deep = g.op(
        "Conv", x, g.constant(normal(channels, 1, 5, 5)), kernel_shape=(5, 5), pads=(2, 2, 2, 2), group=channels
    )
    inner = max(4, channels // 4)
    squeezed = g.op("Conv", g.op("GlobalAveragePool", deep), g.constant(normal(inner, channels, 1, 1)))
    excited = g.op("Conv", g.op("Relu", squeezed), g.constant(normal(channels, inner, 1, 1)))
    shifted = g.op("Add", excited, g.constant(normal(1, channels, 1, 1)))
    g.output(g.op("Mul", deep, g.op("HardSigmoid", shifted)), "y")
    return g, {"x": normal(1, channels, height, width)}


def _recurrent(steps: int, hidden: int, normal: Any) -> tuple[Graph, dict[str, Array]]:
    g = Graph(f"recurrent_{steps}_{hidden}")
    x = g.input("x", "float32", (steps, 1, hidden))
    for op, gates, directions in (("LSTM", 4, 1), ("LSTM", 4, 2), ("GRU", 3, 2)):
        weights = [g.constant(normal(directions, gates * hidden, hidden)) for _ in range(2)]
        bias = g.constant(normal(directions, 2 * gates * hidden))
        direction = "bidirectional" if directions == 2 else "forward"
        y = g.op(op, x, *weights, bias, hidden_size=hidden, direction=direction)
        g.output(y, f"{op}{directions}")
    return g, {"x": normal(steps, 1, hidden)}


def _bytes(rows: int, width: int, normal: Any) -> tuple[Graph, dict[str, Array]]:
    g = Graph(f"bytes_{rows}_{width}")
    x = g.input("x", "float32", (1, rows, width))
    for columns in (width, 4 * width):
        quantized, scale, zero = g.op("DynamicQuantizeLinear", x, outputs=3)
        weights = (127 * np.clip(normal(width, columns), -1, 1)).astype(np.int8)
        product = g.op("MatMulInteger", quantized, g.constant(weights), zero, g.constant(np.int8(0)))
        y = g.op("Mul", g.op("Cast", product, to=1), scale)
        g.output(g.op("Add", y, g.constant(normal(columns))), f"y{columns}")
    return g, {"x": normal(1, rows, width)}
