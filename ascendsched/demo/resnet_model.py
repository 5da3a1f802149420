"""ResNet-18 as an ONNX model with seeded weights (He et al., "Deep Residual Learning for Image Recognition")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ascendsched.demo.onnx_writer import OnnxWriter

if TYPE_CHECKING:
    import onnx

_CLASSES = 1000
_WIDTHS = (64, 128, 256, 512)
_BLOCKS_PER_STAGE = 2


class ResNetWriter(OnnxWriter):
    """Writes the model with its batch normalisations apart, as frameworks export a trained model."""

    def __init__(self, seed: int) -> None:
        super().__init__("resnet18")
        self._rng = np.random.default_rng(seed)

    def write(self, dims: Sequence[int | str]) -> onnx.ModelProto:
        """Return the model for inputs of ``dims``, numbers or symbols."""
        x = self.input("x", "float32", dims)
        self.output("logits", "float32", (dims[0], _CLASSES))
        x = self._conv_norm("stem", x, 3, _WIDTHS[0], kernel=7, stride=2)
        x = self.add("Relu", x, name="stem.relu")
        x = self.add("MaxPool", x, name="stem.pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        channels = _WIDTHS[0]
        for stage, width in enumerate(_WIDTHS):
            for block in range(_BLOCKS_PER_STAGE):
                stride = 2 if stage > 0 and block == 0 else 1
                x = self._block(f"stage{stage}.block{block}", x, channels, width, stride)
                channels = width
        x = self.add("GlobalAveragePool", x, name="pooled")
        x = self.add("Flatten", x, name="features", axis=1)
        weight = self.constant("head.weight", self._normal((_CLASSES, channels), channels))
        bias = self.constant("head.bias", self._rng.uniform(-0.1, 0.1, _CLASSES))
        self.add("Gemm", x, weight, bias, name="logits", transB=1)
        return self.model()

    def _block(self, name: str, x: str, channels: int, width: int, stride: int) -> str:
        y = self._conv_norm(f"{name}.first", x, channels, width, kernel=3, stride=stride)
        y = self.add("Relu", y, name=f"{name}.first.relu")
        y = self._conv_norm(f"{name}.second", y, width, width, kernel=3, stride=1)
        if stride != 1 or channels != width:
            x = self._conv_norm(f"{name}.shortcut", x, channels, width, kernel=1, stride=stride)
        return self.add("Relu", self.add("Add", y, x, name=f"{name}.sum"), name=f"{name}.relu")

    def _conv_norm(self, name: str, x: str, channels: int, width: int, kernel: int, stride: int) -> str:
        shape = (width, channels, kernel, kernel)
        weight = self.constant(f"{name}.weight", self._normal(shape, channels * kernel * kernel))
        edge = kernel // 2
        y = self.add(
            "Conv",
            x,
            weight,
            name=f"{name}.conv",
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[edge] * 4,
        )
        parts = (
            ("scale", self._rng.uniform(0.5, 1.0, width)),
            ("bias", self._rng.uniform(-0.1, 0.1, width)),
            ("mean", self._rng.uniform(-0.1, 0.1, width)),
            ("variance", self._rng.uniform(0.5, 1.5, width)),
        )
        statistics = [self.constant(f"{name}.{part}", values) for part, values in parts]
        return self.add("BatchNormalization", y, *statistics, name=f"{name}.norm")

    def _normal(self, shape: tuple[int, ...], fan_in: int) -> NDArray[np.float32]:
        """He initialisation."""
        weights: NDArray[np.float32] = self._rng.standard_normal(shape, np.float32) * np.float32(np.sqrt(2.0 / fan_in))
        return weights
