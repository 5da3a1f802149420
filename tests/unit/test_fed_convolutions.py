"""Convolutions whose weights are fed at every run, as those of torch models are, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model
from tests.unit.test_few_outputs import convolve

pytestmark = pytest.mark.sanitize
DOTS = "vector:dots"


def check(x_shape: tuple[int, ...], w_shape: tuple[int, ...], *, bias: bool = False, **given: Any) -> str:
    """What explains the node, after runs with other weights each time."""
    axes = len(x_shape) - 2
    attributes = {"strides": [1] * axes, "pads": [0] * 2 * axes, "dilations": [1] * axes} | given
    shapes = {"x": x_shape, "w": w_shape} | ({"b": (w_shape[0],)} if bias else {})
    node = h.make_node("Conv", [*shapes], ["y"], **attributes)
    made = model([node], [info(name, shape=shape) for name, shape in shapes.items()], [info("y")])
    explained = ""
    for mode, threads in (("host", 1), ("sink", 1), ("sink", 2)):
        exe = asc.compile(made, mode=mode, threads=threads)
        for seed in range(2):
            rng = np.random.default_rng(seed)
            feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
            want = convolve(feeds["x"], feeds["w"], *attributes.values())
            if bias:
                want += feeds["b"].reshape(-1, *[1] * axes)
            got = exe.run(feeds)["y"]
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.sqrt(np.prod(w_shape[1:])))
        explained = exe.explain()
    return explained


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("batch", [1, 3, 4])
def test_weights_are_read_where_they_lie_for_few_positions(batch: int, bias: bool) -> None:
    assert DOTS in check((batch, 48, 2, 2), (171, 48, 3, 3), pads=[1, 1, 1, 1], bias=bias)
    assert DOTS in check((batch, 70, 5, 4), (166, 70, 2, 3), pads=[0, 2, 1, 0], strides=[3, 2], bias=bias)
    assert DOTS in check((batch, 300, 1, 1), (310, 300, 1, 1), bias=bias)
    assert DOTS in check((batch, 160, 3), (160, 160, 5), pads=[3, 3], dilations=[2], strides=[2], bias=bias)
    assert DOTS in check((batch, 64, 2, 1, 2), (200, 64, 2, 1, 3), pads=[1, 0, 1, 0, 0, 1], bias=bias)


def test_positions_that_see_only_padding_are_the_bias() -> None:
    assert DOTS in check((1, 200, 1), (200, 200, 3), pads=[4, 5], bias=True)


def test_images_that_are_patches_need_no_other_weights() -> None:
    assert DOTS in check((4, 3, 32, 32), (96, 3, 16, 16), strides=[16, 16], bias=True)


@pytest.mark.parametrize("channels", [(16, 32), (48, 16), (24, 40), (8, 16), (17, 15)], ids=str)
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_blocks_of_channels_give_the_same_as_any_layout(rank: int, channels: tuple[int, int]) -> None:
    sizes = {3: (150,), 4: (9, 11), 5: (4, 5, 6)}[rank]
    x, w = (2, channels[0], *sizes), (channels[1], channels[0], *[3] * len(sizes))
    assert DOTS not in check(x, w, pads=[1] * 2 * len(sizes), bias=True)
    check(x, w, strides=[2] * len(sizes), dilations=[1] * len(sizes), bias=False)
