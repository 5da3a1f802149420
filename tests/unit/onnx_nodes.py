"""Small ONNX models for the tests of the front end, node by node."""

from __future__ import annotations

import numpy as np

F = np.float32([[1, -2, 3], [4, 5, -6]])


def value(name, dtype="float32", dims=(2, 3)):
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)


def output(name):
    from onnx import helper

    return helper.make_empty_tensor_value_info(name)


def node(op, inputs, outputs, **attributes):
    from onnx import helper

    return helper.make_node(op, inputs, outputs, **attributes)


def model(nodes, inputs, outputs, constants=None, opset=17, ir_version=8, domains=()):
    from onnx import helper, numpy_helper

    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, [output(name) for name in outputs], initializers)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def body(nodes, outputs, inputs=()):
    from onnx import helper

    return helper.make_graph(nodes, "body", list(inputs), [output(name) for name in outputs])
