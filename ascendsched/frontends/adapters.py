"""Adapters: rewrite nodes of old ONNX opsets to the newest semantics, the only ones that the core knows.

An adapter changes its node in place and returns None, or returns the nodes that replace it. To add one, write the
function and name it in the table at the end with the first opset that no longer needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends import adapters_attention as attention
from ascendsched.frontends import adapters_microsoft as microsoft
from ascendsched.frontends import adapters_nbits as nbits
from ascendsched.frontends import adapters_old as old
from ascendsched.frontends import adapters_quantized as quantized
from ascendsched.frontends import adapters_random as random
from ascendsched.frontends import adapters_sequence as sequence
from ascendsched.frontends import adapters_simple as simple
from ascendsched.frontends import adapters_training as training
from ascendsched.frontends.adapters_einsum import einsum
from ascendsched.frontends.adapters_recurrent import batch_first, loop, scan, scan_8
from ascendsched.frontends.adapters_resize import resize_10, resize_11, resize_empty_inputs, upsample
from ascendsched.frontends.adapters_rotary import rotary_embedding
from ascendsched.frontends.node import AdapterContext, NodeDef, Tensor

Adapter = Callable[[NodeDef, AdapterContext], "list[NodeDef] | None"]

_EVERY_OPSET = sys.maxsize
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_BFLOAT16 = 16  # TensorProto.BFLOAT16


def adapt(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Return the nodes of newest semantics that do what ``node`` does in the model's opset."""
    op, nodes = node.op, [node]
    if ctx.opset < 6:
        node.attributes.pop("consumed_inputs", None)  # a hint about memory
    for below, adapter in ADAPTERS.get(op, ()):
        if ctx.opset >= below:
            continue
        replaced = []
        for each in nodes:  # one that an adapter put around its node has the newest semantics already
            replacement = adapter(each, ctx) if each.op == op else None
            replaced += [each] if replacement is None else replacement
        nodes = replaced
    return nodes


def _ints_to_input(attribute: str, index: int) -> Adapter:
    """Return an adapter that moves an attribute of integers to an input, as newer opsets have it."""

    def move(node: NodeDef, ctx: AdapterContext) -> None:
        values = node.attributes.pop(attribute, None)
        if values:
            node.inputs += [""] * (index + 1 - len(node.inputs))
            node.inputs[index] = ctx.constant(np.array(values, np.int64), f"{node.name}_{attribute}")

    return move


def _scalar_like(value: float, like: str, node: NodeDef, ctx: AdapterContext) -> tuple[str, list[NodeDef]]:
    """Return the name of a scalar of the element type of ``like``, and the nodes that make it."""
    dtype = ctx.type_of(like).dtype
    if dtype is not None and dtype != "bfloat16":
        try:
            return ctx.constant(np.array(value, dtype), f"{node.name}_scalar"), []
        except (OverflowError, ValueError):  # infinity or NaN as an integer
            raise GraphError(f"{node.where()}: {value} does not fit {dtype}; the file is damaged") from None
    scalar = ctx.constant(np.array(value, np.float32), f"{node.name}_scalar")
    cast = ctx.fresh(f"{node.name}_scalar_cast")
    return cast, [NodeDef("CastLike", [scalar, like], [cast], {}, f"{node.name}/CastLike")]


