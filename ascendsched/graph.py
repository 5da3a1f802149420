"""Builder of model graphs in Python."""

from __future__ import annotations

from collections import Counter
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


def _name(kind: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise GraphError(f"[graph] name of an {kind}: {name!r}; expected text")
    return name


def _type_name(dtype: Any) -> str:
    try:
        return dtype if isinstance(dtype, str) else str(np.dtype(dtype).name)
    except TypeError:
        raise GraphError(f"[graph] element type {dtype!r}; expected a name such as 'float32'") from None


def _dims(name: str, shape: Any) -> list[int | str | None]:
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise GraphError(f"[graph] shape of '{name}': {shape!r}; expected a sequence such as ('batch', 8)")
    for dim in shape:
        if dim is not None and not isinstance(dim, (str, int, np.integer)):
            raise GraphError(f"[graph] shape of '{name}': {dim!r}; a dimension is an int, a symbol or None")
    return [int(dim) if isinstance(dim, np.integer) else dim for dim in shape]


class Tensor:
    """A value of a graph under construction, which `Graph` hands out; `name` is its name."""

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
        self._inputs: list[str] = []
        self._outputs: list[str] = []

    def input(self, name: str, dtype: Any, shape: Sequence[int | str | None] | None = None) -> Tensor:
        """Declares an input.

        Parameters
        ----------
        name
            Its name.
        dtype
            Element type: as NumPy spells it, "bfloat16", or a type of NumPy's.
        shape
            Dimensions: an int, a str (a symbol: equal symbols are equal sizes) or None (unknown); None: unknown rank.

        Raises
        ------
        GraphError
            For a name that is no text, and a shape that is none.
        UnsupportedError
            For an element type that there is not.
        """
        self._inputs.append(_name("input", name))
        value = self.core.add_value(name, _type_name(dtype), None if shape is None else _dims(name, shape))
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
        """Makes `value` an output, under `name` when given.

        Raises
        ------
        GraphError
            For a value of another graph, and for a name that is no text.
        """
        self._id(value)
        self._outputs.append(_name("output", value.name if name is None else name))
        if name is not None and name != value.name:
            renamed = Tensor(self, self.core.add_value(name), name)
            self.core.add_node("Identity", [self._id(value)], [renamed._id], {}, self._fresh("Identity"))
            value = renamed
        self.core.add_output(self._id(value))

    def check_names(self) -> None:
        """Refuses a name that two inputs have, or two outputs: by name, one of them would be lost.

        Raises
        ------
        GraphError
            Names it.
        """
        for kind, names in (("input", self._inputs), ("output", self._outputs)):
            if repeated := [name for name, count in Counter(names).items() if count > 1]:
                raise GraphError(f"[graph] several {kind}s are named '{repeated[0]}'; give every {kind} its own name")

    def _id(self, value: Tensor | None) -> int:
        if value is None:
            return -1
        if not isinstance(value, Tensor) or value._graph is not self:
            advice = "use what its methods return, for arrays and numbers constant(…)"
            raise GraphError(f"[graph] {value!r} is not a value of graph '{self.core.name}'; {advice}")
        return value._id

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"
