"""Saved files hold the nodes that only plans have: same plan, same bits, no larger, and nothing that is believed."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

from .saved_files import HEADER_BYTES, SIZES, same, seal

RNG = np.random.default_rng(8)
pytestmark = pytest.mark.sanitize
OWN = {
    "images": {"ConvLast", "PoolLast"},
    "bytes": {"QuantizedConv", "QuantizedMatMul", "BytePool"},
    "integers": {"QuantizedMatMul"},
    "halves": {"MatMulBFloat16"},
}


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


class Net:
    """A model that grows node by node."""

    def __init__(self, dtype: int, shape: list[Any]) -> None:
        self.input = h.make_tensor_value_info("x", dtype, shape)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: Any) -> str:
        self.constants.append(nh.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return str(self.constants[-1].name)

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(h.make_node(op, inputs, [f"v{len(self.nodes)}"], name=f"n{len(self.nodes)}", **attributes))
        return str(self.nodes[-1].output[0])

    def rounded(self, x: str, scale: float = 0.05, zero: int = 120) -> str:
        steps = (self.constant(np.float32(scale)), self.constant(np.uint8(zero)))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *steps), *steps)

    def weights(self, *shape: int, zero: int = 100) -> str:
        """Unsigned bytes with a zero point, as quantizers write them: signed ones without take their place."""
        values = self.constant(RNG.integers(0, 200, shape).astype(np.uint8))
        return self.node("DequantizeLinear", values, self.constant(np.float32(0.01)), self.constant(np.uint8(zero)))

    def model(self, result: str) -> onnx.ModelProto:
        graph = h.make_graph(self.nodes, "g", [self.input], [h.make_empty_tensor_value_info(result)], self.constants)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)


def images() -> onnx.ModelProto:
    n = Net(T.FLOAT, ["n", 3, "h", "w"])
    x = n.node("Relu", n.node("Conv", "x", n.constant(some(8, 3, 3, 3)), n.constant(some(8)), pads=[1] * 4))
    x = n.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = n.node("Conv", x, n.constant(some(8, 1, 3, 3)), group=8, pads=[1] * 4)
    return n.model(n.node("GlobalAveragePool", n.node("Add", x, y)))


def of_bytes() -> onnx.ModelProto:
    n = Net(T.FLOAT, ["n", 3, 8, 8])
    x = n.node("Relu", n.node("Conv", n.rounded("x"), n.weights(8, 3, 3, 3), n.constant(some(8)), pads=[1] * 4))
    x = n.rounded(n.node("MaxPool", n.rounded(x), kernel_shape=[2, 2], strides=[2, 2]))
    x = n.rounded(n.node("GlobalAveragePool", x))
    x = n.node("Gemm", n.rounded(n.node("Flatten", x)), n.weights(5, 8), n.constant(some(5)), transB=1)
    return n.model(n.rounded(x))


def of_integers() -> onnx.ModelProto:
    n = Net(T.FLOAT, ["n", 16])
    n.nodes.append(h.make_node("DynamicQuantizeLinear", ["x"], ["bytes", "scale", "zero"], name="rounding"))
    w = n.constant(RNG.integers(0, 200, (16, 4)).astype(np.uint8))
    product = n.node("MatMulInteger", "bytes", w, "zero", n.constant(np.uint8(100)))
    factor = n.node("Mul", "scale", n.constant(np.float32(0.01)))
    return n.model(n.node("Mul", n.node("Cast", product, to=T.FLOAT), factor))


def of_halves() -> onnx.ModelProto:
    n = Net(T.BFLOAT16, ["n", 16])
    w = n.constant(some(16, 4).astype(ml_dtypes.bfloat16))
    return n.model(n.node("Relu", n.node("MatMul", "x", w)))


MODELS = {"images": images, "bytes": of_bytes, "integers": of_integers, "halves": of_halves}
SHAPES = {"images": (2, 3, 8, 8), "bytes": (2, 3, 8, 8), "integers": (2, 16), "halves": (2, 16)}


def feeds_of(kind: str) -> dict[str, Any]:
    x = some(*SHAPES[kind])
    return {"x": x.astype(ml_dtypes.bfloat16) if kind == "halves" else x}


def plan_of(exe: asc.Executable) -> str:
    """The text without the numbers of nodes."""
    return re.sub(r"^(\s*)\d+ ", r"\1", exe.plan.text(), flags=re.MULTILINE)


@pytest.fixture(params=sorted(MODELS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_loaded_plan_is_the_saved_one(kind: str, tmp_path: Path) -> None:
    exe = asc.compile(MODELS[kind](), threads=1)
    found = {op for op in OWN[kind] if f"{op} '" in exe.plan.text() or f"{op} '" in exe.explain()}
    if kind != "images" or "onednn:last" in exe.explain():
        assert found
    feeds = feeds_of(kind)
    wanted = exe.run(feeds)
    sizes = []
    for _ in range(3):
        exe.save(tmp_path / "m.asc")
        again = asc.load(tmp_path / "m.asc", threads=1)
        assert plan_of(again) == plan_of(exe)
        assert same(again.run(feeds), wanted)
        assert again.explain().count("one of") == exe.explain().count("one of")
        sizes.append(SIZES.unpack_from((tmp_path / "m.asc").read_bytes(), 16))
        exe = again
    assert sizes[1][0] == sizes[2][0]
    assert sizes[0][2] == sizes[1][2] == sizes[2][2]


def test_other_options_and_devices_compile_what_the_nodes_stand_for(kind: str, tmp_path: Path) -> None:
    exe = asc.compile(MODELS[kind](), threads=1)
    exe.save(tmp_path / "m.asc")
    feeds = feeds_of(kind)
    plain = asc.load(tmp_path / "m.asc", threads=1, options=asc.Options(fuse=False))
    assert not any(f"task {op}" in plain.plan.text() for op in OWN[kind] - {"QuantizedConv"})
    got, wanted = (np.asarray(e.run(feeds)[e.outputs[0].name]).astype(np.float32) for e in (plain, exe))
    np.testing.assert_allclose(got, wanted, rtol=0.02, atol=0.1)
    for device in ("null", "sim"):
        asc.load(tmp_path / "m.asc", threads=1, device=device).run(feeds)
    plain.save(tmp_path / "plain.asc")
    assert plan_of(asc.load(tmp_path / "plain.asc", options=asc.Options())) != ""


def test_weights_are_saved_once(kind: str, tmp_path: Path) -> None:
    """In the form in which nodes read them; not also in that of the model."""
    model = MODELS[kind]()
    asc.compile(model, threads=1).save(tmp_path / "m.asc")
    data = SIZES.unpack_from((tmp_path / "m.asc").read_bytes(), 16)[2]
    assert data <= sum(nh.to_array(tensor).nbytes + 64 for tensor in model.graph.initializer) + 64 * 8


@pytest.mark.parametrize("op", sorted(set().union(*OWN.values()) | {"Fused"}))
@pytest.mark.parametrize("domain", ["", "ascendsched", "asc"])
def test_models_cannot_name_such_operators(op: str, domain: str) -> None:
    node = h.make_node(op, ["x"], ["y"], domain=domain)
    x = h.make_tensor_value_info("x", T.FLOAT, [1, 2, 2, 2])
    graph = h.make_graph([node], "g", [x], [h.make_empty_tensor_value_info("y")])
    imports = [h.make_opsetid("", 21), h.make_opsetid(domain, 1)] if domain else [h.make_opsetid("", 21)]
    with pytest.raises(asc.UnsupportedError, match=op):
        asc.compile(h.make_model(graph, opset_imports=imports, ir_version=10))
    g = asc.Graph()
    g.output(g.op(op, g.input("x", "float32", (1, 2, 2, 2))), "y")
    with pytest.raises(asc.UnsupportedError, match=op):
        asc.compile(g)


def test_forged_nodes_end_in_an_error_or_a_result(kind: str, tmp_path: Path) -> None:
    """Correct checksums over wrong bytes: values, types, counts and names of nodes, whatever their operator."""
    exe = asc.compile(MODELS[kind](), threads=1)
    exe.save(tmp_path / "m.asc")
    good = (tmp_path / "m.asc").read_bytes()
    size = SIZES.unpack_from(good, 16)[0]
    feeds = feeds_of(kind)
    rng = np.random.default_rng(21)
    options = asc.Options(memory_limit_bytes=64 << 20)  # pads may have become a million times as large
    for _ in range(1200):
        forged = bytearray(good)
        # What is behind the nodes' parts says what stands for them.
        at = HEADER_BYTES + int(rng.integers(size * 3 // 4, size) if rng.random() < 0.7 else rng.integers(size))
        old = forged[at]
        forged[at] = int(rng.choice([0, 1, 2, 3, 255, old ^ 1, (old + 1) % 256, (old - 1) % 256, rng.integers(256)]))
        seal(forged)
        (tmp_path / "m.asc").write_bytes(forged)
        with contextlib.suppress(asc.AscendSchedError):
            asc.load(tmp_path / "m.asc", warm=False, options=options).run(feeds)
