"""Random shapes, attributes and values against NumPy: broadcasting, slices, reductions, contractions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper as h
from onnx import numpy_helper as nh

import ascendsched as asc

FLOATS = st.floats(-4, 4, width=32) | st.sampled_from([np.inf, -np.inf, np.nan, -0.0])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
PROFILE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def run(op, feeds, constants=None, opset=21, **attributes):
    """One node in both modes, which must agree to the bit; the result of the first output."""
    names = [*feeds, *(constants or {})]
    inputs = [
        h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
        for name, value in feeds.items()
    ]
    node = h.make_node(op, names, ["y"], name="node", **attributes)
    kept = [nh.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = h.make_graph([node], "g", inputs, [h.make_empty_tensor_value_info("y")], kept)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=10)
    first, second = (asc.compile(model, mode=mode, threads=1).run(feeds)["y"] for mode in ("host", "sink"))
    assert first.tobytes() == second.tobytes()
    return first


def check(got, want, tolerance=1e-5):
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Equal", "Less", "Max"])
@PROFILE
@given(data=st.data())
def test_broadcasting(op, data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=4))
    a, b = (data.draw(hnp.arrays(np.float32, shape, elements=FLOATS)) for shape in shapes.input_shapes)
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    functions |= {"Equal": np.equal, "Less": np.less, "Max": np.maximum}
    with np.errstate(all="ignore"):
        check(run(op, {"a": a, "b": b}), functions[op](a, b))


@PROFILE
@given(data=st.data())
def test_slices_of_any_step(data):
    x = data.draw(hnp.arrays(np.int32, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6)))
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1))
    bound = st.integers(-9, 9) | st.sampled_from([2**62, -(2**62)])
    starts, ends = (data.draw(st.lists(bound, min_size=len(axes), max_size=len(axes))) for _ in range(2))
    step = st.integers(-7, 7).filter(bool) | st.sampled_from([2**40, -(2**40)])
    steps = data.draw(st.lists(step, min_size=len(axes), max_size=len(axes)))
    index = [slice(None)] * x.ndim
    for axis, start, end, each in zip(axes, starts, ends, steps, strict=True):
        dim = x.shape[axis]
        if each > 0:
            index[axis] = slice(start, end, each)
        else:  # backwards, ONNX brings a start before the first element to the first, NumPy to none
            index[axis] = slice(max(start, -dim), None if end < -dim else end, each)
    named = {"s": starts, "e": ends, "a": axes, "t": steps}
    check(run("Slice", {"x": x}, {name: np.array(value, np.int64) for name, value in named.items()}), x[tuple(index)])


@pytest.mark.parametrize("op", ["Sum", "Max", "Prod", "L1", "SumSquare"])
@PROFILE
@given(data=st.data())
def test_reductions(op, data):
    x = data.draw(hnp.arrays(np.float32, SHAPES, elements=st.floats(-4, 4, width=32)))
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True)) if x.ndim else []
    keeps = data.draw(st.booleans())
    functions = {
        "Sum": np.sum,
        "Max": lambda v, **k: np.max(v, initial=-np.inf, **k),
        "Prod": np.prod,
        "L1": lambda v, **k: np.sum(np.abs(v), **k),
        "SumSquare": lambda v, **k: np.sum(v * v, **k),
    }
    want = functions[op](x, axis=tuple(axes) or None, keepdims=keeps)
    got = run(f"Reduce{op}", {"x": x}, {"axes": np.array(axes, np.int64)}, keepdims=int(keeps))
    check(got, np.asarray(want, np.float32), 1e-4)


@PROFILE
@given(data=st.data())
def test_einsum(data):
    sizes = {label: data.draw(st.integers(1, 4)) for label in "abcd"}
    terms = [data.draw(st.text("abcd", min_size=1, max_size=4)) for _ in range(data.draw(st.integers(1, 3)))]
    used = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(data.draw(st.lists(st.sampled_from(used), unique=True)))))
    elements = st.floats(-2, 2, width=32)
    operands = [data.draw(hnp.arrays(np.float32, [sizes[k] for k in term], elements=elements)) for term in terms]
    equation = f"{','.join(terms)}->{result}"
    feeds = {f"x{i}": value for i, value in enumerate(operands)}
    check(run("Einsum", feeds, equation=equation), np.einsum(equation, *operands).astype(np.float32), 1e-4)


@PROFILE
@given(data=st.data())
def test_integer_products(data):
    batch = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    m, k, n = (data.draw(st.integers(0, 5)) for _ in range(3))
    a = data.draw(hnp.arrays(np.uint8, (*batch, m, k)))
    b = data.draw(hnp.arrays(np.int8, (k, n)))
    check(run("MatMulInteger", {"a": a, "b": b}), a.astype(np.int32) @ b.astype(np.int32))


@PROFILE
@given(
    x=hnp.arrays(np.float32, SHAPES, elements=st.floats(-1e6, 1e6, width=32)),
    scale=st.floats(2**-10, 2**10, width=32),
    zero=st.integers(0, 255),
)
def test_quantisation_stays_within_half_a_step(x, scale, zero):
    constants = {"s": np.float32(scale), "z": np.uint8(zero)}
    got = run("QuantizeLinear", {"x": x}, constants)
    want = np.clip(np.rint(x / np.float32(scale)) + zero, 0, 255).astype(np.uint8)
    check(got, want)
    back = run("DequantizeLinear", {"q": got}, constants)
    check(back, (got.astype(np.int32) - zero).astype(np.float32) * np.float32(scale))
