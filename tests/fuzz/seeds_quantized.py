"""Seeds for products of integers and of bfloat16, and for quantised operators of ``com.microsoft``."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

from tests.fuzz.seeds import BYTES, IMAGE, MASK, F, X, single
from tests.unit import onnx_models

U8 = np.uint8
KERNEL = np.arange(-27, 27, dtype=np.int8).reshape(2, 3, 3, 3)
SCALE, ZERO = F(0.1), np.int8(2)
CODES = np.arange(32, dtype=U8).reshape(4, 1, 8)
BLOCKS = {"K": 3, "N": 4, "bits": 4, "block_size": 16}


def foreign(op: str, inputs: list[Any], outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    """One node of the other domain."""
    return single(op, inputs, outputs=outputs, domain="com.microsoft", **attributes)


def _dynamic(op: str, data: np.ndarray, weights: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> onnx.ModelProto:
    """What onnxruntime's quantize_dynamic makes of a product."""
    node = h.make_node
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node(op, ["q", "w", "z", "wz"], ["i"], name="product"),
        node("Cast", ["i"], ["r"], to=T.FLOAT),
        node("Mul", ["s", "ws"], ["scale"]),
        node("Mul", ["r", "scale"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Relu", ["a"], ["y"]),
    ]
    constants = {"w": weights, "wz": np.zeros((), weights.dtype), "ws": scale, "b": bias}
    inputs = [onnx_models.info("x", shape=["n", *data.shape[1:]])]
    return onnx_models.model(nodes, inputs, [onnx_models.info("y")], constants)


def _bfloat16() -> list[onnx.ModelProto]:
    half, kernel = ml_dtypes.bfloat16, np.ones((2, 3, 3, 3))
    return [
        single("MatMul", [X.astype(half), np.ones((4, 70), half)]),
        single("Gemm", [X[0].astype(half), np.ones((70, 4), half), np.ones(70, half)], transB=1),
        single("Conv", [IMAGE.astype(half), kernel.astype(half), np.ones(2, half)], pads=[1, 1, 1, 1]),
    ]


def quantized_models() -> list[onnx.ModelProto]:
    """Return the seeds; the first operand of each is an input."""
    ids = np.int32([[0, 1, 3]])
    return [
        single("ConvInteger", [(IMAGE * 100).astype(np.int8), KERNEL, ZERO, np.int8([1, 0])], pads=[1, 0, 1, 0]),
        _dynamic("ConvInteger", IMAGE, KERNEL, F([[[0.1]], [[0.2]]]), F([[[[1]], [[2]]]])),
        _dynamic("MatMulInteger", X, BYTES[:, :4].T.view(U8), F([0.1, 0.2]), F([1, 2])),
        single("QLinearMatMul", [BYTES, SCALE, ZERO, BYTES.T, SCALE, ZERO, SCALE, ZERO]),
        foreign("QGemm", [BYTES, SCALE, ZERO, BYTES, SCALE, ZERO, np.int32([3, 4]), SCALE, ZERO], transB=1),
        foreign("QLinearAdd", [BYTES, SCALE, ZERO, BYTES[:1], SCALE, ZERO, SCALE, ZERO]),
        foreign("QLinearConcat", [SCALE, ZERO, BYTES, SCALE, ZERO, BYTES, SCALE, ZERO], axis=1),
        foreign("QLinearSoftmax", [BYTES, SCALE, ZERO, SCALE, ZERO], opset=13, axis=-1),
        foreign("QLinearReduceMean", [BYTES, SCALE, ZERO, SCALE, ZERO], axes=[1], keepdims=1),
        foreign("QLinearWhere", [MASK[0, :2, :2], BYTES[:, :2], SCALE, ZERO, BYTES[:, 2:4], SCALE, ZERO, SCALE, ZERO]),
        foreign("QuantizeLinear", [X, SCALE, np.uint16(7)]),
        foreign("DequantizeLinear", [BYTES, F([0.1, 0.2]), np.int8([1, 2])], axis=0),
        foreign("MatMulNBits", [X[..., :3], CODES, F(np.ones(4)), None, None, F(np.ones(4))], **BLOCKS),
        foreign("MatMulNBits", [X[..., :3], CODES, F(np.ones(4)), CODES[:, 0, 0]], **BLOCKS, accuracy_level=4),
        foreign("GatherBlockQuantized", [CODES[:, 0], ids, F(np.ones((4, 1)))], bits=4, block_size=16),
        foreign(
            "QAttention",
            [BYTES.reshape(1, 3, 4), KERNEL.reshape(-1)[:48].reshape(4, 12), F(np.ones(12)), SCALE, SCALE, None, ZERO],
            num_heads=2,
        ),
        foreign(
            "QEmbedLayerNormalization",
            [ids, ids, *[BYTES.reshape(4, 3)] * 3, *[BYTES[0, :3]] * 2, ids, *[SCALE] * 5, *[ZERO] * 5],
            outputs=2,
        ),
        *_bfloat16(),
    ]
