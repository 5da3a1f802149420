"""Einsum as transpositions, products and sums."""

from __future__ import annotations

from dataclasses import dataclass

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_ELLIPSIS = "..."


@dataclass
class _Term:
    """A value and the labels of its axes; an axis of an ellipsis is labelled by its place from the right."""

    value: str
    labels: list[str]


def einsum(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Operands are multiplied from left to right, each product a MatMul where it contracts an axis."""
    r = Replacement(node, ctx)
    terms, result = _parse(node, ctx)
    terms = [_without_diagonals(r, term) for term in terms]
    current = terms[0]
    for i, term in enumerate(terms):
        later = {label for other in terms[i + 1 :] for label in other.labels} | set(result)
        if i == 0:
            current = _sum_out(r, term, later)
            continue
        current = _multiply(r, current, _sum_out(r, term, later | set(current.labels)), later)
    if missing := [label for label in result if label not in current.labels]:
        raise GraphError(f"{node.where()}: labels {missing} of the result are in no operand; the file is damaged")
    last = _transposed(r, current, result)
    r.make("Identity", last.value, output=node.outputs[0])
    return r.nodes


def _parse(node: NodeDef, ctx: AdapterContext) -> tuple[list[_Term], list[str]]:
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    if len(parts) != len(node.inputs):
        raise GraphError(
            f"{node.where()}: equation '{equation}' has {len(parts)} operands, the node {len(node.inputs)}"
        )
    terms = []
    for part, value in zip(parts, node.inputs, strict=True):
        before, dots, after = part.partition(_ELLIPSIS)
        if not (before + after).isalpha() and before + after:
            raise GraphError(f"{node.where()}: '{part}' in equation '{equation}': expected letters and one '...'")
        rank = ctx.rank_of(value)
        if dots and rank is None:
            raise UnsupportedError(
                f"{node.where()}: the rank of operand '{part}' with '...' is not known; declare it in the model"
            )
        extra = 0 if not dots or rank is None else rank - len(before) - len(after)
        if extra < 0 or (rank is not None and len(before) + len(after) + extra != rank):
            raise GraphError(f"{node.where()}: operand '{part}' of equation '{equation}' has rank {rank}")
        terms.append(_Term(value, [*before, *_places(extra), *after]))
    return terms, _result_labels(node, equation, terms, right if arrow else None)


def _result_labels(node: NodeDef, equation: str, terms: list[_Term], right: str | None) -> list[str]:
    every = [label for term in terms for label in term.labels]
    widest = max(sum(len(label) > 1 for label in term.labels) for term in terms)
    if right is None:
        return [*_places(widest), *sorted(label for label in set(every) if len(label) == 1 and every.count(label) == 1)]
    before, dots, after = right.partition(_ELLIPSIS)
    labels = [*before, *(_places(widest) if dots else []), *after]
    if len(set(labels)) != len(labels) or (before + after and not (before + after).isalpha()):
        raise GraphError(
            f"{node.where()}: the result '{right}' of equation '{equation}' repeats a label or has no letters"
        )
    return labels


def _places(count: int) -> list[str]:
    return [f"{_ELLIPSIS}{place}" for place in range(count, 0, -1)]


def _without_diagonals(r: Replacement, term: _Term) -> _Term:
    """Keep only the elements where axes of the same label have the same index, once."""
    value, labels = term.value, list(term.labels)
    while repeated := [label for label in labels if labels.count(label) > 1]:
        first = labels.index(repeated[0])
        second = labels.index(repeated[0], first + 1)
        size = r.make("Squeeze", r.dim(value, first))
        count = r.make("Range", r.constant(0), size, r.constant(1))
        along = []
        for axis in (first, second):
            trailing = list(range(1, len(labels) - axis))
            along.append(r.make("Unsqueeze", count, r.constant(trailing)) if trailing else count)
        kept = r.make("Where", r.make("Equal", *along), value, r.like(0, value))
        value = r.make("ReduceSum", kept, r.constant([first]), keepdims=0)
        del labels[first]
    return _Term(value, labels)


def _sum_out(r: Replacement, term: _Term, wanted: set[str]) -> _Term:
    """Sum over the axes that nobody else has."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in wanted]
    if not axes:
        return term
    value = r.make("ReduceSum", term.value, r.constant(axes), keepdims=0)
    return _Term(value, [label for label in term.labels if label in wanted])


def _multiply(r: Replacement, a: _Term, b: _Term, wanted: set[str]) -> _Term:
    """Multiply, and sum over the labels that are not ``wanted``."""
    shared = [label for label in a.labels if label in b.labels]
    sums = [label for label in shared if label not in wanted]
    if not sums or any(len(label) > 1 for label in sums):  # axes of an ellipsis may be 1 in one operand
        order = a.labels + [label for label in b.labels if label not in a.labels]
        product = r.make("Mul", _spread(r, a, order), _spread(r, b, order))
        return _sum_out(r, _Term(product, order), wanted)
    batch = [label for label in shared if label in wanted]
    rows = [label for label in a.labels if label not in shared]
    columns = [label for label in b.labels if label not in shared]
    left = _transposed(r, a, batch + rows + sums)
    right = _transposed(r, b, batch + sums + columns)
    product = r.make(
        "MatMul",
        _as_matrices(r, left.value, len(batch), len(rows), len(sums)),
        _as_matrices(r, right.value, len(batch), len(sums), len(columns)),
    )
    if len(rows) != 1 or len(columns) != 1:
        parts = [r.make("Shape", product, end=len(batch))] if batch else []
        if rows:
            parts.append(r.make("Shape", left.value, start=len(batch), end=len(batch) + len(rows)))
        if columns:
            parts.append(r.make("Shape", right.value, start=len(batch) + len(sums)))
        shape = r.make("Concat", *parts, axis=0) if parts else r.constant([])
        product = r.make("Reshape", product, shape)
    return _Term(product, batch + rows + columns)


def _as_matrices(r: Replacement, value: str, batch: int, first: int, second: int) -> str:
    """Join ``first`` axes after the batch, and the ``second`` ones after them, to one axis each."""
    if second != 1:
        value = r.make("Reshape", value, r.constant([0] * (batch + first) + [-1 if second else 1]))
    if first != 1:
        front = r.constant([0] * batch + [-1 if first else 1])
        value = r.make("Reshape", value, r.make("Concat", front, r.dim(value, -1), axis=0))
    return value


def _transposed(r: Replacement, term: _Term, order: list[str]) -> _Term:
    if term.labels == order:
        return term
    return _Term(r.make("Transpose", term.value, perm=[term.labels.index(label) for label in order]), order)


def _spread(r: Replacement, term: _Term, order: list[str]) -> str:
    """Return the value with its axes in ``order``, 1 where it lacks one."""
    value = _transposed(r, term, [label for label in order if label in term.labels]).value
    missing = [axis for axis, label in enumerate(order) if label not in term.labels]
    return r.make("Unsqueeze", value, r.constant(missing)) if missing else value
