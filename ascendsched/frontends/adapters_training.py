"""Operators in training mode."""

from __future__ import annotations

import numpy as np

from ascendsched.errors import UnsupportedError
from ascendsched.frontends.adapters_random import uniform
from ascendsched.frontends.node import AdapterContext, NodeDef, Tensor
from ascendsched.frontends.replacement import Replacement

_FLOAT = 1  # TensorProto.FLOAT
_NEWEST_BATCH_NORM = 14  # before, the outputs of training mode were others


def batch_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """In training mode the statistics are those of the batch, and the running ones move towards them."""
    is_training = node.attributes.pop("training_mode", 0)
    momentum = node.attributes.pop("momentum", 0.9)
    if not is_training and not any(node.outputs[1:]):
        node.outputs = node.outputs[:1]
        return None
    rank = ctx.rank_of(node.inputs[0])
    if not is_training or ctx.opset < _NEWEST_BATCH_NORM or rank is None or rank < 2:
        raise UnsupportedError(
            f"{node.where()}: training mode is not supported before opset {_NEWEST_BATCH_NORM}, nor without a known "
            "rank; export the model for inference"
        )
    r = Replacement(node, ctx)
    data, scale, bias, *running = node.inputs
    axes = r.constant([0, *range(2, rank)])
    mean = r.make("ReduceMean", data, axes, keepdims=1)
    far = r.make("Sub", data, mean)
    batch = [r.make("Squeeze", mean, axes), r.make("ReduceMean", r.make("Mul", far, far), axes, keepdims=0)]
    for old, new, output in zip(running, batch, node.outputs[1:], strict=False):
        if output:
            kept = r.make("Mul", old, r.like(momentum, old))
            added = r.make("CastLike", r.make("Mul", new, r.like(1.0 - momentum, new)), old)
            r.make("Add", kept, added, output=output)
    typed = [r.make("CastLike", value, old) for value, old in zip(batch, running, strict=True)]
    r.make("BatchNormalization", data, scale, bias, *typed, output=node.outputs[0], **node.attributes)
    return r.nodes


def dropout(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Where nothing is dropped the output is the input, and the mask is all true.

    Whether that is so may be known only when the model runs: the ratio is nothing then.
    """
    data, output = node.inputs[0], node.outputs[0]
    mask = node.outputs[1] if len(node.outputs) > 1 and node.outputs[1] and ctx.is_read(node.outputs[1]) else ""
    if mask and ctx.opset < 12:  # which left open what the mask is in inference
        raise UnsupportedError(f"{node.where()}: the mask is not supported before opset 12; export with a newer opset")
    r = Replacement(node, ctx)
    if _drops_nothing(node, ctx):
        r.make("Identity", data, output=output)
        if mask:
            r.make("ConstantOfShape", r.make("Shape", data), output=mask, value=Tensor(np.array([True]), "bool"))
        return r.nodes
    given = r.make("Cast", node.input(1), to=_FLOAT) if node.input(1) else r.constant(0.5, "float32")
    ratio = r.make("Where", node.input(2), given, r.constant(0.0, "float32"))
    is_kept = r.make("GreaterOrEqual", uniform(r, node, data), ratio)
    scale = r.make("CastLike", r.make("Reciprocal", r.make("Sub", r.constant(1.0, "float32"), ratio)), data)
    r.make("Where", is_kept, r.make("Mul", data, scale), r.like(0, data), output=output)
    if mask:
        r.make("Identity", is_kept, output=mask)
    return r.nodes


def _drops_nothing(node: NodeDef, ctx: AdapterContext) -> bool:
    """Whether it is certain that nothing is dropped."""
    training, ratio = (ctx.constant_value(name) if name else None for name in (node.input(2), node.input(1)))
    if not node.input(2) or (training is not None and not training.array.any()):
        return True
    return ratio is not None and not ratio.array.any()