def _clip(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    before: list[NodeDef] = []
    data = node.inputs[0]
    for attribute, open_end in (("min", -_FLOAT32_MAX), ("max", _FLOAT32_MAX)):
        value = node.attributes.pop(attribute, open_end)
        if value == open_end:
            node.inputs.append("")
            continue
        scalar, made = _scalar_like(value, data, node, ctx)
        node.inputs.append(scalar)
        before += made
    return [*before, node]


def _pad(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    data = node.inputs[0]
    pads = np.array(node.attributes.pop("pads"), np.int64)
    node.inputs = [data, ctx.constant(pads, f"{node.name}_pads")]
    value = node.attributes.pop("value", 0.0)
    if value == 0.0:
        return [node]
    scalar, before = _scalar_like(value, data, node, ctx)
    node.inputs.append(scalar)
    return [*before, node]


def _slice(node: NodeDef, ctx: AdapterContext) -> None:
    for attribute in ("starts", "ends", "axes"):
        values = node.attributes.pop(attribute, None)
        if values is not None:
            node.inputs.append(ctx.constant(np.array(values, np.int64), f"{node.name}_{attribute}"))


def _top_k(node: NodeDef, ctx: AdapterContext) -> None:
    k = np.array([node.attributes.pop("k")], np.int64)
    node.inputs.append(ctx.constant(k, f"{node.name}_k"))


def _split_count(node: NodeDef, ctx: AdapterContext) -> None:
    if not node.input(1):
        node.attributes["num_outputs"] = len(node.outputs)


def _flattening(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Softmax, LogSoftmax, Hardmax before 13 work on the input flattened to two dimensions at ``axis``."""
    axis = node.attributes.pop("axis", 1)
    data, result = node.inputs[0], node.outputs[0]
    node.attributes["axis"] = -1
    if axis == -1 or axis + 1 == ctx.rank_of(data):
        return None
    flat, flat_result, shape = (ctx.fresh(f"{node.name}_{hint}") for hint in ("flat", "flat_result", "shape"))
    node.inputs, node.outputs = [flat], [flat_result]
    # allowzero: a dimension of 0 in the input is a 0 in the result, not a copy.
    return [
        NodeDef("Flatten", [data], [flat], {"axis": axis}, f"{node.name}/Flatten"),
        node,
        NodeDef("Shape", [data], [shape], {}, f"{node.name}/Shape"),
        NodeDef("Reshape", [flat_result, shape], [result], {"allowzero": 1}, f"{node.name}/Reshape"),
    ]


def _batch_norm_spatial(node: NodeDef, ctx: AdapterContext) -> None:
    if node.attributes.pop("spatial", 1) != 1:
        raise UnsupportedError(f"{node.where()}: spatial=0 is not supported; export with opset 9 or newer")


def _group_norm(node: NodeDef, ctx: AdapterContext) -> list[NodeDef]:
    """Before 21 there is one scale and bias for each group, from 21 on for each channel."""
    groups = node.attributes.get("num_groups", 0)
    if groups < 1:
        raise GraphError(f"{node.where()}: num_groups must be positive, got {groups}; the file is damaged")

    def make(op: str, inputs: list[str], attributes: dict[str, object], hint: str) -> str:
        output = ctx.fresh(f"{node.name}_{hint}")
        before.append(NodeDef(op, inputs, [output], attributes, f"{node.name}/{hint}"))
        return output

    before: list[NodeDef] = []
    constant = ctx.constant(np.array([groups], np.int64), f"{node.name}_groups")
    last = ctx.constant(np.array([1], np.int64), f"{node.name}_last")
    flat = ctx.constant(np.array([-1], np.int64), f"{node.name}_flat")
    channels = make("Shape", [node.inputs[0]], {"start": 1, "end": 2}, "channels")
    each = make("Div", [channels, constant], {}, "channels_per_group")
    grid = make("Concat", [constant, each], {"axis": 0}, "grid")
    for index, hint in ((1, "scale"), (2, "bias")):
        column = make("Unsqueeze", [node.inputs[index], last], {}, f"{hint}_column")
        table = make("Expand", [column, grid], {}, f"{hint}_table")
        node.inputs[index] = make("Reshape", [table, flat], {}, f"{hint}_per_channel")
    return [*before, node]


def _scatter(node: NodeDef, ctx: AdapterContext) -> None:
    node.op = "ScatterElements"


def _roi_align(node: NodeDef, ctx: AdapterContext) -> None:
    node.attributes.setdefault("coordinate_transformation_mode", "output_half_pixel")


def _dft(node: NodeDef, ctx: AdapterContext) -> None:
    axis = ctx.constant(np.array(node.attributes.pop("axis", 1), np.int64), f"{node.name}_axis")
    node.inputs = [node.inputs[0], node.input(1), axis]


def _grid_sample(node: NodeDef, ctx: AdapterContext) -> None:
    mode = node.attributes.get("mode", "bilinear")
    node.attributes["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)


def _constant_of_shape(node: NodeDef, ctx: AdapterContext) -> list[NodeDef] | None:
    """Attributes have no bfloat16: fill with the same float32 value and convert."""
    value = node.attributes.get("value")
    if not isinstance(value, Tensor) or value.dtype != "bfloat16":
        return None
    wide = (value.array.astype(np.uint32) << 16).view(np.float32)
    node.attributes["value"] = Tensor(wide, "float32")
    result = node.outputs[0]
    node.outputs = [ctx.fresh(f"{node.name}_float32")]
    return [node, NodeDef("Cast", node.outputs[:], [result], {"to": _BFLOAT16}, f"{node.name}/Cast")]


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")

# Operator: (first opset that does not need the adapter, adapter), applied in this order.
ADAPTERS: dict[str, tuple[tuple[int, Adapter], ...]] = {
    **dict.fromkeys(old.BINARY, ((7, old.aligned_at_axis),)),
    "BatchNormalization": ((7, old.drop("is_test")), (9, _batch_norm_spatial), (_EVERY_OPSET, training.batch_norm)),
    "Cast": ((6, old.cast),),
    "Clip": ((11, _clip),),
    "Concat": ((4, old.concat),),
    "ConstantOfShape": ((_EVERY_OPSET, _constant_of_shape),),
    "ConvInteger": ((_EVERY_OPSET, quantized.conv_integer),),
    "DFT": ((20, _dft),),
    "Dropout": (
        (7, old.drop("is_test")),
        (_EVERY_OPSET, training.dropout),
    ),
    "Einsum": ((_EVERY_OPSET, einsum),),
    "GRU": ((7, old.drop("output_sequence")), (_EVERY_OPSET, batch_first)),
    "Gemm": ((7, old.drop("broadcast")),),
    "GlobalLpPool": ((_EVERY_OPSET, simple.global_lp_pool),),
    "GridSample": ((20, _grid_sample),),
    "GroupNormalization": ((21, _group_norm), (_EVERY_OPSET, simple.group_norm)),
    "Hardmax": ((13, _flattening), (_EVERY_OPSET, simple.hardmax)),
    "LRN": ((_EVERY_OPSET, simple.local_response_norm),),
    "LSTM": ((7, old.drop("output_sequence")), (_EVERY_OPSET, batch_first)),
    "Loop": ((_EVERY_OPSET, loop),),
    "LpNormalization": ((_EVERY_OPSET, simple.lp_normalization),),
    "LpPool": ((_EVERY_OPSET, simple.lp_pool),),
    "LogSoftmax": ((13, _flattening),),
    "OptionalGetElement": ((_EVERY_OPSET, sequence.get_element),),
    "OptionalHasElement": ((_EVERY_OPSET, sequence.has_element),),
    "PRelu": ((7, old.channel_slope),),
    "Pad": ((2, old.pad), (11, _pad)),
    "QLinearConv": ((_EVERY_OPSET, quantized.q_linear_conv),),
    "QLinearMatMul": ((_EVERY_OPSET, quantized.q_linear_matmul),),
    "RNN": ((7, old.drop("output_sequence")), (_EVERY_OPSET, batch_first)),
    "Bernoulli": ((_EVERY_OPSET, random.bernoulli),),
    "Multinomial": ((_EVERY_OPSET, random.multinomial),),
    **dict.fromkeys(("RandomNormal", "RandomUniform"), ((_EVERY_OPSET, random.random),)),
    **dict.fromkeys(("RandomNormalLike", "RandomUniformLike"), ((_EVERY_OPSET, random.random_like),)),
    "Range": ((_EVERY_OPSET, simple.half_range),),
    "ReduceSum": ((13, _ints_to_input("axes", 1)),),
    "Reshape": ((5, old.reshape),),
    "Resize": ((11, resize_10), (13, resize_11), (_EVERY_OPSET, resize_empty_inputs)),
    "RoiAlign": ((16, _roi_align),),
    "Scan": ((9, scan_8), (_EVERY_OPSET, scan)),
    "Scatter": ((_EVERY_OPSET, _scatter),),
    "Selu": ((6, old.selu),),
    "ConcatFromSequence": ((_EVERY_OPSET, sequence.concat),),
    "SequenceAt": ((_EVERY_OPSET, sequence.at),),
    "SequenceConstruct": ((_EVERY_OPSET, sequence.construct),),
    "SequenceEmpty": ((_EVERY_OPSET, sequence.empty),),
    "SequenceErase": ((_EVERY_OPSET, sequence.erase),),
    "SequenceInsert": ((_EVERY_OPSET, sequence.insert),),
    "SequenceLength": ((_EVERY_OPSET, sequence.length),),
    "SplitToSequence": ((_EVERY_OPSET, sequence.split),),
    "Shrink": ((_EVERY_OPSET, simple.shrink),),
    "SimplifiedLayerNormalization": ((_EVERY_OPSET, microsoft.simplified_layer_norm),),
    "Slice": ((10, _slice),),
    "Softmax": ((13, _flattening),),
    "SpaceToDepth": ((_EVERY_OPSET, simple.space_to_depth),),
    "Split": ((2, old.split), (13, _ints_to_input("split", 1)), (18, _split_count)),
    "Squeeze": ((13, _ints_to_input("axes", 1)),),
    "Tile": ((6, old.tile),),
    "TopK": ((10, _top_k),),
    "Unsqueeze": ((13, _ints_to_input("axes", 1)),),
    "Upsample": (
        (7, old.upsample),
        (_EVERY_OPSET, upsample),
    ),
    **{f"Reduce{name}": ((18, _ints_to_input("axes", 1)),) for name in _REDUCTIONS},
    "com.microsoft::Attention": ((_EVERY_OPSET, attention.attention),),
    "com.microsoft::BiasGelu": ((_EVERY_OPSET, microsoft.gelu),),
    "com.microsoft::DequantizeLinear": ((_EVERY_OPSET, quantized.renamed("DequantizeLinear")),),
    "com.microsoft::DynamicQuantizeLSTM": ((_EVERY_OPSET, quantized.dynamic_quantize_lstm),),
    "com.microsoft::DynamicQuantizeMatMul": ((_EVERY_OPSET, quantized.dynamic_quantize_matmul),),
    "com.microsoft::EmbedLayerNormalization": ((_EVERY_OPSET, microsoft.embed_layer_norm),),
    "com.microsoft::FastGelu": ((_EVERY_OPSET, microsoft.gelu),),
    "com.microsoft::FusedConv": ((_EVERY_OPSET, microsoft.fused_conv),),
    "com.microsoft::FusedGemm": ((_EVERY_OPSET, microsoft.fused_gemm),),
    "com.microsoft::FusedMatMul": ((_EVERY_OPSET, microsoft.fused_matmul),),
    "com.microsoft::GatherBlockQuantized": ((_EVERY_OPSET, nbits.gather_block_quantized),),
    "com.microsoft::Gelu": ((_EVERY_OPSET, microsoft.gelu),),
    "com.microsoft::GroupQueryAttention": ((_EVERY_OPSET, attention.group_query_attention),),
    "com.microsoft::MatMulIntegerToFloat": ((_EVERY_OPSET, quantized.matmul_integer_to_float),),
    "com.microsoft::MatMulNBits": ((_EVERY_OPSET, nbits.matmul_nbits),),
    "com.microsoft::MultiHeadAttention": ((_EVERY_OPSET, attention.multi_head_attention),),
    "com.microsoft::QAttention": ((_EVERY_OPSET, attention.q_attention),),
    "com.microsoft::QEmbedLayerNormalization": ((_EVERY_OPSET, microsoft.q_embed_layer_norm),),
    "com.microsoft::QGemm": ((_EVERY_OPSET, quantized.q_gemm),),
    "com.microsoft::QLinearAdd": ((_EVERY_OPSET, quantized.q_linear("Add", 2)),),
    "com.microsoft::QLinearAveragePool": ((_EVERY_OPSET, quantized.q_linear_pool("AveragePool")),),
    "com.microsoft::QLinearConcat": ((_EVERY_OPSET, quantized.q_linear_concat),),
    "com.microsoft::QLinearGlobalAveragePool": ((_EVERY_OPSET, quantized.q_linear_pool("GlobalAveragePool")),),
    "com.microsoft::QLinearLeakyRelu": ((_EVERY_OPSET, quantized.q_linear("LeakyRelu", 1)),),
    "com.microsoft::QLinearMul": ((_EVERY_OPSET, quantized.q_linear("Mul", 2)),),
    "com.microsoft::QLinearReduceMean": ((_EVERY_OPSET, quantized.q_linear_reduce_mean),),
    "com.microsoft::QLinearSigmoid": ((_EVERY_OPSET, quantized.q_linear("Sigmoid", 1)),),
    "com.microsoft::QLinearSoftmax": ((_EVERY_OPSET, quantized.q_linear_softmax),),
    "com.microsoft::QLinearWhere": ((_EVERY_OPSET, quantized.q_linear_where),),
    "com.microsoft::QuantizeLinear": ((_EVERY_OPSET, quantized.renamed("QuantizeLinear")),),
    "com.microsoft::QuickGelu": ((_EVERY_OPSET, microsoft.quick_gelu),),
    "com.microsoft::RotaryEmbedding": ((_EVERY_OPSET, rotary_embedding),),
    "com.microsoft::SimplifiedLayerNormalization": ((_EVERY_OPSET, microsoft.simplified_layer_norm),),
    "com.microsoft::SkipLayerNormalization": ((_EVERY_OPSET, microsoft.skip_layer_norm),),
    "com.microsoft::SkipSimplifiedLayerNormalization": ((_EVERY_OPSET, microsoft.skip_layer_norm),),
}
