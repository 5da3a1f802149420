"""Ensembles of decision trees of ai.onnx.ml as ``TreeSums``, the operator of the core that follows them.

Labels are chosen as onnxruntime chooses them, which is not always by the largest score.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.adapters_linear import transform
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_FLOAT = 1  # TensorProto.FLOAT
_TESTS = {f"BRANCH_{name}": i for i, name in enumerate(("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"))}
_NAN_IS_YES = 8
_LEAF = -1

Key = tuple[int, int]  # tree and node, as the file numbers them


class Trees(NamedTuple):
    """The tables that ``TreeSums`` reads, and which leaves stand in which tree."""

    nodes: list[tuple[int, int, int, int]]
    thresholds: list[float]
    roots: list[int]
    targets: list[int]
    weights: list[float]
    leaves: dict[int, list[list[int]]]  # by tree: the targets of each leaf


def _columns(node: NodeDef, *names: str) -> list[list[Any]]:
    columns = [node.attributes.get(name, []) for name in names]
    if len({len(column) for column in columns}) != 1:
        raise GraphError(f"{node.where()}: {', '.join(names)} differ in length; the file is damaged")
    return columns


def _weights(node: NodeDef, prefix: str, targets: int) -> dict[Key, list[tuple[int, float]]]:
    kinds = ("treeids", "nodeids", "ids", "weights")
    weights = defaultdict(list)
    for tree, place, target, weight in zip(*_columns(node, *(f"{prefix}_{kind}" for kind in kinds)), strict=True):
        if not 0 <= target < targets:
            raise GraphError(f"{node.where()}: a leaf counts for target {target} of {targets}; the file is damaged")
        weights[tree, place].append((target, weight))
    return weights


def _children(node: NodeDef, keys: dict[Key, int]) -> list[tuple[int, int] | None]:
    """Return the two nodes behind each node by position, None for a leaf."""
    trees, modes, yes, no = _columns(node, *(f"nodes_{k}" for k in ("treeids", "modes", "truenodeids", "falsenodeids")))
    children: list[tuple[int, int] | None] = []
    for tree, mode, a, b in zip(trees, modes, yes, no, strict=True):
        if mode == "LEAF":
            children.append(None)
        elif mode not in _TESTS or (tree, a) not in keys or (tree, b) not in keys:
            raise GraphError(f"{node.where()}: a node of tree {tree} is '{mode}' with {a} and {b}; the file is damaged")
        else:
            children.append((keys[tree, a], keys[tree, b]))
    return children


def read_trees(node: NodeDef, prefix: str, targets: int) -> Trees:
    """Return the tables of the nodes that roots lead to, parents before their children."""
    a = node.attributes
    trees, places, features, values = _columns(
        node, *(f"nodes_{kind}" for kind in ("treeids", "nodeids", "featureids", "values"))
    )
    keys = {key: i for i, key in enumerate(zip(trees, places, strict=True))}
    if len(keys) != len(trees) or not keys:
        raise GraphError(f"{node.where()}: {len(trees)} nodes, {len(keys)} of them different; the file is damaged")
    missing = a.get("nodes_missing_value_tracks_true") or [0] * len(trees)
    children, weights = _children(node, keys), _weights(node, prefix, targets)
    if len(missing) != len(children) or len(children) != len(trees):
        raise GraphError(f"{node.where()}: lists of nodes differ in length; the file is damaged")
    inner = {child for pair in children if pair for child in pair}
    found = Trees([], [], [], [], [], defaultdict(list))
    seen: set[int] = set()
    for root in (i for i in range(len(trees)) if i not in inner):
        found.roots.append(len(found.nodes))
        waiting = [(root, _LEAF, 0)]  # a node, and where in its parent it has to be noted
        while waiting:
            at, parent, field = waiting.pop()
            if at in seen:
                raise GraphError(f"{node.where()}: two ways lead to a node of tree {trees[at]}; the file is damaged")
            seen.add(at)
            position, pair = len(found.nodes), children[at]
            if parent != _LEAF:
                row = list(found.nodes[parent])
                row[field] = position
                found.nodes[parent] = (row[0], row[1], row[2], row[3])
            found.thresholds.append(values[at])
            if pair:
                if features[at] < 0:
                    raise GraphError(f"{node.where()}: a node tests feature {features[at]}; the file is damaged")
                test = _TESTS[a["nodes_modes"][at]] + (_NAN_IS_YES if missing[at] else 0)
                found.nodes.append((features[at], test, 0, 0))
                waiting += [(pair[1], position, 3), (pair[0], position, 2)]
            else:
                own = weights.get((trees[at], places[at]), [])
                found.nodes.append((_LEAF, 0, len(found.weights), len(found.weights) + len(own)))
                found.targets.extend(target for target, _ in own)
                found.weights.extend(weight for _, weight in own)
                found.leaves[trees[at]].append([target for target, _ in own])
    if len(seen) != len(trees) or len(found.roots) != len(set(trees)):
        raise GraphError(f"{node.where()}: {len(found.roots)} roots for {len(set(trees))} trees; the file is damaged")
    return found


def _sums(node: NodeDef, r: Replacement, trees: Trees, targets: int) -> str:
    tables = (
        r.constant(np.array(trees.nodes, np.int64).clip(-1, 2**31 - 1), "int32"),
        r.constant(trees.thresholds, "float32"),
        r.constant(trees.roots, "int32"),
        r.constant(trees.targets, "int32"),
        r.constant(trees.weights, "float32"),
    )
    return r.make("TreeSums", r.make("Cast", node.inputs[0], to=_FLOAT), *tables, targets=targets)


def _is_plain(node: NodeDef, ctx: AdapterContext) -> bool:
    """Whether the numbers are float32."""
    value = ctx.type_of(node.inputs[0])
    is_wide = any(name.endswith("_as_tensor") for name in node.attributes) or value.dtype in ("float64", "int64")
    return not is_wide and value.rank in (None, 2)


def _covers(trees: Trees, targets: set[int]) -> bool:
    """Whether each target has a tree all of whose leaves count for it.

    Where a row reaches no weight of a target, onnxruntime takes 0, whatever the base value, and no label from it.
    """
    scored = [set.intersection(*map(set, leaves)) for leaves in trees.leaves.values()]
    return set().union(*scored) >= targets


def _has_repeats(trees: Trees) -> bool:
    """Whether a leaf counts twice for one target, of which onnxruntime may take one."""
    return any(len(set(leaf)) < len(leaf) for leaves in trees.leaves.values() for leaf in leaves)


def tree_regressor(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Sums or averages over the trees, and base values. None where the reference has to compute the node."""
    a = node.attributes
    targets, aggregate = a.get("n_targets", 1), a.get("aggregate_function", "SUM")
    if a.get("post_transform", "NONE") != "NONE" or aggregate not in ("SUM", "AVERAGE") or not _is_plain(node, ctx):
        return None
    r = Replacement(node, ctx)
    trees, base = read_trees(node, "target", targets), a.get("base_values")
    if _has_repeats(trees) or (base and not _covers(trees, set(range(targets)))):
        return None
    sums = _sums(node, r, trees, targets)
    if aggregate == "AVERAGE":
        sums = r.make("Div", sums, r.constant(len(trees.roots), "float32"))
    if base:
        if len(base) != targets:
            raise GraphError(f"{node.where()}: {len(base)} base_values for {targets} targets; the file is damaged")
        sums = r.make("Add", sums, r.constant(base, "float32"))
    transform(r, sums, "NONE", node.outputs[0])
    return r.nodes


