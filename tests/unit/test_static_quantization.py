"""Networks that onnxruntime's quantize_static writes, in both formats: right, and on products of bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
quantization = pytest.importorskip("onnxruntime.quantization", reason="its quantizer writes the networks")
ort.set_default_logger_severity(4)

RNG = np.random.default_rng(3)
PRODUCTS = {"QuantizedConv", "QuantizedMatMul"}
FLOAT_PRODUCTS = {"Conv", "MatMul", "Gemm"}


class Network:
    """A graph of float32 operators that grows node by node."""

    def __init__(self, shape: list[Any], dtype: int = T.FLOAT) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.input = h.make_tensor_value_info("x", dtype, shape)

    def weight(self, *shape: int) -> str:
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        return self.constant((RNG.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32))

    def constant(self, value: Any) -> str:
        self.weights.append(nh.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(h.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def save(self, result: str, path: Path) -> None:
        graph = h.make_graph(self.nodes, "g", [self.input], [h.make_tensor_value_info(result, T.FLOAT, None)])
        graph.initializer.extend(self.weights)
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def save_convolutions(path: Path) -> None:
    n = Network(["n", 3, 16, 16])
    x = n.node("Conv", "x", n.weight(8, 3, 3, 3), n.weight(8), pads=[1] * 4, strides=[2, 2])
    x = n.node("LeakyRelu", n.node("Conv", n.node("Relu", x), n.weight(8, 1, 3, 3), group=8, pads=[1] * 4))
    y = n.node("Conv", x, n.weight(12, 8, 1, 1), n.weight(12))
    x = n.node("Clip", n.node("Conv", y, n.weight(12, 12, 3, 3), pads=[1] * 4), n.constant(np.float32(0)))
    x = n.node("Add", n.node("Mul", x, n.node("Sigmoid", y)), y)
    x = n.node("AveragePool", n.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), kernel_shape=[2, 2])
    x = n.node("GlobalAveragePool", n.node("Concat", x, n.node("Relu", x), axis=1))
    n.save(n.node("Gemm", n.node("Flatten", x), n.weight(5, 24), n.weight(5), transB=1), path)


def save_transformer(path: Path, width: int = 16, heads: int = 2) -> None:
    n = Network(["n", 6], T.INT64)
    x = n.node("Gather", n.constant(RNG.standard_normal((20, width)).astype(np.float32)), "x")

    def linear(value: str, columns: int = width, rows: int = width) -> str:
        return n.node("Add", n.node("MatMul", value, n.weight(rows, columns)), n.weight(columns))

    def norm(value: str) -> str:
        return n.node("LayerNormalization", value, n.constant(np.ones(width, np.float32)), n.weight(width))

    shape = n.constant(np.array([0, 0, heads, width // heads]))
    parts = [n.node("Reshape", linear(x), shape) for _ in range(3)]
    perms = [0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]
    q, k, v = (n.node("Transpose", part, perm=perm) for part, perm in zip(parts, perms, strict=True))
    scores = n.node("Softmax", n.node("Mul", n.node("MatMul", q, k), n.constant(np.float32(0.35))), axis=-1)
    mixed = n.node("Transpose", n.node("MatMul", scores, v), perm=[0, 2, 1, 3])
    x = norm(n.node("Add", x, linear(n.node("Reshape", mixed, n.constant(np.array([0, 0, width]))))))
    inner = linear(x, 4 * width)
    inner = n.node("Mul", inner, n.node("Sigmoid", inner))
    n.save(norm(n.node("Add", x, linear(inner, width, 4 * width))), path)


def feed(kind: str, batch: int = 8) -> np.ndarray:
    if kind == "transformer":
        return RNG.integers(0, 20, (batch, 6))
    return RNG.standard_normal((batch, 3, 16, 16)).astype(np.float32)


class Feeds(quantization.CalibrationDataReader):  # type: ignore[misc]
    """What the quantizer measures ranges with."""

    def __init__(self, kind: str) -> None:
        self.left = [{"x": feed(kind)} for _ in range(4)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.left.pop() if self.left else None


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("networks")
    save_convolutions(folder / "convolutions.onnx")
    save_transformer(folder / "transformer.onnx")
    return folder


@pytest.mark.parametrize("kind", ["convolutions", "transformer"])
@pytest.mark.parametrize("layout", ["QDQ", "QOperator"])
@pytest.mark.parametrize("types", ["u8s8", "s8s8", "u8u8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_networks_are_right_and_multiply_bytes(
    networks: Path, kind: str, layout: str, types: str, per_channel: bool
) -> None:
    names = {"u8": quantization.QuantType.QUInt8, "s8": quantization.QuantType.QInt8}
    path = networks / f"{kind}_{layout}_{types}_{per_channel}.onnx"
    quantization.quantize_static(
        networks / f"{kind}.onnx",
        path,
        Feeds(kind),
        quant_format=quantization.QuantFormat[layout],
        per_channel=per_channel,
        activation_type=names[types[:2]],
        weight_type=names[types[2:]],
    )
    x = feed(kind)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    wanted = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    exact = ort.InferenceSession(str(networks / f"{kind}.onnx")).run(None, {"x": x})[0]
    for mode in ("host", "sink"):
        exe = asc.compile(path, mode=mode, threads=1)
        got = exe(x)
        # Averages of bytes are often ties, which may round the other way: less than quantisation itself changes.
        lost = np.abs(wanted - exact).mean()
        assert np.abs(got - wanted).mean() <= 0.6 * lost
        assert np.abs(got - exact).mean() <= 1.2 * lost
        tasks = {line.strip().split(" ")[0] for line in exe.explain().splitlines() if "': task" in line}
        assert tasks & PRODUCTS
        assert not tasks & FLOAT_PRODUCTS
