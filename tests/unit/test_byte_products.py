"""Products of bytes: every path of the vector code against NumPy, quantised LSTMs against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
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


@pytest.mark.parametrize(
    ("x", "scale", "zero"),
    [
        ([0, 0], 1, 0),
        ([-3, -1], 3 / 255, 255),
        ([2, 5], 5 / 255, 0),
        ([-1, 3], 4 / 255, 64),
        ([-np.inf, 1], np.inf, 0),
        ([-1, np.inf], np.inf, 0),
    ],
)
def test_dynamic_quantize_takes_zero_into_its_range(x, scale, zero):
    x = np.array(x, np.float32)
    got = asc.compile(single("DynamicQuantizeLinear", {"x": x}, {}, outputs=3), threads=1).run({"x": x})
    assert got["y1"] == np.float32(scale)
    assert got["y2"] == zero


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


@pytest.mark.parametrize("behind", [0.0, 1000.0, np.inf, np.nan])
@pytest.mark.parametrize("lengths", [[3], [2, 4, 1]])
def test_what_lies_behind_the_longest_sequence_is_not_read(lengths, behind):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
    w, r, bias, scales, zeros = lstm_operands(np.int8, 1, 8, 16)
    x = RNG.standard_normal((7, len(lengths), 8)).astype(np.float32)
    x[max(lengths) :] = behind
    constants = {"w": w, "r": r, "b": bias, "l": np.array(lengths, np.int32), "-h": 0, "-c": 0, "-p": 0}
    constants |= {"ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    got, model = run_lstm({"x": x}, constants, hidden_size=16)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, want in zip(got, session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(got[name], want, atol=0.01)


@pytest.mark.parametrize("batch", [1, 3])
def test_quantized_lstm_takes_a_bias_that_is_not_constant(batch):
    w, r, bias, scales, zeros = lstm_operands(np.int8, 2, 12, 32)
    x = RNG.standard_normal((9, batch, 12)).astype(np.float32)
    weights = {"w": w, "r": r}
    rest = {"-l": 0, "-h": 0, "-c": 0, "-p": 0, "ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    options = {"hidden_size": 32, "direction": "bidirectional"}
    wanted, _ = run_lstm({"x": x}, weights | {"b": bias} | rest, **options)
    without, model = run_lstm({"x": x}, weights | {"-b": 0} | rest, **options)
    model.graph.node[0].input[3] = "b"
    model.graph.input.append(h.make_tensor_value_info("b", TensorProto.FLOAT, [None, None]))
    got = asc.compile(model, threads=1).run({"x": x, "b": bias})
    for name, value in wanted.items():
        assert np.array_equal(value, got[name])
        assert not np.allclose(value, without[name], atol=1e-3)


def test_lstms_that_share_weights_have_biases_of_their_own():
    w, r, bias, scales, zeros = lstm_operands(np.int8, 1, 16, 48)
    x = RNG.standard_normal((5, 1, 16)).astype(np.float32)
    rest = {"-l": 0, "-h": 0, "-c": 0, "-p": 0, "ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    wanted, model = run_lstm({"x": x}, {"w": w, "r": r, "b": bias} | rest, hidden_size=48)
    other, _ = run_lstm({"x": x}, {"w": w, "r": r, "b": bias / 2} | rest, hidden_size=48)
    second = model.graph.node.add()
    second.CopyFrom(model.graph.node[0])
    second.name, second.input[3] = "second", "b2"
    second.output[:] = [f"z{i}" for i in range(3)]
    model.graph.initializer.append(nh.from_array(bias / 2, "b2"))
    model.graph.output.extend(h.make_empty_tensor_value_info(f"z{i}") for i in range(3))
    got = asc.compile(model, threads=1).run({"x": x})
    for i in range(3):
        assert np.array_equal(got[f"y{i}"], wanted[f"y{i}"])
        assert np.array_equal(got[f"z{i}"], other[f"y{i}"])


def with_idle_unit(w, r, bias, scales, zeros, state, zero):
    """The operands of one unit more, whose weights are zero: it stays at zero, and the others do not see it."""
    directions, size, hidden = w.shape[0], w.shape[1], r.shape[1]

    def add_gates(values, fill):
        shape = (*values.shape[:-1], values.shape[-1] // hidden, hidden)
        pad = [(0, 0)] * (len(shape) - 1) + [(0, 1)]
        return np.pad(values.reshape(shape), pad, constant_values=fill).reshape(*values.shape[:-1], -1)

    r = np.pad(add_gates(r, zero), ((0, 0), (0, 1), (0, 0)), constant_values=zero)
    if scales[0].ndim == 2:
        scales, zeros = [add_gates(s, 1) for s in scales], [add_gates(z, zero) for z in zeros]
    assert add_gates(w, zero).shape == (directions, size, 4 * hidden + 4)
    return add_gates(w, zero), r, add_gates(bias, 0), scales, zeros, np.pad(state, [(0, 0)] * 3 + [(0, 1)])


# With units in sixteens and one sequence, products of the input are done beside steps, where the CPU can; not with one
# unit more. Chunks of every number of rows, one or several; the last size uses two threads.
BESIDE = [(0, 64, 64), (1, 64, 64), (3, 8, 16), (4, 4, 16), (7, 64, 64), (9, 96, 48), (11, 20, 80), (15, 512, 32)]
BESIDE += [(18, 36, 112), (29, 8, 64), (130, 16, 64), (20, 256, 128)]


@pytest.mark.parametrize(("steps", "size", "hidden"), BESIDE)
@pytest.mark.parametrize(("per_column", "zero"), [(False, 0), (False, 5), (True, -3)])
@pytest.mark.parametrize("length", [None, 0, 2, 14])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_an_idle_unit_does_not_change_the_others(steps, size, hidden, per_column, zero, length, direction):
    directions = 2 if direction == "bidirectional" else 1
    operands = lstm_operands(np.int8, directions, size, hidden, per_column, zero)
    state = RNG.standard_normal((2, directions, 1, hidden)).astype(np.float32) / 2
    x = RNG.standard_normal((steps, 1, size)).astype(np.float32)
    lengths = {"-l": 0} if length is None else {"l": np.array([min(length, steps)], np.int32)}

    def run(w, r, bias, scales, zeros, state, fed=False):
        weights = {"w": w, "r": r}
        constants = {"b": bias, **lengths, "h": state[0], "c": state[1], "-p": 0}
        constants |= {"ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
        given = ({"x": x, **weights}, constants) if fed else ({"x": x}, weights | constants)
        return run_lstm(*given, hidden_size=state.shape[-1], direction=direction)[0]

    wanted = run(*with_idle_unit(*operands, state, zero))
    for fed in (False, True):
        for name, value in run(*operands, state, fed=fed).items():
            assert np.array_equal(value, wanted[name][..., :hidden])


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
