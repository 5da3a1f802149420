"""Checks that the bodies of If, Loop and Scan fit their nodes, before anything is built from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import NodeDef
from ascendsched.frontends.onnx_types import bodies_of
from ascendsched.packed import joined

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


def result_kinds(node: NodeDef, given: list[str | None], bodies: list[list[str | None]]) -> list[str | None]:
    """Return the kinds of a node's results, None for tensors.

    Parameters
    ----------
    node
        An If, Loop or Scan.
    given
        Kinds of the inputs of a loop.
    bodies
        Kinds of the outputs of each body.

    Raises
    ------
    GraphError
        Where branches, or the turns of a loop, give a tensor or something else by turns.
    UnsupportedError
        For a loop that stacks what is no tensor of numbers.
    """
    if node.op == "If":
        return [_one_kind(node, *pair) for pair in zip(*bodies, strict=True)]
    (results,) = bodies
    carried = len(given) - 2 if node.op == "Loop" else len(results)
    kinds = [_one_kind(node, *pair) for pair in zip(given[2:], results[1 : 1 + carried], strict=False)]
    stacked = results[1 + len(kinds) :] if node.op == "Loop" else results
    if any(stacked) or any(results[:1]):
        found = next(kind for kind in results if kind)
        raise UnsupportedError(f"{node.where()}: its body stacks a {found}; collect it in a sequence")
    return [*kinds, *[None] * (len(node.outputs) - len(kinds))]


def _one_kind(node: NodeDef, one: str | None, two: str | None) -> str | None:
    kind = joined(one, two) if one and two else one or two
    if not kind and not one and not two:
        return None
    if not kind or not one or not two:
        raise GraphError(
            f"{node.where()}: '{one or 'a tensor'}' and '{two or 'a tensor'}' for one result; the file is damaged"
        )
    return kind


def collect_reads(node: onnx.NodeProto, reads: set[str]) -> None:
    """Add the names that a node and its bodies read."""
    reads.update(node.input)
    for body in bodies_of(node):
        for inner in body.node:
            collect_reads(inner, reads)
        reads.update(output.name for output in body.output)
