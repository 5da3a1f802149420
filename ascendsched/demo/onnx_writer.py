"""Writes ONNX models node by node: each call adds a node and returns the name of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

Dims = Sequence["int | str"]

_OPSET = 18
_IR_VERSION = 8  # what every onnxruntime that has the opset reads


class OnnxWriter:
    """Collects nodes, constants, inputs and outputs of one model."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: str, dims: Dims) -> str:
        """Declare a graph input."""
        self._inputs.append(_value_info(name, dtype, dims))
        return name

    def output(self, name: str, dtype: str, dims: Dims) -> None:
        """Declare a graph output; a node makes a value of that name."""
        self._outputs.append(_value_info(name, dtype, dims))

    def constant(self, name: str, values: Any, dtype: str = "float32") -> str:
        """Store a constant; a second one of the same name must be the same, and is not stored again."""
        if name not in self._constants:
            import onnx.numpy_helper

            self._constants[name] = onnx.numpy_helper.from_array(np.asarray(values, dtype), name)
        return name

    def ints(self, *values: int) -> str:
        """Store a list of integers: axes, a shape."""
        return self.constant("ints_" + "_".join(map(str, values)), values, "int64")

    def scalar(self, value: float) -> str:
        """Store a float32 scalar."""
        return self.constant(f"scalar_{value:g}", value)

    def add(self, op: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Add a node and its only output, both of the same name."""
        self.add_many(op, *inputs, outputs=[name], **attributes)
        return name

    def add_many(self, op: str, *inputs: str, outputs: list[str], **attributes: Any) -> list[str]:
        """Add a node with several outputs, named after the first."""
        import onnx.helper

        self._nodes.append(onnx.helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        import onnx.helper

        graph = onnx.helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, list(self._constants.values())
        )
        opset = onnx.helper.make_opsetid("", _OPSET)
        return onnx.helper.make_model(
            graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="ascendsched demo"
        )


def _value_info(name: str, dtype: str, dims: Dims) -> onnx.ValueInfoProto:
    import onnx.helper

    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return onnx.helper.make_tensor_value_info(name, kind, list(dims))
