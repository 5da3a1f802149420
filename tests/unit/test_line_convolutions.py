"""Convolutions with channels last by our own code: few channels, one position, or channels kept apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper
from onnx import helper as h

import ascendsched as asc
from ascendsched import _core
from tests.unit.test_channels_last import MODES, TAILS, Net, check
from tests.unit.test_transposed_convolutions import HAS_ONEDNN

pytestmark = pytest.mark.sanitize

Array = NDArray[np.float32]
ROOT = Path(__file__).resolve().parents[2]


def lines(exe: asc.Executable) -> int:
    return exe.explain().count("vector:lines")


def narrow_net(channels: int, group: int = 1, **attributes: object) -> Net:
    """A convolution of `channels`, between one that makes them and one that reads them."""
    net = Net(3)
    first = net.conv("x", 3, channels, kernel=(1, 1))
    y = net.conv(first, channels, channels, group=group, **attributes)  # type: ignore[arg-type]
    net.conv(net.add("Relu", y), channels, 4, kernel=(1, 1))
    return net


def last_of(net: Net) -> str:
    return f"v{len(net.nodes) - 1}"


SIZES = ((12, 9), (9, 31), (3, 4), (1, 60))


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel": (1, 1)},
        {"kernel": (1, 1), "strides": [2, 2]},
        {"kernel": (1, 1), "pads": [1, 0, 0, 2]},
        {},
        {"bias": False},
        {"strides": [2, 3], "pads": [0, 2, 2, 1]},
        {"dilations": [1, 2], "pads": [1, 2, 1, 2]},
        {"kernel": (2, 5), "pads": [1, 4, 0, 0]},
    ],
    ids=str,
)
@pytest.mark.parametrize("channels", [1, 8, 13, 20, 24, 40, 64, 77])
def test_mixed_channels(channels: int, attributes: dict[str, object]) -> None:
    net = narrow_net(channels, **attributes)  # type: ignore[arg-type]
    check(net.model(last_of(net)), 3, SIZES)


@pytest.mark.parametrize("kernel", [2, 3, 5, 7, 8, 11])
@pytest.mark.parametrize("strides", [[1, 1], [2, 2], [1, 2], [3, 3]], ids=str)
@pytest.mark.parametrize("channels", [2, 8, 13, 24, 32, 77, 512])
def test_channels_kept_apart(channels: int, strides: list[int], kernel: int) -> None:
    net = narrow_net(channels, group=channels, kernel=(kernel, kernel), strides=strides)
    check(net.model(last_of(net)), 3, SIZES)


@pytest.mark.parametrize("group", [1, 24], ids=["mixed", "apart"])
@pytest.mark.parametrize("name", TAILS)
@pytest.mark.parametrize("is_residual", [False, True], ids=["", "residual"])
def test_what_follows(name: str, group: int, is_residual: bool) -> None:
    net = Net(3)
    first = net.conv("x", 3, 8, kernel=(1, 1))
    x = net.conv(first, 8, 8, group=min(group, 8))
    if is_residual:
        x = net.add("Add", x, first)
    x = TAILS[name](net, x)
    check(net.model(net.conv(x, 8, 4, kernel=(1, 1))), 3, ((12, 9), (12, 9)))


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [2, 2]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
        {"strides": [3, 2], "kernel": (2, 5), "pads": [0, 2, 1, 0]},
        {"strides": [1, 4], "kernel": (1, 2), "pads": [0, 1, 0, 0]},
        {"strides": [2, 3], "dilations": [2, 1]},
        {"strides": [1, 1], "dilations": [1, 2]},
        {"kernel": (4, 4), "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
    ids=str,
)
@pytest.mark.parametrize("channels", [1, 3, 16, 40, 64])
def test_transposed(channels: int, attributes: dict[str, object]) -> None:
    net = Net(3)
    others = {name: value for name, value in attributes.items() if name != "kernel"}
    first = net.conv("x", 3, 5, kernel=(1, 1))
    weights = net.numbers(5, channels, *attributes.get("kernel", (3, 3)))  # type: ignore[misc]
    y = net.add("ConvTranspose", first, weights, net.numbers(channels), **others)
    y = net.add("Sigmoid", net.add("Relu", y))
    check(net.model(net.conv(y, channels, 4, kernel=(1, 1))), 3, SIZES)


def of_rank(rank: int, group: int) -> ModelProto:
    """Two convolutions of 24 channels over signals (rank 3) or volumes (rank 5)."""
    rng = np.random.default_rng(rank)
    ones, threes = [1] * (rank - 2), [3] * (rank - 2)
    shapes = {"w0": (24, 3, *ones), "w1": (24, 24 // group, *threes), "w2": (2, 24, *ones)}
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.3, name)
        for name, shape in shapes.items()
    ]
    nodes = [
        h.make_node("Conv", ["x", "w0"], ["a"]),
        h.make_node("Conv", ["a", "w1"], ["b"], pads=[1] * 2 * (rank - 2), group=group),
        h.make_node("Conv", ["b", "w2"], ["y"]),
    ]
    x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, *["d" + str(i) for i in range(rank - 2)]])
    y = h.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = h.make_graph(nodes, "net", [x], [y], weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("group", [1, 24], ids=["mixed", "apart"])
@pytest.mark.parametrize("shape", [(2, 3, 41), (1, 3, 700), (2, 3, 4, 5, 6)], ids=str)
def test_signals_and_volumes(shape: tuple[int, ...], group: int) -> None:
    model = of_rank(len(shape), group)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = asc.compile(model, options=asc.Options(fuse=False)).run({"x": x})["y"]
    for mode in MODES:
        np.testing.assert_allclose(asc.compile(model, mode=mode).run({"x": x})["y"], wanted, atol=2e-5)


IN_V3 = """
from tests.unit import test_line_convolutions as lines
for channels in (3, 13, 40):
    lines.test_mixed_channels(channels, {})
    lines.test_mixed_channels(channels, {"kernel": (1, 1)})
    lines.test_channels_kept_apart(channels, [1, 1], 5)
    lines.test_channels_kept_apart(channels, [1, 1], 11)
    lines.test_transposed(channels, {"strides": [2, 2]})
