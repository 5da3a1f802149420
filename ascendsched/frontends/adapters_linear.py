"""Linear models and scalers of ai.onnx.ml, made of arithmetic; None where the reference has to compute the node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ascendsched.errors import GraphError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_FLOAT, _DOUBLE = 1, 11  # TensorProto
_REAL = frozenset({"float32", "int8", "uint8", "int16", "uint16"})  # exact in float32


def _matrix(node: NodeDef, attribute: str, rows: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return coefficients, one row for each result."""
    values = np.array(node.attributes.get(attribute, []), np.float32)
    if rows < 1 or values.size == 0 or values.size % rows:
        raise GraphError(f"{node.where()}: {values.size} {attribute} for {rows} results; the file is damaged")
    return values.reshape(rows, -1)


def _scores(node: NodeDef, r: Replacement, rows: int) -> str:
    matrix = r.constant(_matrix(node, "coefficients", rows), "float32")
    offsets = np.array(node.attributes.get("intercepts") or [0.0] * rows, np.float32)
    if offsets.size != rows:
        raise GraphError(f"{node.where()}: {offsets.size} intercepts for {rows} results; the file is damaged")
    data = r.make("Cast", node.inputs[0], to=_FLOAT)
    return r.make("Gemm", data, matrix, r.constant(offsets, "float32"), transB=1)


def transform(r: Replacement, scores: str, kind: str, output: str | None) -> str:
    """Add what ``post_transform`` names, NONE, LOGISTIC or SOFTMAX."""
    if kind == "NONE":
        return r.make("Identity", scores, output=output)
    return r.make("Sigmoid" if kind == "LOGISTIC" else "Softmax", scores, output=output)


def _is_matrix(node: NodeDef, ctx: AdapterContext) -> bool:
    value = ctx.type_of(node.inputs[0])
    return value.rank in (None, 2) and value.dtype not in ("float64", "int64")


def _check_columns(node: NodeDef, ctx: AdapterContext, count: int) -> None:
    """Refuse numbers for other columns than the input has; one number is for all of them."""
    dims = ctx.dims_of(node.inputs[0])
    if count != 1 and dims and dims[-1] not in (None, count):
        raise GraphError(f"{node.where()}: {count} numbers for {dims[-1]} columns; the file is damaged")


def linear_regressor(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """A product and a sum."""
    if node.attributes.get("post_transform", "NONE") != "NONE" or not _is_matrix(node, ctx):
        return None
    r = Replacement(node, ctx)
    transform(r, _scores(node, r, node.attributes.get("targets", 1)), "NONE", node.outputs[0])
    return r.nodes


def linear_classifier(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Scores of each class, and the label of the largest."""
    labels, kind = node.attributes.get("classlabels_ints", []), node.attributes.get("post_transform", "NONE")
    classes = len(labels)
    if kind not in ("NONE", "LOGISTIC", "SOFTMAX") or classes < 2 or node.attributes.get("classlabels_strings"):
        return None
    if len(node.attributes.get("intercepts", [])) not in (0, classes) or not _is_matrix(node, ctx):
        return None
    r = Replacement(node, ctx)
    scores = _scores(node, r, classes)
    if node.outputs[0]:
        place = r.make("ArgMax", scores, axis=-1, keepdims=0)
        r.make("Gather", r.constant(labels), place, output=node.outputs[0])
    if len(node.outputs) > 1 and node.outputs[1]:
        transform(r, scores, kind, node.outputs[1])
    return r.nodes


def scaler(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Less the offset, times the scale; in float64 where the input may need it."""
    offset, scale = node.attributes.get("offset", []), node.attributes.get("scale", [])
    if not offset or len(offset) != len(scale):
        return None
    _check_columns(node, ctx, len(offset))
    is_wide = ctx.type_of(node.inputs[0]).dtype not in _REAL
    dtype = "float64" if is_wide else "float32"
    r = Replacement(node, ctx)
    data = r.make("Cast", node.inputs[0], to=_DOUBLE if is_wide else _FLOAT)
    moved = r.make("Sub", data, r.constant(np.array(offset, np.float32), dtype))
    scaled = r.make("Mul", moved, r.constant(np.array(scale, np.float32), dtype))
    r.make("Cast", scaled, output=node.outputs[0], to=_FLOAT)
    return r.nodes


def normalizer(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Each row divided by its norm; a row of zeros stays as it is."""
    norm = node.attributes.get("norm", "MAX")
    value = ctx.type_of(node.inputs[0])
    if norm not in ("L1", "L2") or value.rank not in (None, 2) or value.dtype in ("float64", "int64"):
        return None
    r = Replacement(node, ctx)
    data = r.make("Cast", node.inputs[0], to=_FLOAT)
    size = r.make(f"Reduce{norm}", data, r.constant([-1]), keepdims=1)
    is_zero = r.make("Equal", size, r.constant(0, "float32"))
    r.make("Where", is_zero, data, r.make("Div", data, size), output=node.outputs[0])
    return r.nodes


def imputer(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Numbers in the place of one that stands for a missing one."""
    values, missing = node.attributes.get("imputed_value_floats", []), node.attributes.get("replaced_value_float", 0.0)
    if not values or ctx.type_of(node.inputs[0]).dtype != "float32":
        return None
    _check_columns(node, ctx, len(values))
    r = Replacement(node, ctx)
    data = node.inputs[0]
    is_missing = r.make("IsNaN", data) if math.isnan(missing) else r.make("Equal", data, r.constant(missing, "float32"))
    r.make("Where", is_missing, r.constant(values, "float32"), data, output=node.outputs[0])
    return r.nodes
