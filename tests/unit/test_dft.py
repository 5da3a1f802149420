"""DFT and STFT against NumPy's transforms in float64."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from . import onnx_models

pytestmark = pytest.mark.sanitize

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 31, 37, 64, 74, 97, 121, 256, 400, 512, 961, 1000, 4096]
# Of the largest number of a result. bfloat16 is rounded to 8 bits, float16 to 11.
ERRORS = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 2e-2}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def one_node(op: str, inputs: list[np.ndarray | None], opset: int, attributes: dict[str, Any]) -> onnx.ModelProto:
    """A model of one node; the first input is fed, the others are constants."""
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(inputs)]
    kind = h.np_dtype_to_tensor_dtype(inputs[0].dtype)
    constants = [
        h.make_tensor(name, h.np_dtype_to_tensor_dtype(value.dtype), value.shape, value.tobytes(), raw=True)
        for name, value in zip(names[1:], inputs[1:], strict=True)
        if value is not None
    ]
    graph = h.make_graph(
        [h.make_node(op, names, ["y"], name="it", **attributes)],
        "g",
        [h.make_tensor_value_info("i0", kind, [None] * inputs[0].ndim)],
        [h.make_tensor_value_info("y", kind, None)],
        constants,
    )
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=10)


def run(op: str, inputs: list[Any], opset: int = 20, threads: int = 1, **attributes: Any) -> np.ndarray:
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    exe = asc.compile(one_node(op, arrays, opset, attributes), threads=threads)
    return np.asarray(exe(arrays[0]))


def parts(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag], -1)


def complex_of(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0]


def expected_dft(x: np.ndarray, length: int | None, axis: int, inverse: int, onesided: int) -> np.ndarray:
    z = complex_of(x)
    axis = axis + 1 if axis < 0 else axis
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None]
    y = (np.fft.ifft if inverse else np.fft.fft)(z, length, axis)
    if onesided:
        y = np.take(y, range(y.shape[axis] // 2 + 1), axis)
    return parts(y)


def check(got: np.ndarray, want: np.ndarray, dtype: str = "float32") -> None:
    assert got.shape == want.shape
    assert str(got.dtype) == dtype
    if want.size:
        largest = max(np.abs(want).max(), 1e-30)
        assert np.abs(got.astype(np.float64) - want).max() <= ERRORS[dtype] * largest


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kind_of_transform_agrees_with_float64_at_many_lengths(length: int, dtype: str) -> None:
    for of_parts, inverse, onesided in itertools.product((1, 2), (0, 1), (0, 1)):
        if inverse and onesided and (of_parts == 1 or length == 1):
            continue
        for rows in (1, 5, 19):
            x = noise(rows, length, of_parts, seed=length).astype(dtype)
            got = run("DFT", [x], inverse=inverse, onesided=onesided)
            check(got, expected_dft(x, None, -2, inverse, onesided), dtype)


@pytest.mark.parametrize("length", [65537, 1 << 17, 100003])
def test_long_transforms_take_neither_time_nor_precision(length: int) -> None:
    x = noise(1, length, 1)
    check(run("DFT", [x], onesided=1), expected_dft(x, None, -2, 0, 1))
    z = noise(1, length, 2)
    check(run("DFT", [z], inverse=1), expected_dft(z, None, -2, 1, 0))


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3, -4])
@pytest.mark.parametrize("opset", [17, 20])
def test_the_axis_and_the_length_are_those_of_the_opset(axis: int, opset: int) -> None:
    z = noise(6, 5, 7, 2)
    for length in (None, 4, 5, 9):
        for inverse, onesided in ((0, 0), (1, 0), (1, 1)):
            sizes = None if length is None else np.int64(length)
            if opset == 17:
                got = run("DFT", [z, sizes], 17, axis=axis, inverse=inverse, onesided=onesided)
            else:
                got = run("DFT", [z, sizes, np.int64(axis)], inverse=inverse, onesided=onesided)
            check(got, expected_dft(z, length, axis, inverse, onesided))


def test_the_default_axis_is_the_first_signal_axis_before_20_and_the_last_from_then_on() -> None:
    x = noise(3, 8, 6, 1)
    check(run("DFT", [x], 17), expected_dft(x, None, 1, 0, 0))
    check(run("DFT", [x], 20), expected_dft(x, None, 2, 0, 0))


@pytest.mark.parametrize("length", [1, 2, 7, 8, 13, 40])
def test_a_length_pads_or_cuts(length: int) -> None:
    for of_parts, inverse, onesided in ((1, 0, 1), (1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 1, 1)):
        x = noise(4, 13, of_parts)
        got = run("DFT", [x, np.int32(length)], inverse=inverse, onesided=onesided)
        check(got, expected_dft(x, length, -2, inverse, onesided))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype: str) -> None:
    kind = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
    x, window = noise(2, 100, 1).astype(kind), noise(16).astype(kind)
    check(run("DFT", [x], onesided=1), expected_dft(x, None, -2, 0, 1), dtype)
    check(run("STFT", [x, np.int64(8), window], 17), expected_stft(x, 8, window, 16, 1), dtype)


def expected_stft(x: np.ndarray, step: int, window: np.ndarray | None, length: int, onesided: int) -> np.ndarray:
    z = x.astype(np.float64) if x.ndim == 2 else complex_of(x)
    weights = np.ones(length) if window is None else window.astype(np.float64)
    count = (z.shape[1] - length) // step + 1
    frames = np.stack([z[:, f * step : f * step + length] * weights for f in range(count)], 1)
    y = np.fft.fft(frames)
    return parts(y[..., : length // 2 + 1] if onesided else y)


@pytest.mark.parametrize("length", [1, 2, 16, 25, 97, 400, 512])
@pytest.mark.parametrize("onesided", [0, 1])
def test_frames_agree_with_float64(length: int, onesided: int) -> None:
    window = np.hanning(length + 2)[1:-1].astype(np.float32)
    for shape, step in (((1, length), 1), ((3, length + 170), 10), ((2, 1200, 1), 160), ((2, 700, 2), 61)):
        x = noise(*shape)
        for weights, size in ((window, None), (None, np.int64(length)), (window, np.int64(length))):
            got = run("STFT", [x, np.int64(step), weights, size], 17, onesided=onesided)
            check(got, expected_stft(x, step, weights, length, onesided))


def test_a_frame_is_the_whole_signal_where_nothing_else_is_said() -> None:
    x = noise(2, 30)
    check(run("STFT", [x, np.int64(7)], 17), expected_stft(x, 7, None, 30, 1))


def test_rows_shared_out_to_threads_are_the_same_rows() -> None:
    x = noise(3, 16000 * 4)
    window = np.hanning(400).astype(np.float32)
    got = run("STFT", [x, np.int64(40), window], 17, threads=2)
    check(got, expected_stft(x, 40, window, 400, 1))
    assert np.array_equal(got, run("STFT", [x, np.int64(40), window], 17, threads=2))


def test_a_row_does_not_see_the_rows_beside_it() -> None:
    x = noise(40, 64, 1)
    alone = run("DFT", [x], onesided=1)
    x[7, 3] = np.nan
    x[9] *= 1e30
    got = run("DFT", [x], onesided=1)
    others = [i for i in range(40) if i not in (7, 9)]
    assert np.array_equal(got[others], alone[others])
    assert np.isnan(got[7]).any()


@pytest.mark.parametrize("length", [16, 15, 97])
def test_the_transform_of_a_transform_is_what_was_there(length: int) -> None:
    x = noise(3, length, 1)
    there = run("DFT", [x], onesided=1)
    back = run("DFT", [there, np.int64(length)], onesided=1, inverse=1)
    assert np.abs(back - x).max() < 2e-6


def test_axes_without_elements_give_none() -> None:
    assert run("DFT", [noise(0, 16, 1)]).shape == (0, 16, 2)
    assert run("DFT", [noise(2, 0, 1)]).shape == (2, 0, 2)
    assert run("DFT", [noise(2, 16, 0, 2), None, np.int64(1)], onesided=0).shape == (2, 16, 0, 2)
    assert not run("DFT", [noise(2, 0, 1), np.int64(8)]).any()
    assert run("STFT", [noise(0, 64), np.int64(8), noise(16)], 17).shape == (0, 7, 9, 2)


def test_lengths_that_the_model_computes_are_read() -> None:
    nodes = [
        h.make_node("Shape", ["x"], ["size"], start=1, end=2),
        h.make_node("Div", ["size", "four"], ["step"]),
        h.make_node("Squeeze", ["step"], ["scalar"]),
        h.make_node("Mul", ["scalar", "two"], ["frame"]),
        h.make_node("STFT", ["x", "scalar", "", "frame"], ["y"]),
    ]
    constants = {"four": np.int64(4), "two": np.int64(2)}
    model = onnx_models.model(
        nodes, [onnx_models.info("x", T.FLOAT, ["b", "n"])], [onnx_models.info("y", T.FLOAT)], constants
    )
    exe = asc.compile(model, threads=1)
    for n in (40, 64, 200):
        x = noise(2, n)
        check(np.asarray(exe(x)), expected_stft(x, n // 4, None, n // 4 * 2, 1))
    assert exe.stats()["host_calls"] == 0


HOSTILE_DFT = [
    ([noise(2, 8, 1), np.int64(0)], {}, "dft_length is 0"),
    ([noise(2, 8, 1), np.int64(-3)], {}, "dft_length is -3"),
    ([noise(2, 8, 1), np.int64(1 << 40)], {}, "dft_length is 1099511627776"),
    ([noise(2, 8, 1), np.array([4, 4])], {}, "2 elements"),
    ([noise(2, 8, 1), None, np.int64(2)], {}, "last one"),
    ([noise(2, 8, 1), None, np.int64(-1)], {}, "last one"),
    ([noise(2, 8, 1), None, np.int64(3)], {}, "axis 3"),
    ([noise(2, 8, 3)], {}, "last dimension of 1"),
    ([noise(8)], {}, r"\[8\]"),
    ([noise(2, 8, 1)], {"onesided": 1, "inverse": 1}, "real input"),
    ([noise(2, 1, 2)], {"onesided": 1, "inverse": 1}, "length of the transform is 0"),
    ([noise(2, 0, 1)], {"onesided": 1}, "length of the transform is 0"),
    ([noise(2, 8, 1)], {"onesided": 2}, "onesided is 2"),
]
HOSTILE_STFT = [
    ([noise(2, 64), np.int64(0), noise(16)], "frame_step is 0"),
    ([noise(2, 64), np.int64(-5), noise(16)], "frame_step is -5"),
    ([noise(2, 64), np.int64(8), None, np.int64(0)], "length of a frame is 0"),
    ([noise(2, 64), np.int64(8), None, np.int64(-1)], "length of a frame is -1"),
    ([noise(2, 64), np.int64(8), None, np.int64(1 << 40)], "length of a frame is 1099511627776"),
    ([noise(2, 64), np.int64(8), None, np.int64(65)], "shorter than a frame"),
    ([noise(2, 64), np.int64(8), noise(65)], "shorter than a frame"),
    ([noise(2, 64), np.int64(8), noise(16), np.int64(20)], "same length"),
    ([noise(2, 64), np.int64(8), noise(1, 16)], "rank 1"),
    ([noise(2, 64), np.int64(8), noise(0)], "length of a frame is 0"),
    ([noise(2, 0), np.int64(8)], "length of a frame is 0"),
    ([noise(64), np.int64(8), noise(16)], "signal has shape"),
    ([noise(1, 1, 64, 1), np.int64(8), noise(16)], "signal has shape"),
    ([noise(1, 64, 3), np.int64(8), noise(16)], "last dimension of 1"),
]


@pytest.mark.parametrize(("inputs", "attributes", "what"), HOSTILE_DFT)
def test_operands_of_dft_that_do_not_fit_are_refused(inputs: Any, attributes: Any, what: str) -> None:
    with pytest.raises(asc.GraphError, match=f"DFT.*it.*{what}"):
        run("DFT", inputs, **attributes)


@pytest.mark.parametrize(("inputs", "what"), HOSTILE_STFT)
def test_operands_of_stft_that_do_not_fit_are_refused(inputs: Any, what: str) -> None:
    with pytest.raises(asc.GraphError, match=f"STFT.*it.*{what}"):
        run("STFT", inputs, 17)


@pytest.mark.parametrize("step", [1 << 40, (1 << 63) - 1])
def test_a_step_beyond_the_signal_gives_one_frame(step: int) -> None:
    x = noise(2, 64)
    check(run("STFT", [x, np.int64(step), noise(16)], 17), expected_stft(x, step, noise(16), 16, 1))


def test_what_onnxruntime_computes_is_computed_alike() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    window = np.hanning(25).astype(np.float32)
    cases: list[tuple[str, list[Any], int, dict[str, Any]]] = [
        ("DFT", [noise(3, 24, of_parts)], 20, {"inverse": inverse, "onesided": onesided})
        for of_parts, inverse, onesided in itertools.product((1, 2), (0, 1), (0, 1))
        if not (of_parts == 1 and inverse and onesided)
    ]
    cases += [
        ("STFT", [noise(*shape), np.int64(9), window], 17, {"onesided": onesided})
        for shape, onesided in itertools.product(((2, 90), (2, 90, 1), (2, 90, 2)), (0, 1))
    ]
    for op, inputs, opset, attributes in cases:
        model = one_node(op, inputs, opset, attributes)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        want = session.run(None, {"i0": inputs[0]})[0]
        got = run(op, inputs, opset, **attributes)
        assert got.shape == want.shape, (op, attributes)
        assert np.abs(got - want).max() < 1e-4, (op, attributes)
