"""Attention as exporters spell it out, for tests of its fused form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper as h

from tests.unit import onnx_models
from tests.unit.onnx_models import info


@dataclass(frozen=True)
class Form:
    """How one exporter writes it; shapes of everything are left open, as in real models."""

    repeats: int = 1  # query heads that share keys and values
    turned: bool = False  # operands come as [batch, rows, heads, width] and are transposed
    key_by_column: bool = False  # keys come transposed already
    scale: str = "scores"  # or "divide", "operands", "none"
    masks: int = 1
    guard: bool = False  # NaN among the weights becomes 0
    result_turned: bool = True


def attention(form: Form, heads: int, width: int) -> onnx.ModelProto:
    """Return a model of q, k, v and masks with the result y."""
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {"zero": np.float32(0)} if form.guard else {}

    def add(op: str, *inputs: str, **attributes: object) -> str:
        name = f"n{len(nodes)}"
        nodes.append(h.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(value: object) -> str:
        name = f"c{len(constants)}"
        constants[name] = np.asarray(value)
        return name

    def share(x: str) -> str:
        if form.repeats == 1:
            return x
        grouped = add("Unsqueeze", x, constant(np.array([2])))
        wide = add("Expand", grouped, constant(np.array([1, 1, form.repeats, 1, 1])))
        batch = add("Shape", "k", start=0, end=1)
        shape = add("Concat", batch, constant(np.array([heads, -1, width])), axis=0)  # known only while it runs
        return add("Reshape", wide, shape)

    q, k, v = ("q", "k", "v")
    if form.turned:
        q, k, v = (add("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, k, v))
    k, v = share(k), share(v)
    if not form.key_by_column:
        k = add("Transpose", k, perm=[0, 1, 3, 2])
    if form.scale == "operands":
        root = constant(np.float32(width**-0.25))
        q, k = add("Mul", q, root), add("Mul", k, root)
    scores = add("MatMul", q, k)
    if form.scale == "scores":
        scores = add("Mul", scores, constant(np.float32(width**-0.5)))
    elif form.scale == "divide":
        scores = add("Div", scores, constant(np.float32(width**0.5)))
    for i in range(form.masks):
        scores = add("Add", scores, f"mask{i}")
    weights = add("Softmax", scores, axis=-1)
    if form.guard:
        weights = add("Where", add("IsNaN", weights), "zero", weights)
    if form.result_turned:
        mixed = add("MatMul", weights, v)
        nodes.append(h.make_node("Transpose", [mixed], ["y"], perm=[0, 2, 1, 3]))
    else:
        nodes.append(h.make_node("MatMul", [weights, v], ["y"]))
    names = ["q", "k", "v", *(f"mask{i}" for i in range(form.masks))]
    inputs = [info(name, shape=[None] * 4) for name in names]
    return onnx_models.model(nodes, inputs, [info("y")], constants, opset=20)


def operands(
    form: Form, batch: int, heads: int, rows: int, keys: int, width: int, value_width: int = 0, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return what such a model reads; the masks forbid some keys, never all."""
    rng = np.random.default_rng(seed)

    def tensor(n_heads: int, n: int, size: int, by_column: bool = False) -> np.ndarray:
        shape = (batch, n, n_heads, size) if form.turned else (batch, n_heads, n, size)
        x = rng.standard_normal(shape).astype(np.float32)
        return np.ascontiguousarray(x.transpose(0, 1, 3, 2)) if by_column else x

    shared = heads // form.repeats
    feeds = {
        "q": tensor(heads, rows, width),
        "k": tensor(shared, keys, width, form.key_by_column),
        "v": tensor(shared, keys, value_width or width),
    }
    for i in range(form.masks):
        hidden = rng.random((batch, 1, rows, keys)) < 0.3
        hidden[..., 0] = False
        feeds[f"mask{i}"] = np.where(hidden, np.float32(-1e9 if i == 0 else -np.inf), np.float32(0))
    return feeds
