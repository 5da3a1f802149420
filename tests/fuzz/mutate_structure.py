"""Mutators that change what kind of value an input is, or how deep a node lies."""

from __future__ import annotations

import random
from collections.abc import Iterator

import onnx

TYPES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 99, -1]


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and every body in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def input_kind(r: random.Random, m: onnx.ModelProto) -> None:
    """An input becomes text, a sequence or an optional, or of them a tensor."""
    values = [v for g in graphs(m.graph) for v in [*g.input, *g.output]]
    if not values:
        return
    kind = r.choice(values).type
    tensor = onnx.TypeProto()
    tensor.tensor_type.elem_type = r.choice([onnx.TensorProto.STRING, onnx.TensorProto.FLOAT, r.choice(TYPES)])
    made = onnx.TypeProto()
    what = r.randrange(5)
    if what == 0:
        made.CopyFrom(tensor)
    elif what == 1:
        made.sequence_type.elem_type.CopyFrom(tensor)
    elif what == 2:
        made.optional_type.elem_type.CopyFrom(tensor)
    elif what == 3:
        made.optional_type.elem_type.sequence_type.elem_type.CopyFrom(tensor)
    else:
        made.map_type.key_type = onnx.TensorProto.INT64
        made.map_type.value_type.CopyFrom(tensor)
    kind.CopyFrom(made)


def nesting(r: random.Random, m: onnx.ModelProto) -> None:
    """A node moves into branches in branches, up to deeper than a file can hold."""
    g = r.choice(list(graphs(m.graph)))
    if not g.node:
        return
    place = r.randrange(len(g.node))
    condition = onnx.helper.make_tensor("nested_if", onnx.TensorProto.BOOL, [], [r.random() < 0.5])
    if all(t.name != condition.name for t in m.graph.initializer):
        m.graph.initializer.append(condition)
    node = g.node[place]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output]
    other = onnx.helper.make_graph([node], "other", [], outputs)
    names = [value.name for value in outputs]
    for _ in range(r.choice([1, 3, 12, 30, 60])):
        body = onnx.helper.make_graph([node], "nested", [], outputs)
        node = onnx.helper.make_node("If", ["nested_if"], names, then_branch=body, else_branch=other)
    g.node[place].CopyFrom(node)
