"""A graph that records what a front end builds, and writes it back as an ONNX model of the newest semantics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

WRITTEN_OPSET = 21
# Operators that the recorded graphs may hold; what adapters replace (Upsample, Scatter, Dropout) is not among them.
REMOVED = {"Constant", "Dropout", "Scatter", "Upsample"}


@dataclass
class RecordedNode:
    op: str
    inputs: list[int]
    outputs: list[int]
    attributes: dict[str, Any]
    name: str


@dataclass
class RecordedGraph:
    """Stands for ``_core.Graph``."""

    name: str
    values: list[tuple[str, str | None, list[int | str | None] | None]] = field(default_factory=list)
    constants: dict[int, tuple[np.ndarray, str]] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    nodes: list[RecordedNode] = field(default_factory=list)

    def add_value(self, name, dtype, dims):
        self.values.append((name, dtype, dims))
        return len(self.values) - 1

    def add_constant(self, name, array, dtype=None):
        assert array.flags.c_contiguous
        value = self.add_value(name, dtype or array.dtype.name, list(array.shape))
        self.constants[value] = (array.copy(), dtype or array.dtype.name)
        return value

    def add_input(self, value_id):
        self.inputs.append(value_id)

    def add_output(self, value_id):
        self.outputs.append(value_id)

    def add_node(self, op, inputs, outputs, attributes, name):
        self.nodes.append(RecordedNode(op, list(inputs), list(outputs), dict(attributes), name))

    def ops(self):
        return [node.op for node in self.nodes]

    def constant(self, value):
        return self.constants[value][0]


class _Writer:
    """Writes recorded graphs; values of bodies get names of their own, captures the names of the outer values."""

    def __init__(self):
        self.serial = 0

    def graph(self, recorded, captured=None, scalar_inputs=0):
        import onnx
        from onnx import helper

        self.serial += 1
        names = {i: f"{value[0]}#{self.serial}.{i}" for i, value in enumerate(recorded.values)}
        captured = captured or []
        own = recorded.inputs[: len(recorded.inputs) - len(captured)]
        if self.serial == 1:
            names |= {value: recorded.values[value][0] for value in [*recorded.inputs, *recorded.outputs]}
        names |= dict(zip(recorded.inputs[len(own) :], captured, strict=True))
        names[-1] = ""
        inputs = [self.info(recorded, v, names[v], [] if i < scalar_inputs else None) for i, v in enumerate(own)]
        initializers = [self.tensor(names[value], *constant) for value, constant in recorded.constants.items()]
        nodes = [self.node(node, names) for node in recorded.nodes]
        outputs = []
        for value in recorded.outputs:
            output = names[value]
            if captured is not None and (value in recorded.inputs or value in recorded.constants) and self.serial > 1:
                output = f"{names[value]}.out{len(outputs)}"
                nodes.append(helper.make_node("Identity", [names[value]], [output]))
            outputs.append(onnx.ValueInfoProto(name=output))
        return helper.make_graph(nodes, recorded.name, inputs, outputs, initializers)

    def info(self, recorded, value, name, scalar):
        from onnx import TensorProto, helper

        _, dtype, dims = recorded.values[value]
        dims = dims if scalar is None else scalar
        return helper.make_tensor_value_info(name, getattr(TensorProto, _ONNX_NAMES.get(dtype, dtype.upper())), dims)

    def tensor(self, name, array, dtype):
        from onnx import TensorProto, helper

        kind = getattr(TensorProto, _ONNX_NAMES.get(dtype, dtype.upper()))
        return helper.make_tensor(name, kind, array.shape, array.tobytes(), raw=True)

    def node(self, node, names):
        from onnx import AttributeProto, helper, numpy_helper

        attributes = dict(node.attributes)
        captures = attributes.pop("num_captures", 0)
        inputs = [names[value] for value in node.inputs]
        plain, captured = inputs[: len(inputs) - captures], inputs[len(inputs) - captures :]
        for key, value in attributes.items():
            if isinstance(value, RecordedGraph):
                attributes[key] = self.graph(value, captured, 2 if node.op == "Loop" else 0)
            elif isinstance(value, np.ndarray):
                attributes[key] = numpy_helper.from_array(value)
        domain, _, op = node.op.rpartition("::")
        written = helper.make_node(op, plain, [names[value] for value in node.outputs], name=node.name, domain=domain)
        for key, value in attributes.items():
            kind = AttributeProto.INTS if value == [] else None
            written.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        return written


_ONNX_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}


def write_model(recorded):
    """Return a ModelProto of the recorded graph."""
    from onnx import helper

    opsets = [helper.make_opsetid("", WRITTEN_OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(_Writer().graph(recorded), opset_imports=opsets, ir_version=10)


def known_operators():
    import onnx.defs

    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == "" and not schema.deprecated}
    return names - REMOVED


def record(model, known=None):
    """Import a model and return the recorded graph."""
    from ascendsched.frontends.onnx import import_model

    return import_model(model, RecordedGraph, known_operators() if known is None else known)


def run_onnxruntime(model, feeds):
    """Run a ModelProto, bytes or a path; skips the test where onnxruntime is absent."""
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime judges the result and is not installed")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    model = model.SerializeToString() if hasattr(model, "SerializeToString") else model
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds), strict=True))


def check_same_results(model, feeds, tolerance=1e-6):
    """Import the model, write it back, and compare both in onnxruntime; return the recorded graph."""
    recorded = record(model)
    expected = run_onnxruntime(model, feeds)
    got = run_onnxruntime(write_model(recorded), feeds)
    assert list(got) == list(expected)
    for name, value in expected.items():
        assert got[name].dtype == value.dtype, name
        np.testing.assert_allclose(got[name], value, rtol=tolerance, atol=tolerance, err_msg=name)
    return recorded