"""


@pytest.mark.skipif(_core.build_info()["isa"] != "v4", reason="no lesser set to test besides")
def test_the_lesser_instruction_set(tmp_path: Path) -> None:
    paths = [str(Path(asc.__file__).parents[1]), str(ROOT)]
    environment = {**os.environ, "ASCENDSCHED_ISA": "v3", "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([sys.executable, "-c", IN_V3], env=environment, cwd=tmp_path, check=True)


@pytest.mark.parametrize("group", [1, 24], ids=["mixed", "apart"])
def test_every_number_of_threads_gives_the_same_bits(group: int) -> None:
    net = narrow_net(24, group=group)
    model = net.model(last_of(net))
    x = np.random.default_rng(0).standard_normal((3, 3, 200, 150)).astype(np.float32)
    results = [asc.compile(model, threads=n).run({"x": x})[last_of(net)] for n in (1, 2)]
    np.testing.assert_array_equal(results[0], results[1])


def test_a_residual_that_is_written_over_is_added_once() -> None:
    net = Net(3)
    x = net.add("Relu", net.conv("x", 3, 24, kernel=(1, 1)))
    for _ in range(3):
        x = net.add("Relu", net.add("Add", net.conv(x, 24, 24, group=24), x))
    check(net.model(net.conv(x, 24, 4, kernel=(1, 1))), 3, ((5, 9), (5, 10), (7, 33)))


@pytest.mark.skipif(not HAS_ONEDNN, reason="networks have channels last where oneDNN is")
@pytest.mark.skipif(_core.build_info()["isa"] != "v4", reason="other vectors, other choices")
def test_plans_say_which_convolutions_are_lines() -> None:
    x = np.zeros((1, 3, 20, 20), np.float32)
    for channels, group, kernel, count in ((8, 8, 3, 3), (24, 1, 3, 3), (64, 1, 1, 3), (64, 1, 3, 2), (512, 512, 3, 2)):
        net = narrow_net(channels, group=group, kernel=(kernel, kernel))
        exe = asc.compile(net.model(last_of(net)), mode="sink", threads=1)
        exe.run({"x": x})
        assert lines(exe) == count, (channels, group, kernel)


@pytest.mark.parametrize("group", [1, 8], ids=["mixed", "apart"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
def test_what_is_no_number_stays_where_windows_see_it(value: float, group: int) -> None:
    net = Net(8)
    x = net.conv("x", 8, 8, kernel=(1, 1), group=8, bias=False)
    y = net.add("Clip", net.conv(x, 8, 8, group=group), net.constant(np.float32(0)), net.constant(np.float32(6)))
    model = net.model(y)
    image = np.ones((1, 8, 12, 20), np.float32)
    image[0, 3, 0, 5] = value
    exe, plain = (asc.compile(model, options=asc.Options(fuse=fuse)) for fuse in (True, False))
    np.testing.assert_allclose(exe.run({"x": image})[y], plain.run({"x": image})[y], atol=1e-4)
