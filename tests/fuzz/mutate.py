"""Seeded mutators of ONNX models, at the level of protobuf fields."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper as nh

from tests.fuzz.mutate_structure import TYPES, graphs, input_kind, nesting

Mutator = Callable[[random.Random, onnx.ModelProto], None]

NUMBERS = [0, 1, -1, 2, 3, -2, 4, 7, 8, 16, 63, 64, 65, 127, 255, 1000, -9, 2**16, -(2**16), 2**30, 2**31, -(2**31)]
HUGE = [2**32, 2**40, -(2**40), 2**56, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 2**31 - 1]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan"), 2.5, 1e10]
DTYPES = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16]
VALUE_OPS = ["Optional", "OptionalHasElement", "OptionalGetElement", "SequenceConstruct", "SequenceAt", "StringConcat"]
VALUE_OPS += ["SequenceInsert", "SequenceErase", "SequenceLength", "SplitToSequence", "ConcatFromSequence"]
TEXTS = ["", "x", "NOTSET", "VALID", "SAME_LOWER", "reflect", "edge", "wrap", "constant", "add", "mul", "RIGHT"]
TEXTS += ["reverse", "bidirectional", "linear", "cubic", "nearest", "asymmetric", "align_corners", "DCR", "\u00e9" * 9]


def number(r: random.Random) -> int:
    return r.choice(HUGE) if r.random() < 0.25 else r.choice(NUMBERS)


def _graph(r: random.Random, m: onnx.ModelProto) -> onnx.GraphProto:
    return r.choice(list(graphs(m.graph)))


def _node(r: random.Random, m: onnx.ModelProto) -> onnx.NodeProto | None:
    nodes = [n for g in graphs(m.graph) for n in g.node]
    return r.choice(nodes) if nodes else None


def _initializer(r: random.Random, m: onnx.ModelProto) -> onnx.TensorProto | None:
    tensors = [t for g in graphs(m.graph) for t in g.initializer]
    return r.choice(tensors) if tensors else None


def _names(g: onnx.GraphProto) -> list[str]:
    names = [v.name for v in g.input] + [t.name for t in g.initializer]
    return [*names, *(o for n in g.node for o in n.output), "", "nowhere"]


def attribute_value(r: random.Random, m: onnx.ModelProto) -> None:
    n = _node(r, m)
    if n is None or not n.attribute:
        return
    a = r.choice(n.attribute)
    if a.type == a.INT:
        a.i = r.choice([number(r), r.choice(TYPES)])
    elif a.type == a.FLOAT:
        a.f = r.choice(REALS)
    elif a.type == a.STRING:
        a.s = r.choice(TEXTS).encode() if r.random() < 0.9 else b"\xff\xfe"
    elif a.type == a.INTS:
        values = list(a.ints)
        if values and r.random() < 0.7:
            values[r.randrange(len(values))] = number(r)
        else:
            values = [number(r) for _ in range(r.randrange(9))]
        a.ClearField("ints")
        a.ints.extend(values)
    elif a.type == a.TENSOR:
        tensor_values(r, a.t)


def attribute_kind(r: random.Random, m: onnx.ModelProto) -> None:
    n = _node(r, m)
    if n is None or not n.attribute:
        return
    a = r.choice(n.attribute)
    what = r.randrange(5)
    if what == 0:
        n.attribute.remove(a)
    elif what == 1:
        a.type = r.choice([0, 1, 2, 3, 4, 5, 6, 7, 8])
    elif what == 2:
        a.name = r.choice(["axis", "axes", "alpha", "", "body", "to", "mode"])
    elif what == 3:
        n.attribute.add().CopyFrom(a)
    else:
        a.ref_attr_name = "other"


_ATTRIBUTES = {
    "axis": 0, "axes": [1], "keepdims": 0, "noop_with_empty_axes": 1, "allowzero": 1, "k": 1, "largest": 0, "sorted": 0,
    "group": 2, "strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [2, 1], "kernel_shape": [3, 3], "ceil_mode": 1,
    "auto_pad": "SAME_LOWER", "count_include_pad": 1, "storage_order": 1, "batch_dims": 1, "reduction": "max",
    "mode": "edge", "epsilon": 1e-3, "alpha": 2.0, "beta": 0.5, "transA": 1, "transB": 1, "exclusive": 1, "reverse": 1,
    "start": 1, "end": -1, "perm": [0, 2, 1], "blocksize": 3, "num_outputs": 3, "fmod": 1, "upper": 1, "to": 6,
    "training_mode": 1, "select_last_index": 1, "dtype": 7, "direction": "bidirectional", "hidden_size": 3,
    "stash_type": 1, "clip": 1.0, "input_forget": 1, "layout": 1, "activations": ["Tanh", "Relu", "Tanh"],
    "num_scan_inputs": 1, "scan_input_directions": [1], "coordinate_transformation_mode": "align_corners",
}  # fmt: skip


def attribute_new(r: random.Random, m: onnx.ModelProto) -> None:
    n = _node(r, m)
    if n is None:
        return
    known = [k for k in onnx.defs.get_schema(n.op_type).attributes if k in _ATTRIBUTES] if _has_schema(n) else []
    name = r.choice(known) if known and r.random() < 0.9 else r.choice(list(_ATTRIBUTES))
    if all(a.name != name for a in n.attribute):
        n.attribute.append(onnx.helper.make_attribute(name, _ATTRIBUTES[name]))
        if r.random() < 0.5:
            attribute_value(r, m)


def _has_schema(n: onnx.NodeProto) -> bool:
    return onnx.defs.has(n.op_type)


def tensor_values(r: random.Random, t: onnx.TensorProto) -> None:
    """New values of the same type and shape, or of a new shape, often odd ones."""
    try:
        array = np.array(nh.to_array(t))
    except Exception:  # already broken, in one of the many ways that onnx reports
        return
    if r.random() < 0.4:
        dims = [r.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(r.choice([0, 1, 1, 2, 3, 4, 9]))]
        array = np.resize(array if array.size else np.zeros(1, array.dtype), dims)
    for _ in range(r.choice([1, 1, 2, 5])):
        if array.size == 0:
            break
        value = r.choice(REALS) if array.dtype.kind == "f" else number(r)
        with np.errstate(all="ignore"):
            array.flat[r.randrange(array.size)] = np.array(value).astype(array.dtype)
    name = t.name
    t.CopyFrom(nh.from_array(array, name))


def initializer_values(r: random.Random, m: onnx.ModelProto) -> None:
    t = _initializer(r, m)
    if t is not None:
        tensor_values(r, t)


def initializer_fields(r: random.Random, m: onnx.ModelProto) -> None:
    t = _initializer(r, m)
    if t is None:
        return
    what = r.randrange(6)
    if what == 0:
        t.data_type = r.choice(TYPES)
    elif what == 1:
        t.dims.append(r.choice([0, 1, 2, -1, 2**40]))
    elif what == 2 and t.dims:
        t.dims[r.randrange(len(t.dims))] = number(r)
    elif what == 3:
        t.raw_data = t.raw_data[: r.randrange(len(t.raw_data) + 1)] + bytes(r.choices(range(256), k=r.randrange(9)))
    elif what == 4:
        t.data_location = t.EXTERNAL
        entry = t.external_data.add()
        entry.key, entry.value = "location", r.choice(["../../etc/passwd", "w.bin", "/dev/zero", ""])
    else:
        t.int64_data.append(number(r))


def initializer_cast(r: random.Random, m: onnx.ModelProto) -> None:
    t = _initializer(r, m)
    if t is None:
        return
    try:
        with np.errstate(all="ignore"):
            array = nh.to_array(t).astype(onnx.helper.tensor_dtype_to_np_dtype(r.choice(DTYPES)))
    except Exception:  # already broken, in one of the many ways that onnx reports
        return
    t.CopyFrom(nh.from_array(array, t.name))


def initializer_to_input(r: random.Random, m: onnx.ModelProto) -> None:
    """What was a constant now comes with each run: host values from feeds."""
    t = _initializer(r, m)
    if t is None:
        return
    for g in graphs(m.graph):
        if t in g.initializer:
            dims = list(t.dims) if r.random() < 0.7 else [f"s{k}" for k in range(len(t.dims))]
            m.graph.input.append(onnx.helper.make_tensor_value_info(t.name, t.data_type, dims))
            g.initializer.remove(t)
            return


def input_type(r: random.Random, m: onnx.ModelProto) -> None:
    g = _graph(r, m)
    values = [*g.input, *g.output] if r.random() < 0.3 else list(g.input)
    if not values:
        return
    tensor = r.choice(values).type.tensor_type
    what = r.randrange(5)
    if what == 0:
        tensor.elem_type = r.choice(TYPES)
    elif what == 1:
        tensor.elem_type = r.choice(DTYPES)
    elif what == 2:
        tensor.ClearField("shape")
    elif what == 3 or not tensor.shape.dim:
        dim = tensor.shape.dim.add()
        dim.dim_value = r.choice([0, 1, 2, 3])
    else:
        dim = r.choice(tensor.shape.dim)
        how = r.randrange(4)
        if how == 0:
            dim.dim_value = number(r)
        elif how == 1:
            dim.dim_param = r.choice(["n", "d0", "", "batch"])
        elif how == 2:
            dim.dim_value = r.choice([0, 1, 2])
        else:
            tensor.shape.dim.remove(dim)


def retype(r: random.Random, m: onnx.ModelProto) -> None:
    """Another element type for all float32 inputs and initializers: other kernels."""
    wanted = r.choice([t for t in DTYPES if t != onnx.TensorProto.FLOAT])
    for g in graphs(m.graph):
        for v in [*g.input, *g.output, *g.value_info]:
            if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
                v.type.tensor_type.elem_type = wanted
        for t in g.initializer:
            if t.data_type == onnx.TensorProto.FLOAT:
                with np.errstate(all="ignore"):
                    array = nh.to_array(t).astype(onnx.helper.tensor_dtype_to_np_dtype(wanted))
                t.CopyFrom(nh.from_array(array, t.name))


def input_sizes(r: random.Random, m: onnx.ModelProto) -> None:
    """Open or other dims for an input, so that runs bring other sizes."""
    for v in m.graph.input:
        for d in v.type.tensor_type.shape.dim:
            if r.random() < 0.4:
                d.dim_param = r.choice(["n", "m", "k", "d0"])
            elif r.random() < 0.2:
                d.dim_value = r.choice([1, 5, 17, 33, 64, 130])


def edge(r: random.Random, m: onnx.ModelProto) -> None:
    n = _node(r, m)
    if n is None:
        return
    names = [name for g in graphs(m.graph) for name in _names(g)]
    what = r.randrange(6)
    if what < 3 and n.input:
        n.input[r.randrange(len(n.input))] = r.choice(names)
    elif what == 3:
        n.input.append(r.choice(names))
    elif what == 4 and n.input:
        del n.input[r.randrange(len(n.input))]
    elif n.output:
        n.output[r.randrange(len(n.output))] = r.choice(names)


def output_count(r: random.Random, m: onnx.ModelProto) -> None:
    n = _node(r, m)
    if n is not None and r.random() < 0.5:
        n.output.append(f"extra{r.randrange(9)}")
    elif n is not None and n.output:
        del n.output[-1]


def op_type(r: random.Random, m: onnx.ModelProto) -> None:
    from ascendsched import _core

    n = _node(r, m)
    if n is not None:
        others = ["Resize", "Einsum", "NoSuchOp", "Constant", "If", "Loop", "Scan"]
        n.op_type = r.choice([*_core.op_names(), *VALUE_OPS, *others])


def op_added(r: random.Random, m: onnx.ModelProto) -> None:
    """A further operator on a value of the model, its result one more output of the model."""
    from ascendsched import _core

    values = [name for name in _names(m.graph) if name]
    count = r.choice([1, 1, 1, 2, 2, 3])
    node = m.graph.node.add()
    node.op_type = r.choice(_core.op_names() if r.random() < 0.7 else VALUE_OPS)
    node.name = f"added{len(m.graph.node)}"
    node.input.extend(r.choice(values) for _ in range(count))
    node.output.append(f"{node.name}_out")
    m.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.output[0]))


def node_list(r: random.Random, m: onnx.ModelProto) -> None:
    g = _graph(r, m)
    if not g.node:
        return
    what = r.randrange(4)
    if what == 0:
        del g.node[r.randrange(len(g.node))]
    elif what == 1:
        g.node.add().CopyFrom(r.choice(g.node))
    else:
        nodes = list(g.node)
        r.shuffle(nodes)
        copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
        g.ClearField("node")
        g.node.extend(copies)


def io_list(r: random.Random, m: onnx.ModelProto) -> None:
    g = _graph(r, m)
    values = r.choice([g.input, g.output])
    if not values:
        return
    what = r.randrange(3)
    if what == 0:
        del values[r.randrange(len(values))]
    elif what == 1:
        values.add().CopyFrom(r.choice(values))
    else:
        r.choice(values).name = r.choice(_names(g))


def opset(r: random.Random, m: onnx.ModelProto) -> None:
    if not m.opset_import or r.random() < 0.1:
        m.opset_import.add().version = 9
    m.opset_import[0].version = r.choice([7, 8, 9, 10, 11, 12, 13, 14, 17, 19, 21, 23, 24, 0, -1, 2**40])


def body_swap(r: random.Random, m: onnx.ModelProto) -> None:
    bodies = list(graphs(m.graph))[1:]
    if len(bodies) >= 2:
        a, b = r.sample(bodies, 2)
        b.CopyFrom(onnx.GraphProto.FromString(a.SerializeToString()))
    elif bodies:
        n = _node(r, m)
        if n is not None:
            n.attribute.append(onnx.helper.make_attribute(r.choice(["body", "then_branch", "else_branch"]), bodies[0]))


MUTATORS: list[tuple[int, Mutator]] = [
    (8, attribute_value), (1, attribute_kind), (4, attribute_new), (8, initializer_values), (1, initializer_fields),
    (2, initializer_cast), (5, initializer_to_input), (3, input_type), (3, edge), (1, output_count), (1, op_type),
    (3, op_added), (1, node_list), (1, io_list), (1, opset), (1, body_swap), (4, retype), (4, input_sizes),
    (1, input_kind), (1, nesting),
]  # fmt: skip
# What mostly leaves a model valid: these cases reach the kernels.
GENTLE: list[tuple[int, Mutator]] = [
    (4, attribute_value), (2, attribute_new), (4, initializer_values), (3, initializer_to_input), (2, retype),
    (2, input_sizes), (1, initializer_cast),
]  # fmt: skip


def mutated(r: random.Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with one to five changes."""
    m = onnx.ModelProto.FromString(model.SerializeToString())
    chosen, counts = (GENTLE, [1, 2, 3]) if r.random() < 0.6 else (MUTATORS, [1, 1, 2, 2, 3, 5])
    weights, mutators = zip(*chosen, strict=True)
    for mutator in r.choices(mutators, weights, k=r.choice(counts)):
        try:
            mutator(r, m)
        except Exception:  # the field does not take this value, or an earlier change broke it: another one then
            continue
    return m


def damaged(r: random.Random, data: bytes) -> bytes:
    """Bytes cut, changed, or inserted."""
    b = bytearray(data)
    what = r.randrange(4)
    if what == 0:
        return bytes(b[: r.randrange(len(b) + 1)])
    if what == 1:
        return r.randbytes(r.randrange(200))
    for _ in range(r.choice([1, 2, 8])):
        at = r.randrange(len(b)) if b else 0
        if what == 2 and b:
            b[at] ^= 1 << r.randrange(8)
        else:
            b[at:at] = r.randbytes(r.randrange(5))
    return bytes(b)