def tree_classifier(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Scores of each class, and the label that they choose."""
    a = node.attributes
    labels, kind = a.get("classlabels_int64s", []), a.get("post_transform", "NONE")
    classes, base = len(labels), a.get("base_values") or []
    if classes < 2 or kind not in ("NONE", "LOGISTIC", "SOFTMAX") or not _is_plain(node, ctx):
        raise UnsupportedError(
            f"{node.where()}: {classes} labels that are numbers, post_transform {kind}; supported are two or more, "
            "NONE, LOGISTIC or SOFTMAX, and float32; keep onnxruntime for it"
        )
    r = Replacement(node, ctx)
    trees = read_trees(node, "class", classes)
    used = set(trees.targets)
    is_single = classes == 2 and used == {0}  # one score, that of the second label
    allowed = (0, 1) if is_single else (0,) if classes == 2 else (0, classes)
    wanted = used if classes == 2 else set(range(classes))
    is_positive = min(trees.weights, default=0) >= 0
    is_known = _covers(trees, wanted) or (classes > 2 and is_positive and not base)
    if classes == 2 and len(used) != 1 and list(labels) != [0, 1]:
        raise UnsupportedError(
            f"{node.where()}: leaves count for both of the labels {list(labels)}; onnxruntime answers 0 and 1 then, "
            "which are not supported; keep onnxruntime for it, or export with the labels 0 and 1"
        )
    if len(base) not in allowed or not is_known or _has_repeats(trees):
        raise UnsupportedError(
            f"{node.where()}: {len(base)} base_values for {classes} labels, weights of {len(used)}; such scores are "
            "not supported; keep onnxruntime for it"
        )
    scores = _sums(node, r, trees, 1 if is_single else classes)
    if base:
        scores = r.make("Add", scores, r.constant(base, "float32"))
    if node.outputs[0]:
        if classes == 2:
            limit = 0.5 if is_positive and len(used) == 1 else 0.0
            second = scores if is_single else r.make("Gather", scores, r.constant([1]), axis=1)
            is_second = r.make("Greater", r.make("Squeeze", second, r.constant([1])), r.constant(limit, "float32"))
            place = r.make("Cast", is_second, to=7)
        else:
            place = r.make("ArgMax", scores, axis=-1, keepdims=0)
        r.make("Gather", r.constant(labels), place, output=node.outputs[0])
    if len(node.outputs) > 1 and node.outputs[1]:
        if is_single:
            kind = kind if kind == "LOGISTIC" else "NONE"
            is_rest = is_positive and kind == "NONE"
            first = r.make("Sub", r.constant(1, "float32"), scores) if is_rest else r.make("Neg", scores)
            scores = r.make("Concat", first, scores, axis=1)
        transform(r, scores, kind, node.outputs[1])
    return r.nodes
