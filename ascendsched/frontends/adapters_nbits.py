"""Weights in blocks of codes of few bits, as exporters of language models write them for ``com.microsoft``."""

from __future__ import annotations

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement


def matmul_nbits(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """A product with such weights. ``accuracy_level`` asks for no more than float32, which is what is computed."""
    attributes = dict(node.attributes)
    attributes.pop("accuracy_level", None)
    if attributes.pop("weight_prepacked", 0):
        raise UnsupportedError(f"{node.where()}: weights packed for one device are not supported; export them plain")
    inputs = list(node.inputs)
    if groups := node.input(4):
        given, block = ctx.constant_value(groups), attributes.get("block_size", 0)
        in_order = given is not None and block > 0 and given.array.ndim == 1
        if not in_order or given is None or not np.array_equal(given.array, np.arange(given.array.size) // block):
            raise UnsupportedError(f"{node.where()}: g_idx in another order is not supported; reorder the weights")
        inputs[4] = ""
    return [NodeDef("MatMulNBits", inputs, node.outputs, attributes, node.name)]


def gather_block_quantized(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Rows of a table of codes, which is read as bytes; only what is picked becomes real numbers."""
    r = Replacement(node, ctx)
    data, indices, scales, zeros = node.inputs[0], node.inputs[1], node.inputs[2], node.input(3)
    bits, block = node.attributes.get("bits", 4), node.attributes.get("block_size", 128)
    kind = ctx.type_of(data)
    if kind.dtype != "uint8" or kind.rank is None or bits not in (4, 8):
        raise UnsupportedError(f"{node.where()}: {kind.dtype} of {bits} bits is not supported; use 4 or 8 in uint8")
    axis = node.attributes.get("quantize_axis", 1)
    if node.attributes.get("gather_axis", 0) != 0 or kind.rank < 2 or axis not in (-1, kind.rank - 1):
        raise UnsupportedError(f"{node.where()}: only rows (gather_axis 0) in blocks of the last axis are supported")
    if block < 16 or block & (block - 1):
        raise GraphError(f"{node.where()}: block_size is {block}; expected a power of two, 16 or more")
    codes = r.make("Gather", data, indices, axis=0)
    picked = r.make("Gather", scales, indices, axis=0)
    if bits == 4:
        codes = _unpacked(r, codes)
    if zeros:
        points = r.make("Gather", zeros, indices, axis=0)
        if bits == 4:
            points = r.make("Slice", _unpacked(r, points), r.constant([0]), r.dim(picked, -1), r.constant([-1]))
    else:
        points = r.make("Expand", r.constant(1 << (bits - 1), "uint8"), r.make("Shape", picked))
    r.make("DequantizeLinear", codes, picked, points, output=node.outputs[0], axis=-1, block_size=block)
    return r.nodes


def _unpacked(r: Replacement, pairs: str) -> str:
    """Two codes of a byte side by side, the lower one first."""
    last, four = r.constant([-1]), r.constant(4, "uint8")
    low = r.make("BitwiseAnd", pairs, r.constant(15, "uint8"))
    both = [r.make("Unsqueeze", half, last) for half in (low, r.make("BitShift", pairs, four, direction="RIGHT"))]
    front = r.make("Slice", r.make("Shape", pairs), r.constant([0]), last)
    return r.make("Reshape", r.make("Concat", *both, axis=-1), r.make("Concat", front, last, axis=0), allowzero=0)
