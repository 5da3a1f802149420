"""Operators of the domain ``com.microsoft``, and others that onnxruntime's own tools write into models."""

from __future__ import annotations

from ascendsched.errors import UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement


def gelu(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Gelu, BiasGelu and FastGelu: the last one by tanh, the last two after adding a bias."""
    r = Replacement(node, ctx)
    data = node.inputs[0]
    if node.input(1):
        data = r.make("Add", data, node.inputs[1])
    kind = "tanh" if node.op.endswith("FastGelu") else "none"
    r.make("Gelu", data, output=node.outputs[0], approximate=kind)
    return r.nodes


def quick_gelu(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """x * sigmoid(alpha * x)."""
    r = Replacement(node, ctx)
    data = node.inputs[0]
    scaled = r.make("Mul", data, r.like(node.attributes.get("alpha", 1.702), data))
    r.make("Mul", data, r.make("Sigmoid", scaled), output=node.outputs[0])
    return r.nodes


def fused_matmul(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """A product of transposed operands, times a number."""
    r = Replacement(node, ctx)
    if node.attributes.get("transBatchA", 0) or node.attributes.get("transBatchB", 0):
        raise UnsupportedError(f"{node.where()}: transBatchA and transBatchB are not supported; transpose before it")
    operands = []
    for operand, flag in zip(node.inputs, ("transA", "transB"), strict=True):
        value = operand
        rank = ctx.type_of(value).rank
        if node.attributes.get(flag, 0) and (rank is None or rank > 1):
            if rank is None:
                raise UnsupportedError(f"{node.where()}: the rank of '{value}' is not known; declare it in the model")
            value = r.make("Transpose", value, perm=[*range(rank - 2), rank - 1, rank - 2])
        operands.append(value)
    alpha = node.attributes.get("alpha", 1.0)
    if alpha == 1:
        r.make("MatMul", *operands, output=node.outputs[0])
    else:
        product = r.make("MatMul", *operands)
        r.make("Mul", product, r.like(alpha, product), output=node.outputs[0])
    return r.nodes


def simplified_layer_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """RMSNormalization under the name that onnxruntime gave it."""
    r = Replacement(node, ctx)
    _refuse_statistics(node, 1, 2)
    epsilon, axis = node.attributes.get("epsilon", 1e-5), node.attributes.get("axis", -1)
    r.make("RMSNormalization", *node.inputs[:2], output=node.outputs[0], epsilon=epsilon, axis=axis)
    return r.nodes


def skip_layer_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """SkipLayerNormalization and SkipSimplifiedLayerNormalization: of the sum of two inputs and a bias."""
    r = Replacement(node, ctx)
    _refuse_statistics(node, 1, 3)
    is_simplified = "Simplified" in node.op
    bias = node.input(3 if is_simplified else 4)
    total = node.outputs[3] if len(node.outputs) > 3 and node.outputs[3] else None
    added = r.make("Add", *node.inputs[:2], output=None if bias else total)
    if bias:
        added = r.make("Add", added, bias, output=total)
    epsilon = node.attributes.get("epsilon", 1e-12)
    if is_simplified:
        r.make("RMSNormalization", added, node.inputs[2], output=node.outputs[0], epsilon=epsilon)
    else:
        beta = [node.inputs[3]] if node.input(3) else []
        r.make("LayerNormalization", added, node.inputs[2], *beta, output=node.outputs[0], epsilon=epsilon)
    return r.nodes


def _refuse_statistics(node: NodeDef, first: int, last: int) -> None:
    if any(node.outputs[first:last]):
        raise UnsupportedError(f"{node.where()}: mean and deviation as results are not supported; remove their use")
