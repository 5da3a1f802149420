"""Scan as a Loop, and recurrent layers whose batch comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.onnx_bodies import check_body
from ascendsched.frontends.replacement import Replacement

if TYPE_CHECKING:
    import onnx


def batch_first(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """With ``layout`` 1 the batch is the first axis of the input, the states and the results."""
    if node.attributes.pop("layout", 0) == 0:
        return None
    r = Replacement(node, ctx)
    inputs = list(node.inputs)
    for index in (
        0,
        5,
        6,
    ):  # the input and the initial states; weights, bias and lengths have no batch axis, or only it
        if node.input(index):
            inputs[index] = r.make("Transpose", inputs[index], perm=[1, 0, 2])
    wanted = [None if name else "" for name in node.outputs]
    results = r.make_several(node.op, inputs, wanted, **node.attributes)
    for index, (result, output) in enumerate(zip(results, node.outputs, strict=True)):
        if output:
            r.make("Transpose", result, output=output, perm=[2, 0, 1, 3] if index == 0 else [1, 0, 2])
    return r.nodes


def scan(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """A Loop over the length of the scanned inputs, whose body picks the elements of its iteration."""
    body: onnx.GraphProto = node.attributes["body"]
    check_body(node, body)
    count = node.attributes["num_scan_inputs"]
    states, scanned = node.inputs[: len(node.inputs) - count], node.inputs[len(node.inputs) - count :]
    axes = _list_of(node, "scan_input_axes", count)
    backwards = _list_of(node, "scan_input_directions", count)
    r = Replacement(node, ctx)
    sources = [r.make("Identity", name) for name in scanned]  # the body may use the names for values of its own
    length = r.make("Squeeze", r.dim(sources[0], axes[0]))
    last = r.make("Sub", length, r.constant(1)) if any(backwards) else ""
    loop_body = _loop_body(ctx, body, sources, axes, [last if flag else "" for flag in backwards])
    stacked = len(node.outputs) - len(states)
    output_axes = _list_of(node, "scan_output_axes", stacked)
    prepends = _list_of(node, "scan_output_directions", stacked)
    ends = list(zip(node.outputs[len(states) :], output_axes, prepends, strict=True))
    raw: list[str | None] = [name if not axis and not flag else None for name, axis, flag in ends]
    results = r.make_several("Loop", [length, "", *states], [*node.outputs[: len(states)], *raw], body=loop_body)
    for k, (name, axis, flag) in enumerate(ends):
        rank = ctx.rank_of(name)
        _finish(node, r, results[len(states) + k], name, (axis, flag), rank)
    return r.nodes


def scan_8(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Everything had a batch axis in front: a Loop over it, around the Loop over the elements."""
    import onnx

    make, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    body: onnx.GraphProto = node.attributes["body"]
    count = node.attributes["num_scan_inputs"]
    plain = NodeDef("Scan", node.inputs[1:], node.outputs, {"num_scan_inputs": count}, node.name)
    check_body(plain, body)
    if node.inputs[0]:
        raise UnsupportedError(f"{node.where()}: lengths of its sequences are not supported; export with a newer opset")
    backwards = _list_of(NodeDef("Scan", [], [], {**node.attributes}, node.name), "directions", count)
    r = Replacement(node, ctx)
    sources = [r.make("Identity", name) for name in plain.inputs]
    fresh = ctx.fresh
    batch, go_on, goes_on, length, last = (fresh(hint) for hint in ("batch", "go_on", "goes_on", "length", "last"))
    first, one = r.constant(0), r.constant(1)
    parts = [fresh("entry") for _ in sources]
    scanned = parts[len(parts) - count :]
    made = onnx.GraphProto(name=body.name)
    made.input.extend([info(batch, onnx.TensorProto.INT64, []), info(go_on, onnx.TensorProto.BOOL, [])])
    made.node.extend(make("Gather", [s, batch], [part], axis=0) for s, part in zip(sources, parts, strict=True))
    shape = fresh("shape")
    made.node.extend([make("Shape", [scanned[0]], [shape]), make("Gather", [shape, first], [length])])
    made.node.append(make("Sub", [length, one], [last]))
    inner = _loop_body(ctx, body, scanned, [0] * count, [last if flag else "" for flag in backwards])
    outputs = [fresh("result") for _ in node.outputs]
    made.node.append(make("Loop", [length, "", *parts[: len(parts) - count]], outputs, body=inner))
    made.node.append(make("Identity", [go_on], [goes_on]))
    made.output.append(info(goes_on, onnx.TensorProto.BOOL, []))
    made.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in outputs)
    batches = r.make("Squeeze", r.dim(sources[0], 0))
    r.make_several("Loop", [batches, ""], list(node.outputs), body=made)
    return r.nodes


