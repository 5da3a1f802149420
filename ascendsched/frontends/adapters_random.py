"""Operators that draw random numbers, from uniform and normal float32 numbers.

With a ``seed`` an operator gives the same numbers at every run; without one they are others each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ascendsched.errors import GraphError
from ascendsched.frontends.node import AdapterContext, NodeDef, Tensor
from ascendsched.frontends.replacement import Replacement

_FLOAT = 1  # TensorProto.FLOAT
_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
_INT32 = 6


def uniform(r: Replacement, node: NodeDef, like: str) -> str:
    """Make numbers in [0, 1) of the shape of a value, with the seed of a node."""
    seed = {"seed": float(node.attributes["seed"])} if "seed" in node.attributes else {}
    return r.make("RandomUniformLike", like, **seed)


def random(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Numbers of a shape that is an attribute."""
    attributes = dict(node.attributes)
    shape, dtype = attributes.pop("shape"), attributes.pop("dtype", _FLOAT)
    if min(shape, default=0) < 0:
        raise GraphError(f"{node.where()}: shape is {shape}; expected sizes of dimensions, the file is damaged")
    r = Replacement(node, ctx)
    like = r.make("ConstantOfShape", r.constant(shape), value=Tensor(np.zeros(1, np.uint8), "uint8"))
    _draw(r, node, f"{node.op}Like", like, dtype, attributes)
    return r.nodes


def random_like(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Numbers of the shape, and where nothing else is said of the type, of a value."""
    attributes = dict(node.attributes)
    dtype = attributes.pop("dtype", None)
    known = ctx.type_of(node.inputs[0]).dtype
    if dtype is None and known is not None:
        if known not in _FLOATS.values():
            raise GraphError(f"{node.where()}: the input is {known} and no dtype is given; give one of floats")
        dtype = next(number for number, name in _FLOATS.items() if name == known)
    if dtype == _FLOAT:
        node.attributes = attributes
        return None
    r = Replacement(node, ctx)
    if dtype is None:
        r.make("CastLike", r.make(node.op, node.inputs[0], **attributes), node.inputs[0], output=node.outputs[0])
    else:
        _draw(r, node, node.op, node.inputs[0], dtype, attributes)
    return r.nodes


def bernoulli(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Ones with the probabilities that the input holds, zeros otherwise."""
    r = Replacement(node, ctx)
    chance = r.make("Cast", node.inputs[0], to=_FLOAT)
    drawn = r.make("Less", uniform(r, node, chance), chance)
    dtype = node.attributes.get("dtype")
    if dtype is None:
        r.make("CastLike", drawn, node.inputs[0], output=node.outputs[0])
    else:
        r.make("Cast", drawn, output=node.outputs[0], to=dtype)
    return r.nodes


def multinomial(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Classes by their unnormalised log-probabilities: the largest, each with noise of its own (Gumbel)."""
    count = node.attributes.get("sample_size", 1)
    if count < 1:
        raise GraphError(f"{node.where()}: sample_size is {count}; expected 1 or more, the file is damaged")
    r = Replacement(node, ctx)
    chances = r.make("Unsqueeze", r.make("Cast", node.inputs[0], to=_FLOAT), r.constant([1]))
    each = r.make("Expand", chances, r.constant([1, count, 1]))
    noise = r.make("Neg", r.make("Log", r.make("Neg", r.make("Log", uniform(r, node, each)))))
    drawn = r.make("ArgMax", r.make("Add", each, noise), axis=2, keepdims=0)
    r.make("Cast", drawn, output=node.outputs[0], to=node.attributes.get("dtype", _INT32))
    return r.nodes


def _draw(r: Replacement, node: NodeDef, op: str, like: str, dtype: int, attributes: dict[str, Any]) -> None:
    """Numbers of a type; those of 64 bits have the steps of 32."""
    if dtype not in _FLOATS:
        raise GraphError(f"{node.where()}: dtype is {dtype}, ONNX has {sorted(_FLOATS)}; the file is damaged")
    if dtype == _FLOAT:
        r.make(op, like, output=node.outputs[0], **attributes)
    else:
        r.make("Cast", r.make(op, like, **attributes), output=node.outputs[0], to=dtype)
