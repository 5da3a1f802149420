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
        "ai.onnx.ml::Imputer",
        "ai.onnx.ml::LinearClassifier",
        "ai.onnx.ml::LinearRegressor",
        "ai.onnx.ml::Normalizer",
        "ai.onnx.ml::OneHotEncoder",
        "ai.onnx.ml::SVMRegressor",
        "ai.onnx.ml::Scaler",
        "ai.onnx.ml::TreeEnsemble",
        "ai.onnx.ml::TreeEnsembleRegressor",
    }
)
_UNKNOWN_TYPE = 1  # of results that nobody reads
_ML_FLOATS = frozenset(  # whose results are float32 whatever they read; shape inference knows none of the domain
    {
        "LinearRegressor",
        "Normalizer",
        "OneHotEncoder",
        "SVMRegressor",
        "Scaler",
        "TreeEnsembleRegressor",
    }
)
_ML_LIKE_INPUT = frozenset({"ArrayFeatureExtractor", "Binarizer", "Imputer"})
# Attributes with which the reference computes something else than the specification says; None: by default, too.
_KNOWN_ERRORS: dict[str, tuple[str, frozenset[bytes | int | None]]] = {
    "Normalizer": ("norm", frozenset({None, b"MAX"})),  # takes the largest magnitude
    "TreeEnsemble": ("aggregate_function", frozenset({2, 3})),  # of what a leaf lacks it takes 0
    "TreeEnsembleRegressor": ("aggregate_function", frozenset({b"MIN", b"MAX"})),
}


def host_call(proto: onnx.NodeProto, op: str, name: str, ctx: AdapterContext, domains: dict[str, int]) -> NodeDef:
    """Return the node that calls the reference for one of ``OPERATORS``.

    Raises
    ------
    UnsupportedError
        Where the model does not tell the element type of a result, or asks for what the reference gets wrong.
    """
    import onnx

    _check_known_errors(proto, op, name)
    types = []
    for i, output in enumerate(proto.output):
        dtype = (ctx.type_of(output).dtype or _ml_type(proto, i, ctx)) if output else None
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


def _check_known_errors(proto: onnx.NodeProto, op: str, name: str) -> None:
    if proto.domain != "ai.onnx.ml" or proto.op_type not in _KNOWN_ERRORS:
        return
    attribute, values = _KNOWN_ERRORS[proto.op_type]
    given = [a.s or a.i for a in proto.attribute if a.name == attribute]
    value = given[0] if given else None
    if value in values:
        shown = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        raise UnsupportedError(
            f"[onnx] node '{name}' ({op}): {attribute} {shown or 'by default'} is not supported; "
            "keep onnxruntime for it"
        )


def _ml_type(proto: onnx.NodeProto, output: int, ctx: AdapterContext) -> str | None:
    if proto.domain != "ai.onnx.ml":
        return None
    if proto.op_type in _ML_FLOATS:
        return "float32"
    if proto.op_type in _ML_LIKE_INPUT:
        return ctx.type_of(proto.input[0]).dtype
    if proto.op_type == "LinearClassifier":
        has_names = any(a.strings for a in proto.attribute if a.name in ("classlabels_strings", "classlabels_ints"))
        return "float32" if output else STRING if has_names else "int64"
    return None


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
