"""Operators that simpler ones replace in every opset."""

from __future__ import annotations

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.replacement import Replacement

_FLOAT = 1  # TensorProto.FLOAT
_INTEGERS = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"})


def hardmax(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """A one where the first largest element of the axis is, zeros elsewhere."""
    r = Replacement(node, ctx)
    data, axis = node.inputs[0], node.attributes.get("axis", -1)
    place = r.make("ArgMax", data, axis=axis, keepdims=0)
    off_and_on = r.like([0, 1], data)
    r.make("OneHot", place, r.dim(data, axis), off_and_on, output=node.outputs[0], axis=axis)
    return r.nodes


def lp_normalization(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Each vector along the axis divided by its norm; a vector of zeros stays as it is."""
    r = Replacement(node, ctx)
    data, power = node.inputs[0], node.attributes.get("p", 2)
    if power not in (1, 2):
        raise GraphError(f"{node.where()}: p is {power}, ONNX has 1 and 2; the file is damaged")
    axis = r.constant([node.attributes.get("axis", -1)])
    norm = r.make(f"ReduceL{power}", data, axis, keepdims=1)
    is_zero = r.make("Equal", norm, r.like(0, data))
    r.make("Where", is_zero, data, r.make("Div", data, norm), output=node.outputs[0])
    return r.nodes


def lp_pool(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The p-norm of each window: a convolution of powers with ones, one channel at a time."""
    r = Replacement(node, ctx)
    attributes = dict(node.attributes)
    power = attributes.pop("p", 2)
    if attributes.pop("ceil_mode", 0):
        raise UnsupportedError(f"{node.where()}: ceil_mode is not supported; pad the input instead")
    if power < 1:
        raise GraphError(f"{node.where()}: p is {power}, expected 1 or more; the file is damaged")
    kernel = attributes.get("kernel_shape", [])
    if len(kernel) < 1 or min(kernel) < 1 or np.prod(kernel, dtype=np.float64) > 1 << 24:
        raise GraphError(f"{node.where()}: kernel_shape {kernel} is empty or too large; the file is damaged")
    data = node.inputs[0]
    spatial = r.make("Shape", data, start=2)
    one = r.constant([1])
    channels = r.make("Reshape", data, r.make("Concat", r.constant([-1]), one, spatial, axis=0))
    powers = r.make("Pow", r.make("Abs", channels), r.like(power, data))
    sums = r.make("Conv", powers, r.like(np.ones((1, 1, *kernel)), data), **attributes)
    norms = r.make("Pow", sums, r.like(1 / power, data))
    front = r.make("Shape", data, end=2)
    shape = r.make("Concat", front, r.make("Shape", norms, start=2), axis=0)
    r.make("Reshape", norms, shape, output=node.outputs[0])
    return r.nodes


def global_lp_pool(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """The p-norm of each channel."""
    r = Replacement(node, ctx)
    data, power = node.inputs[0], float(node.attributes.get("p", 2))  # a float in the first opset
    rank = ctx.rank_of(data)
    if rank is None or rank < 3:
        raise UnsupportedError(f"{node.where()}: needs an input of known rank, 3 or more; declare it in the model")
    if not power >= 1:
        raise GraphError(f"{node.where()}: p is {power}, expected 1 or more; the file is damaged")
    axes = r.constant(list(range(2, rank)))
    if power in (1, 2):
        r.make(f"ReduceL{int(power)}", data, axes, output=node.outputs[0], keepdims=1)
    else:
        sums = r.make("ReduceSum", r.make("Pow", r.make("Abs", data), r.like(power, data)), axes, keepdims=1)
        r.make("Pow", sums, r.like(1 / power, data), output=node.outputs[0])
    return r.nodes


def local_response_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Each element divided by a power of the mean square of the channels around it."""
    r = Replacement(node, ctx)
    data, size = node.inputs[0], node.attributes["size"]
    if size < 1:
        raise GraphError(f"{node.where()}: size is {size}, expected 1 or more; the file is damaged")
    shape = r.make("Shape", data)
    one = r.constant([1])
    planes = r.make("Concat", r.dim(data, 0), one, r.dim(data, 1), r.constant([-1]), axis=0)
    squares = r.make("Reshape", r.make("Mul", data, data), planes)
    before = (size - 1) // 2
    mean = r.make(
        "AveragePool",
        squares,
        kernel_shape=[size, 1],
        pads=[before, 0, size - 1 - before, 0],
        strides=[1, 1],
        count_include_pad=1,
    )
    scaled = r.make("Mul", r.make("Reshape", mean, shape), r.like(node.attributes.get("alpha", 0.0001), data))
    base = r.make("Add", scaled, r.like(node.attributes.get("bias", 1.0), data))
    divisor = r.make("Pow", base, r.like(node.attributes.get("beta", 0.75), data))
    r.make("Div", data, divisor, output=node.outputs[0])
    return r.nodes


def shrink(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Moved towards zero by ``bias`` outside of ``lambd`` around zero, zero inside."""
    r = Replacement(node, ctx)
    data, result = node.inputs[0], node.outputs[0]
    is_integer = ctx.type_of(data).dtype in _INTEGERS
    x = r.make("Cast", data, to=_FLOAT) if is_integer else data
    bias, limit = r.like(node.attributes.get("bias", 0.0), x), r.like(node.attributes.get("lambd", 0.5), x)
    above = r.make("Where", r.make("Greater", x, limit), r.make("Sub", x, bias), r.like(0, x))
    is_below = r.make("Less", x, r.make("Neg", limit))
    low = r.make("Add", x, bias)
    if is_integer:
        r.make("CastLike", r.make("Where", is_below, low, above), data, output=result)
    else:
        r.make("Where", is_below, low, above, output=result)
    return r.nodes


def group_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Groups of channels are normalised as instances, then each channel is scaled and shifted."""
    r = Replacement(node, ctx)
    data, scale, bias = node.inputs
    groups = node.attributes.get("num_groups", 0)
    if not 1 <= groups <= 1 << 24:
        raise GraphError(f"{node.where()}: num_groups must be positive, got {groups}; the file is damaged")
    shape = r.make("Shape", data)
    grouped = r.make("Reshape", data, r.constant([0, groups, -1]))
    ones, zeros = r.like(np.ones(groups), data), r.like(np.zeros(groups), data)
    epsilon = node.attributes.get("epsilon", 1e-5)
    normal = r.make("InstanceNormalization", grouped, ones, zeros, epsilon=epsilon)
    front = r.make("Shape", data, end=2)
    channels = r.make("Reshape", normal, r.make("Concat", front, r.constant([-1]), axis=0))
    last = r.constant([1])
    scaled = r.make("Mul", channels, r.make("Unsqueeze", scale, last))
    shifted = r.make("Add", scaled, r.make("Unsqueeze", bias, last))
    r.make("Reshape", shifted, shape, output=node.outputs[0])
    return r.nodes


def half_range(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """A range of half precision is counted in float32 and rounded."""
    dtype = ctx.type_of(node.inputs[0]).dtype
    if dtype not in ("float16", "bfloat16"):
        return None
    r = Replacement(node, ctx)
    wide = r.make("Range", *(r.make("Cast", name, to=_FLOAT) for name in node.inputs))
    r.make("CastLike", wide, node.inputs[0], output=node.outputs[0])
    return r.nodes


def space_to_depth(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """The order in which the core does not know: channels first, then the places in the block."""
    if node.attributes.pop("mode", "DCR") != "CRD":
        return None
    r = Replacement(node, ctx)
    block, data = node.attributes.get("blocksize", 0), node.inputs[0]
    depth = r.make("SpaceToDepth", data, blocksize=block)
    size = r.constant([block])
    split = r.make("Concat", r.dim(data, 0), size, size, r.dim(data, 1), r.make("Shape", depth, start=2), axis=0)
    swapped = r.make("Transpose", r.make("Reshape", depth, split), perm=[0, 3, 1, 2, 4, 5])
    r.make("Reshape", swapped, r.make("Shape", depth), output=node.outputs[0])
    return r.nodes
