"""Operators of the domain ``com.microsoft``, and others that onnxruntime's own tools write into models."""

from __future__ import annotations

from collections.abc import Callable

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
    for operand, flag in zip(node.inputs[:2], ("transA", "transB"), strict=True):
        value = operand
        rank = ctx.rank_of(value)
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


def embed_layer_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The sum of the embeddings of words, positions and segments, normalised."""
    r = Replacement(node, ctx)
    _embed(r, node, mask=node.input(7), positions=node.input(8), real=lambda index, value: value or node.input(index))
    return r.nodes


def q_embed_layer_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The same of tables of bytes: scales and zero points follow in the order of the tables."""
    r = Replacement(node, ctx)

    def real(index: int, value: str) -> str:
        value = value or node.input(index)
        return r.make("DequantizeLinear", value, node.inputs[index + 6], node.input(index + 11)) if value else ""

    _embed(r, node, mask=node.input(7), positions="", real=real)
    return r.nodes


def _embed(r: Replacement, node: NodeDef, *, mask: str, positions: str, real: Callable[[int, str], str]) -> None:
    """Make the outputs; ``real`` gives the numbers of an input, or of rows of it."""
    ids, segments, words, places, kinds = (node.input(i) for i in range(5))
    if positions:
        place = r.make("Gather", places, positions, axis=0)
    else:
        place = r.make("Slice", places, r.constant([0]), r.dim(ids, 1), r.constant([0]))
    total = node.outputs[2] if len(node.outputs) > 2 and node.outputs[2] else None
    rows = real(2, r.make("Gather", words, ids, axis=0))
    added = r.make("Add", rows, real(3, place), output=None if segments else total)
    if segments:
        added = r.make("Add", added, real(4, r.make("Gather", kinds, segments, axis=0)), output=total)
    epsilon = node.attributes.get("epsilon", 1e-12)
    r.make("LayerNormalization", added, real(5, ""), real(6, ""), output=node.outputs[0], epsilon=epsilon)
    if len(node.outputs) > 1 and node.outputs[1]:
        if mask:
            r.make("ReduceSum", mask, r.constant([1]), output=node.outputs[1], keepdims=0)
        else:
            r.make("Expand", r.constant(0, "int32"), r.dim(ids, 0), output=node.outputs[1])


def fused_conv(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Conv, plus a fourth input, then an activation."""
    r = Replacement(node, ctx)
    attributes = dict(node.attributes)
    kind = attributes.pop("activation", "")
    params = list(attributes.pop("activation_params", ()))
    data = r.make("Conv", *node.inputs[:3], **attributes)
    if node.input(3):
        data = r.make("Add", data, node.inputs[3])
    _activate(r, node, kind, params, data)
    return r.nodes


def fused_gemm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Gemm, then an activation."""
    r = Replacement(node, ctx)
    attributes = dict(node.attributes)
    kind = attributes.pop("activation", "")
    names = [name for name in ("activation_alpha", "activation_beta", "activation_gamma") if name in attributes]
    params = [attributes.pop(name) for name in names]
    _activate(r, node, kind, params, r.make("Gemm", *node.inputs, **attributes))
    return r.nodes


def _activate(r: Replacement, node: NodeDef, kind: str, params: list[float], data: str) -> None:
    output = node.outputs[0]
    if kind in ("", "Relu", "Tanh", "Sigmoid", "HardSwish") and not params:
        r.make(kind or "Identity", data, output=output)
    elif kind == "LeakyRelu" and len(params) == 1:
        r.make(kind, data, output=output, alpha=params[0])
    elif kind == "HardSigmoid" and len(params) == 2:
        r.make(kind, data, output=output, alpha=params[0], beta=params[1])
    elif kind == "Clip" and len(params) == 2:
        r.make(kind, data, *(r.like(bound, data) for bound in params), output=output)
    else:
        raise UnsupportedError(
            f"{node.where()}: activation {kind!r} with parameters {params} is not supported; apply it behind the node"
        )


def _refuse_statistics(node: NodeDef, first: int, last: int) -> None:
    if any(node.outputs[first:last]):
        raise UnsupportedError(f"{node.where()}: mean and deviation as results are not supported; remove their use")
