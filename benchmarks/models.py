"""Models of the benchmarks that are one operator after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness import Array

from ascendsched.demo.onnx_writer import OnnxWriter

#: ONNX operator; its constants by name, where equal names are the same constant; its attributes.
Layer = tuple[str, Mapping[str, Array], Mapping[str, Any]]


def sequence_model(dims: Sequence[int | str], result_dims: Sequence[int | str], layers: Iterable[Layer]) -> Any:
    """An onnx.ModelProto of float32 layers, each of which takes the result of the one before; "x" goes in, "y" out."""
    writer = OnnxWriter("sequence")
    value = writer.input("x", "float32", dims)
    writer.output("y", "float32", result_dims)
    layers = list(layers)
    for i, (op, constants, attributes) in enumerate(layers):
        names = [writer.constant(name, array) for name, array in constants.items()]
        value = writer.add(op, value, *names, name="y" if i == len(layers) - 1 else f"value{i}", **attributes)
    return writer.model()
