"""A decoder with weights of 4 bits, as exporters of language models write it: steps with a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)

WIDTH, HEADS, SHARED, INNER, VOCABULARY, BLOCK, LAYERS = 64, 4, 2, 96, 50, 32, 2
HEAD = WIDTH // HEADS


class Decoder:
    """Embedding, layers of grouped attention and a gated network, logits."""

    def __init__(self, dtype: Any) -> None:
        self.rng = np.random.default_rng(4)
        self.dtype = dtype
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.past: list[str] = []
        self.present: list[str] = []

    def constant(self, name: str, value: Any) -> str:
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> str:
        self.nodes.append(h.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def product(self, x: str, k: int, n: int, name: str) -> str:
        blocks = -(-k // BLOCK)
        codes = self.rng.integers(0, 256, (n, blocks, BLOCK // 2), dtype=np.uint8)
        scales = ((self.rng.random(n * blocks) + 0.5) / (8 * np.sqrt(k))).astype(self.dtype)
        zeros = self.rng.integers(0, 256, n * ((blocks + 1) // 2), dtype=np.uint8)
        operands = [codes, scales, zeros] if name.endswith("down") else [codes, scales]
        names = [self.constant(f"{name}.{i}", value) for i, value in enumerate(operands)]
        options = {"K": k, "N": n, "bits": 4, "block_size": BLOCK, "accuracy_level": 0}
        return self.node("MatMulNBits", [x, *names], [name], "com.microsoft", **options)

    def gain(self, name: str) -> str:
        return self.constant(name, (1 + 0.1 * self.rng.standard_normal(WIDTH)).astype(self.dtype))

    def layer(self, i: int, normal: str, residual: str) -> tuple[str, str]:
        p = f"layer{i}."
        sizes = {"q": WIDTH, "k": SHARED * HEAD, "v": SHARED * HEAD}
        q, k, v = (self.product(normal, WIDTH, n, p + name) for name, n in sizes.items())
        past, present = [p + "past_k", p + "past_v"], [p + "present_k", p + "present_v"]
        self.past += past
        self.present += present
        operands = [q, k, v, *past, "lengths", "total", "cos", "sin"]
        heads = {"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": 1}
        mixed = self.node("GroupQueryAttention", operands, [p + "mixed", *present], "com.microsoft", **heads)
        o = self.product(mixed, WIDTH, WIDTH, p + "o")
        norm = "SkipSimplifiedLayerNormalization"
        x = [residual, o, self.gain(p + "gain1")]
        self.node(norm, x, [p + "n1", "", "", p + "r1"], "com.microsoft", epsilon=1e-5)
        gate, up = (self.product(p + "n1", WIDTH, INNER, p + name) for name in ("gate", "up"))
        gate = self.node("Mul", [gate, self.node("Sigmoid", [gate], [p + "sigmoid"])], [p + "silu"])
        inner = self.node("Mul", [gate, up], [p + "inner"])
        x = [p + "r1", self.product(inner, INNER, WIDTH, p + "down"), self.gain(p + "gain2")]
        self.node(norm, x, [p + "n2", "", "", p + "r2"], "com.microsoft", epsilon=1e-5)
        return p + "n2", p + "r2"

    def proto(self) -> onnx.ModelProto:
        self.constant("table", self.rng.standard_normal((VOCABULARY, WIDTH)).astype(self.dtype))
        self.node("Gather", ["table", "ids"], ["x"])
        self.node("ReduceSum", ["mask", self.constant("axis", [1])], ["sum"], keepdims=0)
        self.node("Cast", [self.node("Sub", ["sum", self.constant("one", 1)], ["last"])], ["lengths"], to=T.INT32)
        shape = self.node("Shape", ["mask"], ["shape"], start=1)
        self.node("Cast", [self.node("Squeeze", [shape], ["columns"])], ["total"], to=T.INT32)
        angles = np.arange(64)[:, None] / 10000 ** (np.arange(HEAD // 2) / (HEAD // 2))
        self.constant("cos", np.cos(angles).astype(self.dtype))
        self.constant("sin", np.sin(angles).astype(self.dtype))
        normal = self.node("SimplifiedLayerNormalization", ["x", self.gain("gain")], ["n"], axis=-1, epsilon=1e-5)
        residual = "x"
        for i in range(LAYERS):
            normal, residual = self.layer(i, normal, residual)
        self.product(normal, WIDTH, VOCABULARY, "logits")
        real = h.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        inputs = [h.make_tensor_value_info(name, T.INT64, ["b", name]) for name in ("ids", "mask")]
        inputs += [h.make_tensor_value_info(name, real, ["b", SHARED, "past", HEAD]) for name in self.past]
        outputs = [h.make_empty_tensor_value_info(name) for name in ("logits", *self.present)]
        kept = [nh.from_array(value, name) for name, value in self.constants.items()]
        graph = h.make_graph(self.nodes, "g", inputs, outputs, kept)
        opsets = [h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)]
        return h.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float16, 5e-3)])
def test_steps_agree_with_onnxruntime(mode: str, dtype: Any, tolerance: float) -> None:
    decoder = Decoder(dtype)
    model = decoder.proto()
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = asc.compile(model, mode=mode, threads=1)
    feeds = {"ids": decoder.rng.integers(0, VOCABULARY, (1, 5)), "mask": np.ones((1, 5), np.int64)}
    feeds |= {name: np.zeros((1, SHARED, 0, HEAD), dtype) for name in decoder.past}
    for step in range(4):
        wanted = session.run(None, feeds)
        for got, want in zip(exe.run(feeds).values(), wanted, strict=True):
            assert got.dtype == want.dtype
            error = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
            assert error <= tolerance * np.abs(want.astype(np.float64)).max()
        feeds = {"ids": wanted[0][:, -1:].argmax(-1), "mask": np.ones((1, 6 + step), np.int64)}
        feeds |= dict(zip(decoder.past, wanted[1:], strict=True))
    assert "MatMulNBits" in exe.explain()
