"""The long tail: operators that the reference implementation in the onnx package computes, on the host.

They are slow and end a segment, and are for models that hold a few of them off the hot path. Operators that the
reference is known to get wrong are not among them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched import host_calls
from ascendsched.errors import UnsupportedError
from ascendsched.frontends.node import AdapterContext, NodeDef
from ascendsched.frontends.onnx_tensors import TEXT
from ascendsched.packed import STRING, unpack

if TYPE_CHECKING:
    import onnx
    from onnx.reference import ReferenceEvaluator

NAME = "onnx.reference"
OPERATORS = frozenset(
    {
        "Col2Im",
        "DeformConv",
        "Det",
        "MaxUnpool",
        "MelWeightMatrix",
        "RoiAlign",
        "TensorScatter",
        "TfIdfVectorizer",
        "Unique",
        "ai.onnx.ml::ArrayFeatureExtractor",
        "ai.onnx.ml::Binarizer",
        "ai.onnx.ml::Normalizer",
        "ai.onnx.ml::Scaler",
        "ai.onnx.ml::TreeEnsemble",
    }
)
_UNKNOWN_TYPE = 1  # of results that nobody reads


def host_call(proto: onnx.NodeProto, op: str, name: str, ctx: AdapterContext, domains: dict[str, int]) -> NodeDef:
    """Return the node that calls the reference for one of ``OPERATORS``.

    Raises
    ------
    UnsupportedError
        Where the model does not tell the element type of a result.
    """
    import onnx

    types = []
    for output in proto.output:
        dtype = ctx.type_of(output).dtype if output else None
        if output and dtype is None:
            raise UnsupportedError(
                f"[onnx] node '{name}' ({op}): the element type of '{output}' is not known; declare it in the model"
            )
        if dtype == STRING:
            raise UnsupportedError(f"[onnx] node '{name}' ({op}): gives strings, which is not supported there")
        types.append(_number(dtype) if dtype else _UNKNOWN_TYPE)
    kinds = {value: ctx.kind(value) for value in proto.input if value}
    if any(kind not in (None, STRING) for kind in kinds.values()):
        raise UnsupportedError(f"[onnx] node '{name}' ({op}): reads a sequence or an optional; it takes tensors")
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    graph = onnx.GraphProto(name=name)
    graph.node.append(copy)
    for value, kind in kinds.items():
        graph.input.add(name=value).type.tensor_type.elem_type = TEXT if kind else onnx.TensorProto.UNDEFINED
    for value, elem_type in zip(proto.output, types, strict=True):
        if value:
            graph.output.append(onnx.helper.make_tensor_value_info(value, elem_type, None))
    model = onnx.ModelProto(ir_version=10, graph=graph)
    for domain, version in domains.items():
        model.opset_import.append(onnx.helper.make_opsetid(domain, version))
    attributes = {
        "callable": NAME,
        "operator": op,
        "payload": base64.b64encode(model.SerializeToString(deterministic=True)).decode("ascii"),
        "output_types": types,
    }
    return NodeDef("HostCall", list(proto.input), list(proto.output), attributes, name)


def _number(dtype: str) -> int:
    import onnx

    if dtype == "bfloat16":
        return int(onnx.TensorProto.BFLOAT16)
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@lru_cache(maxsize=256)
def _evaluator(payload: str) -> tuple[ReferenceEvaluator, list[str], list[str], dict[str, Any], set[str]]:
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.ModelProto()
    model.ParseFromString(base64.b64decode(payload))
    node = model.graph.node[0]
    to_dtype = onnx.helper.tensor_dtype_to_np_dtype
    types = {info.name: to_dtype(info.type.tensor_type.elem_type) for info in model.graph.output}
    texts = {info.name for info in model.graph.input if info.type.tensor_type.elem_type == TEXT}
    return ReferenceEvaluator(model), list(node.input), list(node.output), types, texts


def _compute(payload: str, inputs: Sequence[Any]) -> list[Any]:
    evaluator, names, outputs, types, texts = _evaluator(payload)
    feeds = {
        name: unpack(value) if name in texts else value for name, value in zip(names, inputs, strict=False) if name
    }
    with np.errstate(all="ignore"):
        results: Any = evaluator.run(None, feeds)
    by_name = dict(zip(evaluator.output_names, results, strict=True))
    # The reference computes bfloat16 in float32.
    return [np.asarray(by_name[name]).astype(types[name], copy=False) if name else None for name in outputs]


host_calls.register(NAME, _compute)
