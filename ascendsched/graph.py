"""Builder of model graphs in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ascendsched.errors import GraphError
from ascendsched.native import core as _core
from ascendsched.one_process import OneProcess

Attribute = int | float | str | Sequence[int] | Sequence[float] | Sequence[str] | np.ndarray[Any, Any]


def _foreign(op: str, outputs: int, attributes: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from ascendsched.operators import find

    found = find(op, outputs, attributes)
    if found is None:
        raise GraphError(f"[graph] no operator is registered as '{op}'; import the module that does")
    return found


class Tensor:
    """A value of a graph under construction; `Graph` hands it out."""

    __slots__ = ("_graph", "_id", "name")

    def __init__(self, graph: Graph, value_id: int, name: str) -> None:
        self._graph = graph
        self._id = value_id
        self.name = name

    def __repr__(self) -> str:
        return f"<Tensor {self.name}>"


class Graph(OneProcess):
    """Builds a graph of operators with the newest ONNX semantics.

    Examples
    --------
    >>> g = asc.Graph("affine")
    >>> x = g.input("x", "float32", ("batch", 4))
    >>> w = g.constant(np.eye(4, dtype=np.float32))
    >>> g.output(g.op("Relu", g.op("MatMul", x, w)), "y")
    >>> exe = asc.compile(g)
    """

    _instead = "build it by a function, which you call where it is needed"

    def __init__(self, name: str = "graph") -> None:
        self.core = _core.Graph(name)
        self._count = 0

    def input(self, name: str, dtype: str, shape: Sequence[int | str | None] | None = None) -> Tensor:
        """Declares an input.

        Parameters
        ----------
        name
            Its name.
        dtype
            Element type, as NumPy spells it, or "bfloat16".
        shape
            Dimensions: an int, a str (a symbol: equal symbols are equal sizes) or None (unknown); None: unknown rank.
        """
        value = self.core.add_value(name, dtype, None if shape is None else list(shape))
        self.core.add_input(value)
        return Tensor(self, value, name)

    def constant(self, array: Any, name: str | None = None) -> Tensor:
        """A constant; the array is copied."""
        name = name or self._fresh("constant")
        return Tensor(self, self.core.add_constant(name, np.asarray(array)), name)

    def op(self, op: str, *inputs: Tensor | None, outputs: int = 1, name: str = "", **attributes: Attribute) -> Any:
        """Adds an operator.

        Parameters
        ----------
        op
            ONNX operator name, or the name of an operator of yours, as "my::gelu".
        *inputs
            Values; None leaves an optional input out.
        outputs
            Number of outputs.
        name
            Name of the node, for errors and traces; made up when empty.
        **attributes
            ONNX attributes.

        Returns
        -------
        Tensor or tuple of Tensor
            One value, or a tuple when `outputs` is above 1.

        Raises
        ------
        GraphError
            For a value of another graph, and for an operator of a domain that nobody has registered.
        """
        name = name or self._fresh(op)
        names = [name + "_out"] if outputs == 1 else [f"{name}_out{i}" for i in range(outputs)]
        made = [Tensor(self, self.core.add_value(n), n) for n in names]
        if "::" in op:
            op, attributes = _foreign(op, outputs, attributes)
        kept = {k: list(v) if isinstance(v, tuple) else v for k, v in attributes.items()}
        self.core.add_node(op, [self._id(i) for i in inputs], [t._id for t in made], kept, name)
        return made[0] if outputs == 1 else tuple(made)

    def output(self, value: Tensor, name: str | None = None) -> None:
        """Makes `value` an output, under `name` when given."""
        if name is not None and name != value.name:
            renamed = Tensor(self, self.core.add_value(name), name)
            self.core.add_node("Identity", [self._id(value)], [renamed._id], {}, self._fresh("Identity"))
            value = renamed
        self.core.add_output(self._id(value))

    def _id(self, value: Tensor | None) -> int:
        if value is None:
            return -1
        if not isinstance(value, Tensor) or value._graph is not self:
            raise GraphError(
                f"[graph] {value!r} is not a value of graph '{self.core.name}'; use what its methods return"
            )
        return value._id

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"
