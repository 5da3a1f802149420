"""Turns nodes of a torch FX graph (ATen operators) into operators of one of our graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ascendsched import operators
from ascendsched.element_types import ONNX_TYPES
from ascendsched.errors import UnsupportedError
from ascendsched.graph import Graph, Tensor

Lower = Callable[..., Any]

FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})
_LOWERINGS: dict[Any, Lower] = {}


def lowers(*targets: Any) -> Callable[[Lower], Lower]:
    """Registers the function that lowers calls of `targets`: functions, or names of operators."""

    def register(function: Lower) -> Lower:
        for target in targets:
            _LOWERINGS[target] = function
        return function

    return register


def refuse(why: str) -> UnsupportedError:
    """The error of a lowering that cannot do a node; `why` becomes the reason of the fallback."""
    return UnsupportedError(f"[torch] {why}; torch runs it")


def dtype_name(dtype: Any) -> str:
    """Our name of a torch element type.

    Raises
    ------
    UnsupportedError
        For types that the core does not have.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in ONNX_TYPES:
        raise refuse(f"element type {name} is not supported")
    return name


def array_of(tensor: Any) -> tuple[np.ndarray[Any, Any], str]:
    """The values of a torch tensor as an array and the name of their type; bfloat16 as ``uint16``."""
    with unset_fake_temporarily():  # torch compiles under a mode in which values may not be read
        tensor = tensor.detach().contiguous()
        name = dtype_name(tensor.dtype)
        return (tensor.view(torch.uint16) if name == "bfloat16" else tensor).numpy(), name


def is_same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for every value of their symbols; adds no guard."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a, torch.SymInt) and isinstance(b, torch.SymInt):
        return bool(a.node.expr == b.node.expr)
    return False


class Value:
    """A value of the FX graph: what it is in our graph, and what torch knows of it."""

    __slots__ = ("meta", "tensor")

    def __init__(self, tensor: Tensor, meta: Any) -> None:
        self.tensor = tensor
        self.meta = meta

    @property
    def dtype(self) -> str:
        """Element type; sizes are int64, factors made of sizes float64."""
        if isinstance(self.meta, torch.Tensor):
            return dtype_name(self.meta.dtype)
        return "float64" if isinstance(self.meta, (float, torch.SymFloat)) else "int64"

    @property
    def shape(self) -> list[Any]:
        """Sizes: ints, or SymInts where they vary."""
        return list(self.meta.shape) if isinstance(self.meta, torch.Tensor) else []

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def axis(self, axis: int) -> int:
        """`axis` counted from the front."""
        return axis + self.rank if axis < 0 else axis


class Lowering:
    """Fills a graph; lowerings call its helpers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.transposed: dict[Tensor, Tensor] = {}  # matrices that were transposed, by the results
        self._constants: dict[Any, Tensor] = {}
        self._node = ""
        self._count = 0

    def lower(self, node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Adds the operators of one node; `args` hold `Value` in place of nodes.

        Raises
        ------
        UnsupportedError
            Where there is no lowering for it, or not for such arguments.
        """
        function = _LOWERINGS.get(node.target) or _LOWERINGS.get(str(node.target))
        self._node, self._count = node.name, 0
        if function is None:
            made = self._lower_foreign(node, args, kwargs)
            if made is not None:
                return made
            raise refuse(f"{node.target} has no lowering")
        try:
            inspect.signature(function).bind(self, node.meta.get("val"), *args, **kwargs)
        except TypeError as error:
            raise refuse(f"{node.target}: {error}") from None
        return function(self, node.meta.get("val"), *args, **kwargs)

    def _lower_foreign(self, node: fx.Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A custom operator of torch whose name is registered with us too; None for others."""
        if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace in {"aten", "prims"}:
            return None
        meta = node.meta.get("val")
        count = len(meta) if isinstance(meta, (tuple, list)) else 1
        schema = node.target._schema
        given = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
        inputs = [v for v in given.values() if isinstance(v, Value)]
        attributes = {k: v for k, v in given.items() if v is not None and not isinstance(v, Value)}
        found = operators.find(schema.name, count, attributes)
        if found is None:
            return None
        made = self.op(found[0], *(v.tensor for v in inputs), outputs=count, **found[1])
        return tuple(made) if isinstance(meta, (tuple, list)) and count > 1 else made

    def op(self, op: str, *inputs: Tensor | None, outputs: int = 1, **attributes: Any) -> Any:
        """One operator, named after the FX node."""
        self._count += 1
        name = f"{self._node}/{op}_{self._count}"
        return self.graph.op(op, *inputs, outputs=outputs, name=name, **attributes)

    def constant(self, value: Any, dtype: str = "int64") -> Tensor:
        """A small constant; equal ones are one."""
        array = np.asarray(value)
        key = (dtype, array.shape, array.dtype.str, array.tobytes())
        if key not in self._constants:
            if dtype == "bfloat16":
                with unset_fake_temporarily():
                    self._constants[key] = self.add_constant(torch.tensor(array.tolist(), dtype=torch.bfloat16))
            else:
                with np.errstate(over="ignore"):  # beyond float16 is infinity, as in torch
                    self._constants[key] = self.graph.constant(array.astype(dtype))
        return self._constants[key]

    def add_constant(self, tensor: Any) -> Tensor:
        """A tensor of the FX module, as a constant."""
        array, name = array_of(tensor)
        self._count += 1
        label = f"{self._node}_constant_{self._count}"
        return Tensor(self.graph, self.graph.core.add_constant(label, array, name), label)

    def cast(self, value: Any, dtype: str) -> Tensor:
        """A value or number as a tensor of `dtype`."""
        if not isinstance(value, Value):
            if isinstance(value, complex):
                raise refuse("complex numbers are not supported")
            return self.constant(value, dtype)
        if value.dtype == dtype:
            return value.tensor
        return self.cast_tensor(value.tensor, dtype)

    def cast_tensor(self, tensor: Tensor, dtype: str) -> Tensor:
        """Converts a tensor."""
        return self.op("Cast", tensor, to=ONNX_TYPES[dtype])

    def sizes(self, sizes: Sequence[Any]) -> Tensor:
        """A list of ints and sizes as an int64 tensor."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant([int(size) for size in sizes] if sizes else np.zeros(0, np.int64))
        parts: list[Tensor] = []
        run: list[int] = []
        for size in sizes:
            if isinstance(size, Value):
                if run:
                    parts.append(self.constant(run))
                    run = []
                parts.append(self.op("Unsqueeze", size.tensor, self.constant([0])))
            else:
                run.append(int(size))
        if run:
            parts.append(self.constant(run))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def dim(self, tensor: Tensor, axis: int) -> Tensor:
        """One size of a tensor, as a list of one number."""
        return self.op("Shape", tensor, start=axis, end=axis + 1)

    def shape_of(self, value: Value) -> Tensor:
        """The shape of a value, constant where it is known."""
        if all(isinstance(size, int) for size in value.shape):
            return self.sizes(value.shape)
        return self.op("Shape", value.tensor)

    def zero_rank(self, size: Any) -> Tensor:
        """A size as a tensor of rank 0."""
        return size.tensor if isinstance(size, Value) else self.constant(int(size))
