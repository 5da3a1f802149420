"""Weights in blocks of codes of few bits: against NumPy in float64 and against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)

RNG = np.random.default_rng(9)


def unpack(pairs: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The codes along the last axis, the lower half of a byte first."""
    codes = np.stack([pairs & 15, pairs >> 4], -1).reshape(*pairs.shape[:-1], -1) if bits == 4 else pairs
    return codes[..., :count].astype(np.float64)


class Weights:
    """Random weights of MatMulNBits, and what they stand for."""

    def __init__(
        self,
        k: int,
        n: int,
        bits: int = 4,
        block: int = 32,
        zeros: str = "none",
        dtype: Any = np.float32,
        rng: np.random.Generator = RNG,
    ) -> None:
        blocks = -(-k // block)
        self.attributes: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": block}
        codes = rng.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8)
        scales = ((rng.random((n, blocks)) - 0.3) / 2**bits).astype(dtype)
        self.operands: dict[str, np.ndarray] = {"B": codes, "scales": scales.reshape(-1)}
        points = np.full((n, blocks), 2.0 ** (bits - 1))
        if zeros == "codes":
            packed = rng.integers(0, 256, (n, (blocks * bits + 7) // 8), dtype=np.uint8)
            points = unpack(packed, bits, blocks)
            self.operands["zeros"] = packed.reshape(-1)
        elif zeros == "real":
            real = (rng.random((n, blocks)) * 2**bits).astype(dtype)
            points = real.astype(np.float64)
            self.operands["zeros"] = real.reshape(-1)
        real_codes = unpack(codes.reshape(n, -1), bits, blocks * block).reshape(n, blocks, block)
        weights = (real_codes - points[..., None]) * scales.astype(np.float64)[..., None]
        self.matrix = weights.reshape(n, -1)[:, :k].T
        # What rounding is judged by: a code may equal its zero point, and both are multiplied.
        self.sizes = np.repeat(np.abs(scales.astype(np.float64)) * 2**bits, block, axis=1)[:, :k].T


def model_of(
    weights: Weights, a: np.ndarray, bias: np.ndarray | None = None, inputs: tuple[str, ...] = (), **changes: Any
) -> onnx.ModelProto:
    """One MatMulNBits; operands named in ``inputs`` are no constants."""
    operands = dict(weights.operands)
    names = ["a", "B", "scales"]
    if "zeros" in operands or bias is not None:
        names.append("zeros" if "zeros" in operands else "")
    if bias is not None:
        operands["bias"] = bias
        names += ["", "bias"]
    node = h.make_node(
        "MatMulNBits", names, ["y"], name="product", domain="com.microsoft", **(weights.attributes | changes)
    )

    def info(name: str, value: np.ndarray) -> onnx.ValueInfoProto:
        return h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)

    infos = [info("a", a), *(info(name, operands[name]) for name in inputs)]
    kept = [nh.from_array(value, name) for name, value in operands.items() if name not in inputs]
    graph = h.make_graph([node], "g", infos, [h.make_empty_tensor_value_info("y")], kept)
    opsets = [h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)]
    return h.make_model(graph, opset_imports=opsets, ir_version=10)


def error_of(got: np.ndarray, a: np.ndarray, weights: Weights, bias: Any = 0) -> float:
    """The largest difference from the exact result, by the size of what was summed."""
    real = a.astype(np.float64)
    size = np.abs(real) @ weights.sizes + np.abs(bias) + 1e-30
    return float((np.abs(got - (real @ weights.matrix + bias)) / size).max(initial=0))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_products_with_codes_are_right(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k, n = draw(st.integers(1, 300)), draw(st.integers(1, 150))
    bits, block = draw(st.sampled_from([4, 8])), draw(st.sampled_from([16, 32, 64, 128, 256]))
    weights = Weights(k, n, bits, block, draw(st.sampled_from(["none", "codes", "real"])), rng=rng)
    shape = (*draw(st.lists(st.integers(0, 3), max_size=2)), draw(st.integers(1, 12)), k)
    a = rng.standard_normal(shape).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32) if draw(st.booleans()) else None
    inputs = draw(st.sampled_from([(), ("B",), ("B", "scales")]))
    model = model_of(weights, a, bias, inputs)
    feeds = {"a": a, **{name: weights.operands[name] for name in inputs}}
    got = [asc.compile(model, mode=mode, threads=1).run(feeds)["y"] for mode in ("host", "sink")]
    assert got[0].shape == (*shape[:-1], n)
    assert error_of(got[0], a, weights, 0 if bias is None else bias) <= 2e-6
    assert np.array_equal(got[0], got[1])


@pytest.mark.parametrize(("bits", "zeros"), [(4, "none"), (4, "codes"), (4, "real"), (8, "none"), (8, "codes")])
@pytest.mark.parametrize(("m", "k", "n", "block"), [(1, 256, 128, 32), (3, 100, 70, 16), (20, 512, 64, 128)])
def test_onnxruntime_agrees(bits: int, zeros: str, m: int, k: int, n: int, block: int) -> None:
    weights = Weights(k, n, bits, block, zeros)
    a, bias = RNG.standard_normal((2, m, k)).astype(np.float32), RNG.standard_normal(n).astype(np.float32)
    model = model_of(weights, a, bias, accuracy_level=4)
    plain = model_of(weights, a, bias)
    wanted = ort.InferenceSession(plain.SerializeToString()).run(None, {"a": a})[0]
    got = asc.compile(model, threads=1).run({"a": a})["y"]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("zeros", ["none", "codes", "real"])
