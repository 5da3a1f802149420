"""A network in the manner of MobileNetV2, with seeded weights: depthwise convolutions between pointwise ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascendsched.demo.onnx_writer import OnnxWriter

#: Expansion, channels, repetitions, first stride.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class _Builder:
    def __init__(self) -> None:
        self.writer = OnnxWriter("mobilenet")
        self.rng = np.random.default_rng(0)
        self.count = 0

    def conv(self, x: str, shape: tuple[int, int], kernel: int, *, stride: int = 1, group: int = 1, act: bool) -> str:
        """A convolution from ``shape[0]`` to ``shape[1]`` channels, bounded to [0, 6] where ``act``."""
        self.count += 1
        depth = shape[0] // group
        w = self.rng.standard_normal((shape[1], depth, kernel, kernel)) * np.sqrt(2 / (depth * kernel * kernel))
        name = f"conv{self.count}"
        weight = self.writer.constant(f"{name}.weight", w.astype(np.float32))
        bias = self.writer.constant(f"{name}.bias", (self.rng.standard_normal(shape[1]) * 0.1).astype(np.float32))
        pads = [kernel // 2] * 4
        y = self.writer.add("Conv", x, weight, bias, name=name, strides=[stride] * 2, pads=pads, group=group)
        if not act:
            return y
        low = self.writer.constant(f"{name}.low", np.array(0, np.float32))
        return self.writer.add(
            "Clip", y, low, self.writer.constant(f"{name}.high", np.array(6, np.float32)), name=f"{name}.act"
        )


def mobilenet(size: int) -> Any:
    """Return an onnx.ModelProto from "x", (1, 3, size, size), to "y", 1,000 classes."""
    b = _Builder()
    x = b.conv(b.writer.input("x", "float32", (1, 3, size, size)), (3, 32), 3, stride=2, act=True)
    b.writer.output("y", "float32", (1, 1000))
    channels = 32
    for expansion, width, repetitions, first in STAGES:
        for i in range(repetitions):
            wide = channels * expansion
            y = b.conv(x, (channels, wide), 1, act=True) if expansion > 1 else x
            y = b.conv(y, (wide, wide), 3, stride=first if i == 0 else 1, group=wide, act=True)
            y = b.conv(y, (wide, width), 1, act=False)
            x = b.writer.add("Add", x, y, name=f"sum{b.count}") if i > 0 else y
            channels = width
    x = b.writer.add("GlobalAveragePool", b.conv(x, (channels, 1280), 1, act=True), name="pool")
    weight = b.writer.constant("weight", (b.rng.standard_normal((1280, 1000)) * 0.03).astype(np.float32))
    bias = b.writer.constant("bias", (b.rng.standard_normal(1000) * 0.1).astype(np.float32))
    b.writer.add("Gemm", b.writer.add("Flatten", x, name="flat"), weight, bias, name="y")
    return b.writer.model()
