"""Cases of operators: what a device's kernels are compared with the CPU device's on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ascendsched.conformance.check import Array, Subject, Unsupported, compare, expected, single
from ascendsched.errors import UnsupportedError

_SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (3, 5), (2, 3, 4), (0, 4)]
_PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 5), (3, 5)),
    ((3, 5), (5,)),
    ((5,), (3, 5)),
    ((3, 5), ()),
    ((2, 1, 4), (3, 1)),
    ((0, 4), (4,)),
]
_UNARY = (
    "Relu Neg Abs Sigmoid Tanh Exp Log Sqrt Erf Floor Ceil Round Reciprocal Sign Sin Cos Softplus Gelu HardSigmoid "
    "LeakyRelu Elu HardSwish"
)
_BINARY = "Add Sub Mul Div Pow Max Min"
_COMPARISONS = "Equal Greater Less"
_REDUCTIONS = "ReduceSum ReduceMean ReduceMax ReduceMin"


@dataclass(frozen=True)
class Case:
    """One node with its inputs; `constants` are the inputs that are part of the model."""

    op: str
    label: str
    inputs: list[Array]
    constants: tuple[int, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    def run(self, subject: Subject, mode: str) -> None:
        """Compares the device with the CPU; Unsupported where it lacks or refuses this case."""
        graph = single(self.op, self.inputs, self.constants, **self.attributes)
        exe = subject.compile(graph, mode)
        feeds = {str(i): a for i, a in enumerate(self.inputs) if i not in self.constants}
        for _ in range(2):
            try:
                got = exe.run(feeds)
            except UnsupportedError as error:
                raise Unsupported(f"{self.label}: {error}") from error
            if subject.computes:
                compare(got, expected(graph, feeds))


def cases() -> dict[str, list[Case]]:
    """All cases by operator."""
    found: dict[str, list[Case]] = {}
    for case in _all():
        found.setdefault(case.op, []).append(case)
    return found


def _floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(0.2, 2, shape).astype(np.float32)


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


def _all() -> Iterator[Case]:
    for op in _UNARY.split():
        for shape in _SHAPES:
            yield Case(op, f"{shape}", [_floats(*shape)])
    for op in (_BINARY + " " + _COMPARISONS).split():
        for a, b in _PAIRS:
            yield Case(op, f"{a} and {b}", [_floats(*a), _floats(*b)])
        yield Case(op, "int64", [_ints(1, -2, 3), _ints(4, 2, 1)])
    yield from _products()
    yield from _reductions()
    yield from _movement()


def _products() -> Iterator[Case]:
    for a, b in (((2, 3), (3, 4)), ((1, 16), (16, 16)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((5, 2, 3), (3, 4)),
                 ((2, 1, 2, 3), (3, 3, 4)), ((3,), (3, 2)), ((2, 3), (3,))):  # fmt: skip
        for constants in ((), (1,)):
            yield Case("MatMul", f"{a} by {b}", [_floats(*a), _floats(*b)], constants)
    for a, b, transposed in (((2, 3), (3, 4), {}), ((3, 2), (4, 3), {"transA": 1, "transB": 1})):
        label = f"{a} by {b}, {transposed}"
        yield Case("Gemm", label, [_floats(*a), _floats(*b), _floats(4)], (1, 2), {**transposed, "alpha": 0.5})
    x, w = _floats(1, 3, 6, 6), _floats(4, 3, 3, 3)
    yield Case("Conv", "3x3", [x, w], (1,), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})
    yield Case("Conv", "3x3, stride 2", [x, w], (1,), {"kernel_shape": [3, 3], "strides": [2, 2]})


def _reductions() -> Iterator[Case]:
    for op in _REDUCTIONS.split():
        for axes, keeps in ((_ints(1), 1), (_ints(-1), 0), (_ints(0, 2), 1)):
            yield Case(op, f"axes {axes.tolist()}", [_floats(2, 3, 4), axes], (1,), {"keepdims": keeps})
    for axis in (-1, 1):
        yield Case("Softmax", f"axis {axis}", [_floats(2, 3, 4)], (), {"axis": axis})
    yield Case("ArgMax", "axis 1", [_floats(2, 5)], (), {"axis": 1})
    scale, bias = _floats(4), _floats(4)
    yield Case("LayerNormalization", "last axis", [_floats(3, 4), scale, bias], (1, 2), {"axis": -1})
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield Case("MaxPool", "2x2", [_floats(1, 2, 4, 4)], (), pool)
    yield Case("AveragePool", "2x2", [_floats(1, 2, 4, 4)], (), pool)
    yield Case("GlobalAveragePool", "4x4", [_floats(1, 2, 4, 4)])


def _movement() -> Iterator[Case]:
    x = _floats(2, 3, 4)
    yield Case("Transpose", "reversed", [x])
    yield Case("Transpose", "0, 2, 1", [x], (), {"perm": [0, 2, 1]})
    yield Case("Concat", "axis 1", [x, _floats(2, 1, 4)], (), {"axis": 1})
    yield Case("Concat", "20 inputs", [_floats(1, 3)] * 20, (), {"axis": 0})
    yield Case("Slice", "step 2", [x, _ints(1), _ints(4), _ints(2), _ints(2)], (1, 2, 3, 4))
    yield Case("Gather", "axis 1", [x, _ints(2, 0)], (), {"axis": 1})
    yield Case("Expand", "rows", [_floats(1, 4), _ints(3, 4)], (1,))
    yield Case("Where", "broadcast", [np.array([[True], [False]]), _floats(2, 3), _floats(3)])
    yield Case("Cast", "to int64", [x], (), {"to": 7})
    yield Case("Pad", "one around", [_floats(2, 3), _ints(1, 1, 1, 1)], (1,))
    yield Case("Reshape", "flat", [x, _ints(-1)], (1,))