def loop(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Values that the body hands on unchanged are read from outside instead: nothing copies them, and weights among
    them stay constants."""
    body: onnx.GraphProto = node.attributes["body"]
    check_body(node, body)
    copies = [inner for inner in body.node if inner.op_type == "Identity" and inner.input and inner.output]
    sources = {inner.output[0]: inner.input[0] for inner in copies}
    carried = range(len(node.inputs) - 2)
    unchanged = [k for k in carried if _origin(body.output[1 + k].name, sources) == body.input[2 + k].name]
    if not unchanged:
        return None
    import onnx

    r = Replacement(node, ctx)
    made = onnx.GraphProto()
    made.CopyFrom(body)
    del made.input[:], made.node[:], made.output[:]
    made.input.extend(info for k, info in enumerate(body.input) if k - 2 not in unchanged)
    made.output.extend(info for k, info in enumerate(body.output) if k - 1 not in unchanged)
    for k in unchanged:
        source = r.make("Identity", node.inputs[2 + k])  # the body may use the name for a value of its own
        made.node.append(onnx.helper.make_node("Identity", [source], [body.input[2 + k].name]))
        if node.outputs[k]:
            r.make("Identity", source, output=node.outputs[k])
    made.node.extend(body.node)
    inputs = [name for k, name in enumerate(node.inputs) if k - 2 not in unchanged]
    outputs = [name for k, name in enumerate(node.outputs) if k not in unchanged]
    if not any(outputs):
        return r.nodes
    r.nodes.append(NodeDef("Loop", inputs, outputs, {**node.attributes, "body": made}, node.name))
    return r.nodes


def _origin(name: str, sources: dict[str, str]) -> str:
    """Follow a name through the Identity nodes that produce it."""
    for _ in range(len(sources)):
        if name not in sources:
            break
        name = sources[name]
    return name


def _list_of(node: NodeDef, attribute: str, count: int) -> list[int]:
    values = node.attributes.get(attribute) or [0] * count
    if len(values) != count:
        raise GraphError(f"{node.where()}: {attribute} has {len(values)} entries for {count}; the file is damaged")
    return list(values)


def _loop_body(
    ctx: AdapterContext, body: onnx.GraphProto, sources: list[str], axes: list[int], lasts: list[str]
) -> onnx.GraphProto:
    import onnx

    helper = onnx.helper
    iteration, go_on, goes_on = (ctx.fresh(hint) for hint in ("iteration", "go_on", "goes_on"))
    states = len(body.input) - len(sources)
    made = onnx.GraphProto()
    made.CopyFrom(body)
    del made.input[:], made.node[:], made.output[:]
    made.input.append(helper.make_tensor_value_info(iteration, onnx.TensorProto.INT64, []))
    made.input.append(helper.make_tensor_value_info(go_on, onnx.TensorProto.BOOL, []))
    made.input.extend(body.input[:states])
    for formal, source, axis, last in zip(body.input[states:], sources, axes, lasts, strict=True):
        place = iteration
        if last:
            place = ctx.fresh("from_the_end")
            made.node.append(helper.make_node("Sub", [last, iteration], [place]))
        made.node.append(helper.make_node("Gather", [source, place], [formal.name], axis=axis))
    made.node.extend(body.node)
    made.node.append(helper.make_node("Identity", [go_on], [goes_on]))
    made.output.append(helper.make_tensor_value_info(goes_on, onnx.TensorProto.BOOL, []))
    made.output.extend(body.output)
    return made


def _finish(node: NodeDef, r: Replacement, value: str, output: str, end: tuple[int, int], rank: Any) -> None:
    """Bring a stacked result into the order and to the axis that the node wants."""
    axis, is_prepended = end
    if not output or (not axis and not is_prepended):
        return
    if is_prepended:
        first, far = r.constant([-1]), r.constant([-(1 << 62)])
        value = r.make("Slice", value, first, far, r.constant([0]), first, output=None if axis else output)
    if axis:
        if rank is None:
            raise UnsupportedError(f"{node.where()}: the rank of '{output}' is not known; declare it in the model")
        if not -rank <= axis < rank:
            raise GraphError(f"{node.where()}: scan_output_axes has {axis} for rank {rank}; the file is damaged")
        order = list(range(1, rank))
        order.insert(axis % rank, 0)
        r.make("Transpose", value, output=output, perm=order)
