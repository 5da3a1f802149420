"""Random shapes and layouts against NumPy where little is left: no elements, no axes, odd strides, NaN, infinities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc
from tests.unit.test_properties import FLOATS, PROFILE, SHAPES, check, run

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, -3e38, 88.8, -103.9]
HUGE = st.sampled_from([2**20, 2**30])


def draw_floats(data, shapes=SHAPES, dtype=np.float32):
    return data.draw(hnp.arrays(dtype, shapes, elements=FLOATS))


@PROFILE
@given(data=st.data())
def test_feeds_of_any_layout_hold_the_same_values(data):
    x = data.draw(hnp.arrays(np.float32, SHAPES, elements=st.floats(-4, 4, width=32)))
    views = [np.asarray(x, order="F"), np.stack([x, x], -1)[..., 1], np.array(x.T, copy=True).T]
    if x.ndim:
        views += [x[::-1].copy()[::-1], np.repeat(x, 3, axis=-1)[..., ::3], np.repeat(x, 2, axis=0)[::-2][::-1]]
    for view in views:
        check(run("Neg", {"x": view}), -x)
    stretched = np.broadcast_to(x, (3, *x.shape))  # a stride of 0
    check(run("Neg", {"x": stretched}), -stretched)


@pytest.mark.parametrize("op", ["Exp", "Log", "Sqrt", "Tanh", "Relu", "Abs", "Floor", "Sign", "Reciprocal", "IsNaN"])
@PROFILE
@given(length=st.integers(0, 70), seed=st.integers(0, 2**32 - 1))
def test_special_values_come_out_wherever_they_stand(op, length, seed):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(length) < 0.4, rng.choice(SPECIAL, length), rng.standard_normal(length)).astype(np.float32)
    functions = {
        "Relu": lambda v: np.where(np.isnan(v), v, np.maximum(v, 0)), "Reciprocal": lambda v: 1 / v, "IsNaN": np.isnan,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        want = functions.get(op, getattr(np, op.lower(), None))(x)
    if op in ("Log", "Reciprocal"):
        x, want = (values[np.abs(x) != np.float32(1e-40)] for values in (x, want))  # may count as zero
    check(run(op, {"x": x}), want)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Min", "Max", "LogSumExp"])
@PROFILE
@given(data=st.data())
def test_reductions_of_nan_and_infinities(op, data):
    x = draw_floats(data, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    axis = data.draw(st.integers(0, x.ndim - 1))
    functions = {"Sum": np.sum, "Mean": np.mean, "Min": np.min, "Max": np.max}
    with np.errstate(all="ignore"):
        functions["LogSumExp"] = lambda v, axis: np.logaddexp.reduce(v, axis=axis)
        want = functions[op](x, axis=axis)
    check(run(f"Reduce{op}", {"x": x}, {"a": np.array([axis])}, keepdims=0), np.asarray(want, np.float32), 1e-4)


@PROFILE
@given(data=st.data())
def test_no_axes_mean_all_or_none(data):
    x = data.draw(hnp.arrays(np.float32, SHAPES, elements=st.floats(-4, 4, width=32)))
    none = {"a": np.array([], np.int64)}
    check(run("ReduceSum", {"x": x}, none, noop_with_empty_axes=1), x)
    check(run("ReduceSum", {"x": x}, none, keepdims=0), np.asarray(x.sum(), np.float32), 1e-4)
    check(run("ReduceSum", {"x": x}, keepdims=1), np.asarray(x.sum(keepdims=True), np.float32), 1e-4)


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 3, 0), (2, 3, 2)])
@pytest.mark.parametrize("axes", [(0,), (0, 2), (2,), (0, 1, 2)])
def test_a_sum_of_squares_that_runs_as_one_task_may_be_one_of_nothing(shape, axes):
    nodes = [
        h.make_node("Sub", ["x", "m"], ["d"]),
        h.make_node("Mul", ["d", "d"], ["q"]),
        h.make_node("ReduceSum", ["q", "a"], ["y"], keepdims=0),
    ]
    infos = [h.make_tensor_value_info("x", TensorProto.FLOAT, [None] * 3)]
    constants = [nh.from_array(np.ones((1, 3, 1), np.float32), "m"), nh.from_array(np.array(axes), "a")]
    graph = h.make_graph(nodes, "g", infos, [h.make_empty_tensor_value_info("y")], constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
    x = np.full(shape, 3, np.float32)
    for threads in (1, 2):
        (got,) = asc.compile(model, threads=threads).run({"x": x}).values()
        check(got, np.asarray(((x - 1) ** 2).sum(axis=axes), np.float32))


@PROFILE
@given(data=st.data())
def test_softmax_along_any_axis(data):
    x = draw_floats(data, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    with np.errstate(all="ignore"):
        powers = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
        want = powers / powers.sum(axis=axis, keepdims=True)
    check(run("Softmax", {"x": x}, axis=axis), want.astype(np.float32))


@PROFILE
@given(data=st.data())
def test_movement_of_any_shape(data):
    x = data.draw(hnp.arrays(np.int32, SHAPES))
    order = data.draw(st.permutations(range(x.ndim)))
    check(run("Transpose", {"x": x}, perm=list(order)) if x.ndim else run("Transpose", {"x": x}), x.transpose(order))
    lead = data.draw(st.lists(st.integers(0, 3), max_size=2))
    wanted = np.broadcast_to(x, (*lead, *x.shape))
    check(run("Expand", {"x": x}, {"s": np.array(wanted.shape, np.int64)}), wanted)
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=x.ndim, max_size=x.ndim))
    check(run("Tile", {"x": x}, {"r": np.array(repeats, np.int64)}), np.tile(x, repeats) if x.ndim else x)
    check(run("Flatten", {"x": x}, axis=x.ndim), x.reshape(math.prod(x.shape), 1))
    mask = data.draw(hnp.arrays(bool, x.shape[-1:]))
    other = x[:1] if x.ndim else x
    check(run("Where", {"m": mask, "a": x, "b": other}), np.where(mask, x, other))


@PROFILE
@given(data=st.data())
def test_joins_and_picks_of_any_shape(data):
    x = data.draw(hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    parts = {f"x{k}": np.take(x, range(k), axis) for k in range(min(x.shape[axis], 2) + 1)}
    bits = run("Concat", parts, axis=axis)
    assert bits.tobytes() == np.concatenate(list(parts.values()), axis).tobytes()
    dim = x.shape[axis]
    where = data.draw(hnp.arrays(np.int64, SHAPES, elements=st.integers(-dim, max(dim - 1, -dim))))
    if dim:
        assert run("Gather", {"x": x, "i": where}, axis=axis).tobytes() == np.take(x, where, axis).tobytes()
    totals = data.draw(hnp.arrays(np.int64, x.shape, elements=st.integers(-9, 9)))
    check(run("CumSum", {"x": totals}, {"a": np.array(axis)}), np.cumsum(totals, axis))


@PROFILE
@given(data=st.data())
def test_windows_with_strides_beyond_the_image(data):
    x = data.draw(hnp.arrays(np.float32, (1, 2, 5, 4), elements=st.floats(-4, 4, width=32)))
    stride = data.draw(HUGE)
    got = run("MaxPool", {"x": x}, kernel_shape=[2, 3], strides=[stride, stride])
    check(got, x[:, :, :2, :3].max(axis=(2, 3), keepdims=True))
    weights = data.draw(hnp.arrays(np.float32, (3, 2, 2, 2), elements=st.floats(-2, 2, width=32)))
    got = run("Conv", {"x": x, "w": weights}, strides=[stride, 1])
    windows = np.lib.stride_tricks.sliding_window_view(x[:, :, :2], (2, 2), (2, 3))
    check(got, np.einsum("bchwkl,ockl->bohw", windows, weights).astype(np.float32), 1e-4)


@PROFILE
@given(data=st.data())
def test_pads_of_any_sign(data):
    x = data.draw(hnp.arrays(np.int32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    widths = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in x.shape]
    pads = np.array([*(low for low, _ in widths), *(high for _, high in widths)], np.int64)
    check(run("Pad", {"x": x}, {"p": pads, "v": np.array(7, np.int32)}), np.pad(x, widths, constant_values=7))
    check(run("Pad", {"x": np.pad(x, widths)}, {"p": -pads}), x)
