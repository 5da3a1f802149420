"""Checks that the bodies of If, Loop and Scan fit their nodes, before anything is built from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendsched.errors import GraphError
from ascendsched.frontends.node import NodeDef

if TYPE_CHECKING:
    import onnx


def check_body(node: NodeDef, body: onnx.GraphProto) -> None:
    """Refuse a body whose inputs or outputs do not fit the node, captures not counted.

    Raises
    ------
    GraphError
        With the counts.
    """
    inputs, outputs = len(body.input), len(body.output)
    given, results = len(node.inputs), len(node.outputs)
    if node.op == "If":
        fits = inputs == 0 and outputs == results
        wanted = f"0 inputs and {results} outputs"
    elif node.op == "Loop":
        carried = max(given - 2, 0)
        fits = inputs == 2 + carried and outputs == 1 + results and results >= carried
        wanted = f"{2 + carried} inputs and {1 + results} outputs"
    else:
        scanned = node.attributes.get("num_scan_inputs", 0)
        fits = inputs == given and outputs == results and 1 <= scanned <= given and results >= given - scanned
        wanted = f"{given} inputs and {results} outputs for {scanned} scanned inputs"
    if not fits:
        raise GraphError(
            f"{node.where()}: its body has {inputs} inputs and {outputs} outputs, the node needs {wanted}; "
            "the file is damaged"
        )
