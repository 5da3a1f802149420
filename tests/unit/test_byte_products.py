"""Products of bytes: every path of the vector code against NumPy, quantised LSTMs against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

RNG = np.random.default_rng(11)


def single(op, feeds, constants, outputs=1, domain="", **attributes):
    """A model of one node; operands by name in order, "-…" for absent ones."""
    names = [name if not name.startswith("-") else "" for name in [*feeds, *constants]]
    results = [f"y{i}" for i in range(outputs)]
    inputs = [
        h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
        for name, value in feeds.items()
    ]
    kept = [nh.from_array(np.asarray(value), name) for name, value in constants.items() if not name.startswith("-")]
    node = h.make_node(op, names, results, name="node", domain=domain, **attributes)
    graph = h.make_graph([node], "g", inputs, [h.make_empty_tensor_value_info(name) for name in results], kept)
    opsets = [h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)]
    return h.make_model(graph, opset_imports=opsets, ir_version=10)


def some_bytes(dtype, *shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape, dtype=dtype)


@pytest.mark.parametrize("a_type", [np.int8, np.uint8])
@pytest.mark.parametrize("b_type", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (3, 5, 17), (7, 64, 64), (9, 130, 100), (2, 3, 65), (5, 0, 3), (4, 8, 16)]
)
@pytest.mark.parametrize("b_is_constant", [True, False])
def test_matmul_integer_is_exact(a_type, b_type, m, k, n, b_is_constant):
    a, b = some_bytes(a_type, m, k), some_bytes(b_type, k, n)
    zeros = {"za": some_bytes(a_type, m), "zb": some_bytes(b_type, n)}
    feeds, constants = ({"a": a}, {"b": b, **zeros}) if b_is_constant else ({"a": a, "b": b}, zeros)
    wanted = (a.astype(np.int32) - zeros["za"].astype(np.int32)[:, None]) @ (b.astype(np.int32) - zeros["zb"])
    assert np.array_equal(asc.compile(single("MatMulInteger", feeds, constants), threads=1).run(feeds)["y0"], wanted)
    feeds, constants = ({"a": a}, {"b": b}) if b_is_constant else ({"a": a, "b": b}, {})
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    assert np.array_equal(asc.compile(single("MatMulInteger", feeds, constants), threads=1).run(feeds)["y0"], wanted)


def test_matmul_integer_multiplies_stacks_of_matrices():
    a, b = some_bytes(np.uint8, 3, 1, 4, 6), some_bytes(np.int8, 2, 6, 5)
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    for feeds, constants in (({"a": a, "b": b}, {}), ({"a": a}, {"b": b})):
        got = asc.compile(single("MatMulInteger", feeds, constants), threads=1).run(feeds)["y0"]
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize(("m", "k", "n"), [(300, 401, 130), (5, 900, 2500)])
def test_threads_do_not_change_products(m, k, n):
    a, b = some_bytes(np.uint8, m, k), some_bytes(np.int8, k, n)
    zeros = {"za": some_bytes(np.uint8, m), "zb": some_bytes(np.int8, n)}
    wanted = (a.astype(np.int32) - zeros["za"].astype(np.int32)[:, None]) @ (b.astype(np.int32) - zeros["zb"])
    model = single("MatMulInteger", {"a": a}, {"b": b, **zeros})
    for threads in (1, 2, 3):
        assert np.array_equal(asc.compile(model, threads=threads).run({"a": a})["y0"], wanted)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 31, 33, 48, 70])
def test_dynamic_quantize_finds_its_range_at_every_place(n):
    executable = asc.compile(single("DynamicQuantizeLinear", {"x": np.zeros(n, np.float32)}, {}, outputs=3))
    for low, high in zip(range(n), [*range(1, n), 0], strict=True):
        x = np.full(n, 0.5, np.float32)
        x[low], x[high] = -3, 7
        scale = np.float32(x.max() - min(x.min(), 0)) / np.float32(255)
        assert executable.run({"x": x})["y1"] == scale


def lstm_operands(dtype, directions=2, size=8, hidden=20, per_column=False, zero=0):
    w, r = some_bytes(dtype, directions, size, 4 * hidden), some_bytes(dtype, directions, hidden, 4 * hidden)
    shape = (directions, 4 * hidden) if per_column else (directions,)
    scales = [RNG.uniform(0.002, 0.004, shape).astype(np.float32) for _ in range(2)]
    zeros = [np.full(shape, zero, dtype) for _ in range(2)]
    bias = RNG.standard_normal((directions, 8 * hidden)).astype(np.float32)
    return w, r, bias, scales, zeros


def run_lstm(feeds, constants, **options):
    model = single("DynamicQuantizeLSTM", feeds, constants, outputs=3, domain="com.microsoft", **options)
    got = {threads: asc.compile(model, threads=threads).run(feeds) for threads in (1, 2)}
    for name, value in got[1].items():
        assert np.array_equal(value, got[2][name])
    return got[1], model


@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, 0), (np.int8, 5), (np.uint8, 128), (np.uint8, 120)])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_quantized_lstm_is_close_to_onnxruntime(dtype, zero, per_column, direction):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
    directions = 2 if direction == "bidirectional" else 1
    if per_column and zero == 5:
        pytest.skip("onnxruntime wants zero points of 0 where signed weights have one for each column")
    w, r, bias, scales, zeros = lstm_operands(dtype, directions, per_column=per_column, zero=zero)
    state = RNG.standard_normal((2, directions, 3, 20)).astype(np.float32) / 2
    x = RNG.standard_normal((7, 3, 8)).astype(np.float32)
    constants = {"w": w, "r": r, "b": bias, "l": np.array([7, 4, 6], np.int32), "h": state[0], "c": state[1], "-p": 0}
    constants |= {"ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    got, model = run_lstm({"x": x}, constants, hidden_size=20, direction=direction)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, want in zip(got, session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(got[name], want, atol=0.03)


def test_quantized_lstm_takes_weights_that_are_not_constant():
    w, r, bias, scales, zeros = lstm_operands(np.int8)
    x = RNG.standard_normal((5, 2, 8)).astype(np.float32)
    weights, bias = {"w": w, "r": r}, {"b": bias}
    absent = {"-l": 0, "-h": 0, "-c": 0, "-p": 0}
    rest = absent | {"ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    options = {"hidden_size": 20, "direction": "bidirectional"}
    wanted, _ = run_lstm({"x": x}, weights | bias | rest, **options)
    got, _ = run_lstm({"x": x, **weights}, bias | rest, **options)
    for name, value in wanted.items():
        assert np.array_equal(value, got[name])


# Sizes whose second input's product is done beside the first direction's steps, where the CPU can, and sizes next to
# them; steps in groups of every size, and in more than one chunk.
BESIDE = [(7, 64, 64), (4, 4, 16), (9, 96, 48), (15, 512, 32), (31, 20, 80), (600, 8, 64), (6, 18, 64), (5, 64, 20)]


@pytest.mark.parametrize(("steps", "size", "hidden"), [*BESIDE, (1, 64, 64), (3, 64, 64), (0, 64, 64)])
@pytest.mark.parametrize(("per_column", "zero"), [(False, 0), (False, 5), (True, -3)])
@pytest.mark.parametrize("length", [None, 0, 2, 5])
@pytest.mark.parametrize("fed", [False, True])
def test_directions_of_a_quantized_lstm_do_not_change_each_other(steps, size, hidden, per_column, zero, length, fed):
    w, r, bias, scales, zeros = lstm_operands(np.int8, 2, size, hidden, per_column, zero)
    state = RNG.standard_normal((2, 2, 1, hidden)).astype(np.float32) / 2
    x = RNG.standard_normal((steps, 1, size)).astype(np.float32)
    lengths = {"-l": 0} if length is None else {"l": np.array([min(length, steps)], np.int32)}

    def run(direction, d):
        weights = {"w": w[d], "r": r[d]}
        constants = {"b": bias[d], **lengths, "h": state[0][d], "c": state[1][d], "-p": 0}
        constants |= {"ws": scales[0][d], "wz": zeros[0][d], "rs": scales[1][d], "rz": zeros[1][d]}
        operands = ({"x": x, **weights}, constants) if fed else ({"x": x}, weights | constants)
        return run_lstm(*operands, hidden_size=hidden, direction=direction)[0]

    both = run("bidirectional", slice(0, 2))
    for d, direction in enumerate(("forward", "reverse")):
        alone = run(direction, slice(d, d + 1))
        assert np.array_equal(both["y0"][:, d], alone["y0"][:, 0])
        assert np.array_equal(both["y1"][d], alone["y1"][0])
        assert np.array_equal(both["y2"][d], alone["y2"][0])


def test_quantized_lstm_without_scales_is_refused():
    w, r, bias, scales, zeros = lstm_operands(np.int8, 1)
    constants = {"w": w, "r": r, "b": bias, "-l": 0, "-h": 0, "-c": 0, "-p": 0, "ws": scales[0], "wz": zeros[0]}
    model = single("DynamicQuantizeLSTM", {"x": np.zeros((2, 1, 8), np.float32)}, constants, 3, "com.microsoft")
    with pytest.raises(asc.GraphError, match="the scales of W and R"):
        asc.compile(model, threads=1).run({"x": np.zeros((2, 1, 8), np.float32)})


def test_quantized_lstm_with_scales_of_another_shape_is_refused():
    w, r, bias, scales, zeros = lstm_operands(np.int8, 1)
    constants = {"w": w, "r": r, "b": bias, "-l": 0, "-h": 0, "-c": 0, "-p": 0}
    constants |= {"ws": np.ones(3, np.float32), "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    model = single("DynamicQuantizeLSTM", {"x": np.zeros((2, 1, 8), np.float32)}, constants, 3, "com.microsoft")
    with pytest.raises(asc.GraphError, match=r"input 8 has shape \[3\]"):
        asc.compile(model, threads=1).run({"x": np.zeros((2, 1, 8), np.float32)})