def test_half_precision_is_computed_in_float32(zeros: str) -> None:
    weights = Weights(96, 48, zeros=zeros, dtype=np.float16)
    a = RNG.standard_normal((4, 96)).astype(np.float16)
    got = asc.compile(model_of(weights, a), threads=1).run({"a": a})["y"]
    assert got.dtype == np.float16
    wanted = a.astype(np.float64) @ weights.matrix
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 4096, 2048), (4, 2048, 1500), (300, 512, 64), (130, 700, 130)])
def test_threads_do_not_change_products_with_codes(m: int, k: int, n: int) -> None:
    weights = Weights(k, n, zeros="codes")
    a = RNG.standard_normal((m, k)).astype(np.float32)
    model = model_of(weights, a)
    results = [asc.compile(model, threads=threads).run({"a": a})["y"] for threads in (1, 2, 3)]
    assert all(np.array_equal(results[0], other) for other in results[1:])
    assert error_of(results[0], a, weights) <= 2e-6


def test_weights_are_packed_once() -> None:
    weights = Weights(512, 256)
    a = RNG.standard_normal((2, 512)).astype(np.float32)
    exe = asc.compile(model_of(weights, a), threads=1)
    exe.run({"a": a})
    assert f"packed constants {512 * 256 // 2 + 16 * 256 * 4} bytes" in exe.explain()


def test_groups_in_order_are_taken_and_others_refused() -> None:
    weights = Weights(64, 16)
    a = RNG.standard_normal((2, 64)).astype(np.float32)
    for order, is_taken in ((np.arange(64) // 32, True), (np.arange(64) % 2, False)):
        model = model_of(weights, a)
        model.graph.node[0].input.extend(["", "groups"])
        model.graph.initializer.append(nh.from_array(order.astype(np.int32), "groups"))
        if is_taken:
            assert error_of(asc.compile(model, threads=1).run({"a": a})["y"], a, weights) <= 2e-6
            continue
        with pytest.raises(asc.UnsupportedError, match=r"'product'.*g_idx"):
            asc.compile(model, threads=1)


HOSTILE = [
    {"K": 63},
    {"K": -64},
    {"K": 1 << 62, "N": 1 << 62},
    {"N": 17},
    {"N": 0},
    {"bits": 3},
    {"bits": -4},
    {"block_size": 31},
    {"block_size": 0},
    {"block_size": 1 << 62},
    {"block_size": 16},
    {"weight_prepacked": 1},
]


@pytest.mark.parametrize("changes", HOSTILE, ids=str)
def test_attributes_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    weights = Weights(64, 16)
    a = RNG.standard_normal((2, 64)).astype(np.float32)
    with pytest.raises(asc.AscendSchedError, match="'product'"):
        asc.compile(model_of(weights, a, **changes), threads=1).run({"a": a})


@pytest.mark.parametrize("name", ["B", "scales", "zeros", "bias"])
def test_operands_that_do_not_fit_are_refused(name: str) -> None:
    weights = Weights(64, 16, zeros="codes")
    a, bias = RNG.standard_normal((2, 64)).astype(np.float32), np.zeros(16, np.float32)
    if name == "bias":
        bias = bias[:-1]
    else:
        weights.operands[name] = weights.operands[name][:-1]
    with pytest.raises(asc.GraphError, match="'product'"):
        asc.compile(model_of(weights, a, bias), threads=1).run({"a": a})


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("width", "block"), [(64, 16), (96, 32), (64, 64)])
def test_rows_of_a_quantised_table(bits: int, zeros: bool, width: int, block: int) -> None:
    rows, blocks = 20, -(-width // block)
    data = RNG.integers(0, 256, (rows, width * bits // 8), dtype=np.uint8)
    operands = {"data": data, "scales": RNG.random((rows, blocks)).astype(np.float32)}
    if zeros:
        operands["zeros"] = RNG.integers(0, 256, (rows, -(-blocks * bits // 8)), dtype=np.uint8)
    names = ["data", "i", "scales", *(["zeros"] if zeros else [])]
    attributes = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    node = h.make_node("GatherBlockQuantized", names, ["y"], name="rows", domain="com.microsoft", **attributes)
    indices = RNG.integers(0, rows, (2, 3))
    infos = [h.make_tensor_value_info("i", onnx.TensorProto.INT64, ["n", "t"])]
    kept = [nh.from_array(value, name) for name, value in operands.items()]
    graph = h.make_graph([node], "g", infos, [h.make_empty_tensor_value_info("y")], kept)
    opsets = [h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=10)
    wanted = ort.InferenceSession(model.SerializeToString()).run(None, {"i": indices})[0]
    got = asc.compile(model, threads=1).run({"i": indices})["y"]
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
