"""Ranks that follow from a model's nodes, for adapters that need nothing else: ONNX shape inference takes longer.

What is said is certain: a rank is known where each node on the way to it has a rule here. Everything else is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_MAX_RANK = 64  # what is said to be longer is damage
_MAX_DEPTH = 40  # nodes on the way to a rank
# The rank of the first input. Reductions too, where they keep their axes.
_SAME = frozenset(
    [
        "Abs",
        "AveragePool",
        "BatchNormalization",
        "Cast",
        "Ceil",
        "Clip",
        "Concat",
        "Conv",
        "ConvTranspose",
        "Dropout",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "InstanceNormalization",
        "LRN",
        "LayerNormalization",
        "LeakyRelu",
        "Log",
        "LogSoftmax",
        "MaxPool",
        "Neg",
        "PRelu",
        "Pad",
        "Reciprocal",
        "Relu",
        "Resize",
        "Selu",
        "Sigmoid",
        "Slice",
        "Softmax",
        "Softplus",
        "Sqrt",
        "Tanh",
        "Transpose",
        "Upsample",
    ]
)
_WINDOWS = frozenset(("AveragePool", "Conv", "ConvTranspose", "MaxPool"))
_REDUCTIONS = frozenset(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"))
_BROADCAST = frozenset(("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Sum"))


class Ranks:
    """The ranks of a graph's own values; those of bodies are not looked at."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._makers: dict[str, onnx.NodeProto] | None = None
        self._known: dict[str, int | None] = {}
        self._lengths: dict[str, int | None] = {}  # of lists

    def find(self, name: str) -> int | None:
        """Return the rank of a value, None where it is not known."""
        if self._makers is None:
            self._makers = {node.output[0]: node for node in self._graph.node if node.output}
            for info in self._graph.input:
                if info.type.tensor_type.HasField("shape"):
                    self._known[info.name] = len(info.type.tensor_type.shape.dim)
            for tensor in self._graph.initializer:
                self._known[tensor.name] = len(tensor.dims)
                if len(tensor.dims) == 1:
                    self._lengths[tensor.name] = tensor.dims[0]
        rank = self._find(name, 0)
        return rank if rank is not None and 0 <= rank <= _MAX_RANK else None

    def _find(self, name: str, depth: int) -> int | None:
        if name not in self._known:
            self._known[name] = None  # while it is looked for: a damaged graph may lead back here
            node = self._maker(name)
            if node is not None and depth < _MAX_DEPTH:
                self._known[name] = self._of(node, depth + 1)
        return self._known[name]

    def _maker(self, name: str) -> onnx.NodeProto | None:
        """Return the node of which the value is the first result."""
        node = None if self._makers is None or not name else self._makers.get(name)
        return node if node is not None and node.domain in ("", "ai.onnx") else None

    def _of(self, node: onnx.NodeProto, depth: int) -> int | None:
        op, inputs = node.op_type, list(node.input)
        if op == "Constant":
            return _constant_rank(node)
        if op in ("Gemm", "Flatten"):
            return 2
        if not inputs:
            return None
        if op in _WINDOWS and (size := len(_numbers(node, "kernel_shape"))):
            return size + 2
        if op in _SAME or (op in _REDUCTIONS and _number(node, "keepdims", 1) == 1):
            return self._find(inputs[0], depth)
        if op in _BROADCAST:
            return _joined((self._find(name, depth) for name in inputs), max)
        if op == "MatMul" and len(inputs) == 2:
            ranks = [self._find(name, depth) for name in inputs]
            return _joined(ranks, max) if all(rank is not None and rank >= 2 for rank in ranks) else None
        return self._length(inputs[1], depth) if op == "Reshape" and len(inputs) == 2 else None

    def _length(self, name: str, depth: int) -> int | None:
        """Return the number of elements of a list, None where it is not known, or the value is no list."""
        if name not in self._lengths:
            self._lengths[name] = None
            node = self._maker(name)
            if node is not None and depth < _MAX_DEPTH:
                self._lengths[name] = self._length_of(node, depth + 1)
        return self._lengths[name]

    def _length_of(self, node: onnx.NodeProto, depth: int) -> int | None:
        op, inputs = node.op_type, list(node.input)
        if op == "Constant":
            return node.attribute[0].t.dims[0] if _constant_rank(node) == 1 else None
        if op in ("Cast", "Identity") and inputs:
            return self._length(inputs[0], depth)
        if op == "Shape" and inputs and not node.attribute:
            return self._find(inputs[0], depth)
        if op == "Concat" and _number(node, "axis", 0) in (0, -1):
            return _joined((self._length(part, depth) for part in inputs), sum)
        return self._sliced_length(node, depth) if op == "Slice" and inputs else None

    def _sliced_length(self, node: onnx.NodeProto, depth: int) -> int | None:
        count = self._length(node.input[0], depth)
        numbers = [self._single(name) for name in node.input[1:]]
        if count is None or len(numbers) < 2 or None in numbers or numbers[2:3] not in ([], [0]):
            return None
        start, end, step = numbers[0], numbers[1], numbers[3] if len(numbers) > 3 else 1
        return len(range(count)[start:end]) if step == 1 else None

    def _single(self, name: str) -> int | None:
        """Return the only element of a constant list of int32 or int64."""
        import onnx

        node = self._maker(name)
        if node is None or node.op_type != "Constant" or _constant_rank(node) is None:
            return None
        tensor = node.attribute[0].t
        if list(tensor.dims) != [1] or tensor.data_type not in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
            return None
        try:
            return int(onnx.numpy_helper.to_array(tensor)[0])
        except Exception:  # damaged tensors end in errors of all kinds; whoever reads them says so
            return None


def _joined(parts: Iterable[int | None], join: Callable[[list[int]], int]) -> int | None:
    known = list(parts)
    numbers = [part for part in known if part is not None]
    return join(numbers) if numbers and len(numbers) == len(known) else None


def _number(node: onnx.NodeProto, name: str, fallback: int) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), fallback)


def _numbers(node: onnx.NodeProto, name: str) -> list[int]:
    return next((list(attribute.ints) for attribute in node.attribute if attribute.name == name), [])


def _constant_rank(node: onnx.NodeProto) -> int | None:
    """Return the rank of a Constant that holds a tensor."""
    attribute = node.attribute[0] if len(node.attribute) == 1 else None
    return len(attribute.t.dims) if attribute is not None and attribute.name == "value" else None
