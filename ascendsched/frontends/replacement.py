"""The nodes that an adapter puts in the place of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ascendsched.frontends.node import AdapterContext, NodeDef


class Replacement:
    """Collects nodes of newest semantics.

    Attributes
    ----------
    nodes : list of NodeDef
        What was made so far, in order.
    """

    def __init__(self, node: NodeDef, ctx: AdapterContext) -> None:
        self.nodes: list[NodeDef] = []
        self._node = node
        self._ctx = ctx

    def make(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its result, ``output`` where it is given."""
        return self.make_several(op, inputs, [output], **attributes)[0]

    def make_several(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str | None], **attributes: Any
    ) -> list[str]:
        """Add a node with several results; None stands for a new name, "" for a result that nobody reads."""
        name = f"{self._node.name}/{op}"
        made = sum(node.op == op for node in self.nodes)
        if made:
            name += f"_{made}"
        names = [self._ctx.fresh(name) if output is None else output for output in outputs]
        self.nodes.append(NodeDef(op, list(inputs), names, dict(attributes), name))
        return list(names)

    def constant(self, value: Any, dtype: str = "int64") -> str:
        """Make a constant."""
        return self._ctx.constant(np.array(value, dtype), f"{self._node.name}_constant")

    def like(self, value: Any, other: str) -> str:
        """Make a constant of the element type of another value."""
        return self.make("CastLike", self.constant(value, "float32"), other)

    def dim(self, value: str, axis: int) -> str:
        """Return one dimension of a value, as a list of one number."""
        if axis == -1:
            return self.make("Shape", value, start=axis)
        return self.make("Shape", value, start=axis, end=axis + 1)
