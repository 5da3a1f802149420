"""What the attention operators of ``com.microsoft`` have in common, in simpler operators.

The operators stand in the order in which the plan finds an attention: it then becomes one task.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_LOWEST = -3.4028234663852886e38  # of float32; what masked scores get where no other value is asked for


class AttentionParts(Replacement):
    """A replacement that knows heads: [batch, rows, heads * width] and [batch, heads, rows, width]."""

    def __init__(self, node: NodeDef, ctx: AdapterContext) -> None:
        super().__init__(node, ctx)
        self._attributes = node.attributes
        self._where = node.where()
        self._types = ctx

    def rank(self, value: str, otherwise: int | None = None) -> int:
        """Return the rank of a value; ``otherwise`` where the model does not say it."""
        rank = self._types.type_of(value).rank
        if rank is None:
            rank = otherwise
        if rank is None:
            raise UnsupportedError(f"{self._where}: the rank of '{value}' is not known; declare it in the model")
        return rank

    def size(self, value: str, axis: int) -> int | None:
        """Return a dimension that the model states, or None."""
        dims = self._types.dims_of(value)
        return None if dims is None or axis >= len(dims) else dims[axis]

    def by_head(self, value: str, heads: int) -> str:
        """[batch, rows, heads * width] to [batch, rows, heads, width]; refuses other ranks, at run time if need be."""
        shape = self.constant([0, 0, heads, -1])
        if self._types.type_of(value).rank is None:
            dims = self.make_several("Split", [self.make("Shape", value), self.constant([1, 1, 1])], [None] * 3, axis=0)
            shape = self.make("Concat", *dims[:2], self.constant([heads, -1]), axis=0)
        elif self.rank(value) != 3:
            raise GraphError(f"{self._where}: '{value}' has rank {self.rank(value)}, expected 3; the file is damaged")
        return self.make("Reshape", value, shape)

    def repeated(self, value: str, heads: int, repeats: int) -> str:
        """Each head of keys or values as often as query heads share it."""
        if repeats == 1:
            return value
        grouped = self.make("Unsqueeze", value, self.constant([2]))
        wide = self.make("Expand", grouped, self.constant([1, 1, repeats, 1, 1]))
        rest = self.make("Shape", value, start=2, end=4)
        shape = self.make("Concat", self.constant([0, heads]), rest, axis=0)
        return self.make("Reshape", wide, shape)

    def attend(
        self,
        query: str,
        key: str,
        value: str,
        output: str,
        *,
        width: int | None,
        masks: Sequence[str] = (),
        softcap: float = 0.0,
    ) -> None:
        """Make ``output`` [batch, rows, heads * width] of queries, keys and values by head."""
        turned = self.make("Transpose", key, perm=[0, 1, 3, 2])
        scores = self.make("MatMul", query, turned)
        scale = self._attributes.get("scale", 0.0)
        if not scale and width is None:
            last = self.make("CastLike", self.dim(query, -1), scores)
            scores = self.make("Div", scores, self.make("Sqrt", last))
        else:
            scores = self.make("Mul", scores, self.number(scale or 1 / math.sqrt(width or 1), scores))
        if softcap:
            cap = self.number(softcap, scores)
            scores = self.make("Mul", self.make("Tanh", self.make("Div", scores, cap)), cap)
        for mask in masks:
            scores = self.make("Add", scores, mask)
        weights = self.make("Softmax", scores, axis=-1)
        mixed = self.make("Transpose", self.make("MatMul", weights, value), perm=[0, 2, 1, 3])
        self.make("Reshape", mixed, self.constant([0, 0, -1]), output=output)

    def number(self, value: float, like: str) -> str:
        """Make a number of the element type of another value; of float32 where that is not known yet."""
        dtype = self._types.type_of(like).dtype or self._types.type_of(self._node.inputs[0]).dtype
        if dtype in ("float32", "float64", "float16"):
            return self.constant(value, dtype)
        return self.like(value, like)

    def mask(self, keeps: str, like: str, hidden: float = _LOWEST) -> str:
        """Make 0 where ``keeps`` is true, ``hidden`` elsewhere."""
        return self.make("Where", keeps, self.number(0.0, like), self.number(hidden, like))

    def positions(self, count: str) -> str:
        """Make 0, 1, … of a count that is a list of one number."""
        scalar = self.make("Squeeze", count, self.constant([0]))
        return self.make("Range", self.constant(0), scalar, self.constant(1))

    def causal(self, rows: str, keys: str, like: str) -> str:
        """Make the mask [rows, keys] where the last row sees all keys and each row before it one less."""
        columns = self.positions(keys)
        row = self.make("Add", self.positions(rows), self.make("Sub", keys, rows))
        keeps = self.make("LessOrEqual", columns, self.make("Unsqueeze", row, self.constant([1])))
        return self.mask(keeps, like)

    def padding(self, given: str, batch: str, keys: str, like: str, hidden: float) -> str:
        """Make a mask of what models give: 1 for keys that count, by batch (and row), or how many count, by batch."""
        rank = self.rank(given)
        if rank == 1:
            shape = self.make("Concat", batch, self.constant([1, 1, 1]), axis=0)
            counts = self.make("Cast", self.make("Reshape", given, shape), to=7)
            return self.mask(self.make("Less", self.positions(keys), counts), like, hidden)
        if rank not in (2, 3):
            raise UnsupportedError(f"{self._where}: a mask of rank {rank} is not supported; give rank 1, 2 or 3")
        keeps = self.make("Cast", given, to=9)
        return self.mask(self.make("Unsqueeze", keeps, self.constant([1, 2] if rank == 2 else [1])), like, hidden)

    def extended(self, past: str, new: str, present: str | None) -> str:
        """Keys or values of the past, then the new ones; named ``present`` where that is given."""
        return self.make("Concat", past, new, axis=2, output=present) if past else self.passed_on(new, present)

    def passed_on(self, value: str, name: str | None) -> str:
        """Give a value a second name, where one is asked for."""
        return self.make("Identity", value, output=name) if name else value


def output_of(node: NodeDef, index: int) -> str | None:
    """Return the name of an output, None where nobody asks for it."""
    return (node.outputs[index] or None) if index < len(node.outputs) else None


def refuse(node: NodeDef, inputs: dict[int, str], outputs: dict[int, str], attributes: Sequence[str]) -> None:
    """Raise where a node has an input, an output or an attribute (other than 0) that is not supported."""
    for index, name in inputs.items():
        if node.input(index):
            raise UnsupportedError(f"{node.where()}: input {name} is not supported; export without it")
    for index, name in outputs.items():
        if output_of(node, index):
            raise UnsupportedError(f"{node.where()}: output {name} is not supported; export without it")
    for name in attributes:
        if node.attributes.get(name, 0) not in (0, "", b"", "NONE"):
            value = node.attributes[name]
            raise UnsupportedError(f"{node.where()}: {name}={value} is not supported; export without it")


def head_count(node: NodeDef, name: str) -> int:
    """Return a number of heads, which has to be positive."""
    heads = node.attributes.get(name, 0)
    if not isinstance(heads, int) or heads < 1:
        raise GraphError(f"{node.where()}: {name} must be positive, got {heads}; the file is damaged")
    return heads
