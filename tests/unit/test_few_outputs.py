"""Convolutions with few output positions, which are products by kernel position, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model


def convolve(x: np.ndarray, w: np.ndarray, strides, pads, dilations) -> np.ndarray:
    """The convolution in float64; pads as ONNX orders them."""
    axes = x.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)])
    extents = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    windows = sliding_window_view(x, extents, tuple(range(2, x.ndim)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    windows = windows[(..., *(slice(None, None, d) for d in dilations))]
    letters, kernel = "xyz"[:axes], "uvw"[:axes]
    return np.einsum(f"bc{letters}{kernel},oc{kernel}->bo{letters}", windows, w.astype(np.float64))


def check(rng, x_shape, w_shape, *, bias=False, strides=None, pads=None, dilations=None, kernel="vector:taps") -> None:
    axes = len(x_shape) - 2
    strides, dilations, pads = strides or [1] * axes, dilations or [1] * axes, pads or [0] * 2 * axes
    x = rng.standard_normal(x_shape).astype(np.float32)
    constants = {"w": rng.standard_normal(w_shape).astype(np.float32)}
    want = convolve(x, constants["w"], strides, pads, dilations)
    if bias:
        constants["b"] = rng.standard_normal(w_shape[0]).astype(np.float32)
        want += constants["b"].reshape(-1, *[1] * axes)
    node = h.make_node("Conv", ["x", *constants], ["y"], strides=strides, pads=pads, dilations=dilations)
    made = model([node], [info("x", shape=x_shape)], [h.make_empty_tensor_value_info("y")], constants)
    for mode in ("host", "sink"):
        exe = asc.compile(made, mode=mode, threads=1)
        got = exe.run({"x": x})["y"]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.sqrt(np.prod(w_shape[1:])))
    assert kernel in exe.explain()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


@pytest.mark.parametrize("outputs", [8, 15, 16, 17, 63, 64, 65, 130])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 6, 7, 13])
def test_lines_agree_at_any_length_and_number_of_channels(rng, outputs, length):
    check(rng, (1, 17, length), (outputs, 17, 3), bias=True, pads=[1, 1])
    check(rng, (3, 18, length), (outputs, 18, 3), pads=[2, 1], strides=[2])


@pytest.mark.parametrize("batch", range(1, 6))
def test_images_agree_with_strides_dilations_and_uneven_pads(rng, batch):
    check(rng, (batch, 16, 3, 4), (20, 16, 3, 3), pads=[1, 1, 1, 1], bias=True)
    check(rng, (batch, 16, 5, 4), (20, 16, 2, 3), pads=[0, 2, 1, 0], strides=[2, 1])
    check(rng, (batch, 16, 4, 4), (20, 16, 2, 2), pads=[2, 1, 0, 3], dilations=[2, 3], bias=True)
    check(rng, (batch, 16, 2, 3, 2), (9, 16, 2, 2, 2), pads=[1, 0, 1, 0, 1, 1], strides=[1, 2, 1])


def test_a_window_without_padding_over_one_channel_agrees(rng):
    check(rng, (1, 1, 640), (210, 1, 256), strides=[128])
    check(rng, (3, 1, 100), (10, 1, 16), strides=[7], dilations=[2], bias=True)


def test_outputs_that_see_only_padding_are_the_bias(rng):
    check(rng, (2, 16, 1), (12, 16, 3), pads=[4, 5], bias=True)
    check(rng, (1, 16, 2, 1), (12, 16, 1, 2), pads=[3, 2, 1, 2])


def test_short_sums_many_outputs_and_groups_go_another_way(rng):
    check(rng, (1, 3, 9), (16, 3, 3), pads=[1, 1], kernel="gemm:columns")
    check(rng, (1, 16, 300), (16, 16, 1), kernel="gemm:pointwise")


def test_fed_weights_agree(rng):
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((1, 16, 4), (8, 16, 3)))
    made = model(
        [h.make_node("Conv", ["x", "w"], ["y"])], [info("x", shape=x.shape), info("w", shape=w.shape)], [info("y")]
    )
    want = convolve(x, w, [1], [0, 0], [1])
    np.testing.assert_allclose(asc.compile(made).run({"x": x, "w": w})["y"], want, rtol=1e-5, atol=1e-4)
