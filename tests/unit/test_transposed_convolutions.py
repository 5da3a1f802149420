"""Transposed convolutions, and networks of signals and volumes, with channels last where that turns less."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx import helper as h

import ascendsched as asc
from ascendsched import _core

pytestmark = pytest.mark.sanitize
RNG = np.random.default_rng(5)
HAS_ONEDNN = _core.build_info()["onednn"] != "absent"  # without it, nothing is computed with channels last


def weights(name: str, *shape: int) -> TensorProto:
    return numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32) * np.float32(0.3), name)


def network(nodes: list[NodeProto], constants: list[TensorProto], rank: int, channels: int) -> ModelProto:
    dims: list[Any] = ["n", channels, *(f"d{i}" for i in range(rank - 2))]
    x = h.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    y = h.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = h.make_graph(nodes, "net", [x], [y], constants)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


def between(node: NodeProto, constants: list[TensorProto], kernel: tuple[int, ...], into: int, out: int) -> ModelProto:
    """`node` reads "a" and makes "b", between two convolutions."""
    rank = len(kernel) + 2
    ends = [weights("first", into, 3, *[3] * (rank - 2)), weights("last", 2, out, *[1] * (rank - 2))]
    nodes = [
        h.make_node("Conv", ["x", "first"], ["a"], pads=[1] * (2 * (rank - 2))),
        node,
        h.make_node("Conv", ["b", "last"], ["y"]),
    ]
    return network(nodes, ends + constants, rank, 3)


def check(model: ModelProto, *sizes: tuple[int, ...]) -> asc.Executable:
    """Against onnxruntime without its optimisations, in both modes, with and without fusion."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    peer = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fused = [asc.compile(model, mode=mode, threads=1) for mode in ("host", "sink")]
    for size, exe in itertools.product(sizes, [*fused, asc.compile(model, options=asc.Options(fuse=False))]):
        x = RNG.standard_normal((2, 3, *size)).astype(np.float32)
        wanted = peer.run(None, {"x": x})[0]
        got = exe.run({"x": x})["y"]
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=2e-5 * max(1.0, float(np.abs(wanted).max())))
    return fused[0]


KINDS: dict[str, tuple[tuple[int, ...], int, dict[str, Any]]] = {
    "stride of the kernel": ((2, 2), 1, {"strides": [2, 2]}),
    "overlapping": ((4, 3), 1, {"strides": [2, 1], "pads": [1, 0, 1, 2]}),
    "gaps": ((2, 2), 1, {"strides": [3, 4]}),
    "padding at the end": ((3, 3), 1, {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 0]}),
    "dilation": ((3, 2), 1, {"dilations": [2, 3], "strides": [2, 1]}),
    "groups": ((3, 3), 2, {"strides": [2, 2]}),
    "every channel by itself": ((3, 3), 4, {"pads": [1, 1, 1, 1]}),
    "shape that is given": ((3, 3), 1, {"strides": [2, 2], "output_shape": [14, 11]}),
    "as large as the stride": ((3, 3), 1, {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "signal": ((4,), 1, {"strides": [2], "pads": [1, 1]}),
    "volume": ((2, 3, 2), 1, {"strides": [2, 1, 2], "pads": [0, 1, 0, 0, 1, 1]}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_bias", [False, True], ids=["", "bias"])
def test_transposed_convolutions_of_all_kinds(kind: str, has_bias: bool) -> None:
    kernel, group, attributes = KINDS[kind]
    names, constants = ["a", "w"], [weights("w", 4, 6 // group if group < 4 else 1, *kernel)]
    out = 6 if group < 4 else 4
    if has_bias:
        names.append("bias")
        constants.append(weights("bias", out))
    node = h.make_node("ConvTranspose", names, ["b"], group=group, **attributes)
    size = (7, 5, 6)[: len(kernel)]
    check(between(node, constants, kernel, 4, out), size, tuple(d + 1 for d in size) if "shape" not in kind else size)


def test_a_shape_beyond_what_is_reached_ends_in_the_bias() -> None:
    node = h.make_node("ConvTranspose", ["a", "w", "bias"], ["b"], strides=[2, 2], output_shape=[19, 20])
    model = between(node, [weights("w", 4, 6, 2, 2), weights("bias", 6)], (2, 2), 4, 6)
    x = RNG.standard_normal((1, 3, 7, 5)).astype(np.float32)
    wanted = asc.compile(model, options=asc.Options(fuse=False)).run({"x": x})["y"]
    np.testing.assert_allclose(asc.compile(model).run({"x": x})["y"], wanted, atol=1e-5)


@pytest.mark.parametrize("out", [1, 3, 4, 5])
def test_a_few_planes_are_made_as_planes(out: int) -> None:
    """As masks and images are, where a vector of channels would be padding for the most part."""
    nodes = [
        h.make_node("Conv", ["x", "first"], ["a"], pads=[1] * 4),
        h.make_node("Relu", ["a"], ["b"]),
        h.make_node("Conv", ["b", "second"], ["c"], pads=[1] * 4),
        h.make_node("ConvTranspose", ["c", "w", "bias"], ["d"], strides=[2, 2], pads=[1] * 4),
        h.make_node("Sigmoid", ["d"], ["y"]),
    ]
    constants = [weights("first", 16, 3, 3, 3), weights("second", 16, 16, 3, 3), weights("w", 16, out, 4, 4)]
    exe = check(network(nodes, [*constants, weights("bias", out)], 4, 3), (9, 7), (16, 16))
    assert len(re.findall("onednn:last|vector:lines", exe.explain())) == (2 + (out > 4)) * HAS_ONEDNN


@pytest.mark.parametrize("group", [1, 2])
def test_normalisation_and_activation_join_the_transposed_convolution(group: int, tmp_path: Path) -> None:
    statistics = [weights(name, 6) for name in ("scale", "shift", "mean")]
    variance = numpy_helper.from_array((RNG.random(6) + 0.5).astype(np.float32), "variance")
    nodes = [
        h.make_node("Conv", ["x", "first"], ["a"]),
        h.make_node("ConvTranspose", ["a", "w"], ["b"], strides=[2, 2], group=group),
        h.make_node("BatchNormalization", ["b", "scale", "shift", "mean", "variance"], ["c"]),
        h.make_node("Relu", ["c"], ["y"]),
    ]
    constants = [weights("first", 4, 3, 1, 1), weights("w", 4, 6 // group, 3, 3), *statistics, variance]
    exe = check(network(nodes, constants, 4, 3), (5, 6))
    assert "BatchNormalization{" not in exe.plan.text()
    assert len(re.findall("onednn:last|vector:lines", exe.explain())) == 2 * HAS_ONEDNN
    feeds = {"x": np.ones((1, 3, 4, 4), np.float32)}
    wanted = exe.run(feeds)["y"]
    exe.save(tmp_path / "net.asc")
    loaded = asc.load(tmp_path / "net.asc")
    np.testing.assert_array_equal(loaded.run(feeds)["y"], wanted)
    assert len(re.findall("onednn:last|vector:lines", loaded.explain())) == 2 * HAS_ONEDNN


@pytest.mark.parametrize("rank", [3, 5])
def test_signals_and_volumes_between_convolutions_keep_channels_last(rank: int) -> None:
    axes = rank - 2
    size = (12, 9, 7)[:axes]
    nodes = [
        h.make_node("Conv", ["x", "first"], ["a"], pads=[1] * (2 * axes)),
        h.make_node("Pad", ["a", "pads"], ["b"], mode="reflect"),
        h.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2] * axes),
        h.make_node("Conv", ["c", "second"], ["d"]),
        h.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["e"]),
        h.make_node("GlobalAveragePool", ["e"], ["f"]),
        h.make_node("ReduceMean", ["d"], ["g"], axes=list(range(2, rank))),
        h.make_node("Add", ["f", "g"], ["y"]),
    ]
    pads = numpy_helper.from_array(np.array([0, 0] + [1] * axes + [0, 0] + [2] * axes, np.int64), "pads")
    parts = [weights(name, 8) for name in ("scale", "shift", "mean")]
    parts.append(numpy_helper.from_array((RNG.random(8) + 0.5).astype(np.float32), "variance"))
    constants = [weights("first", 8, 3, *[3] * axes), weights("second", 8, 8, *[3] * axes), pads, *parts]
    exe = check(network(nodes, constants, rank, 3), size)
    assert exe.plan.text().count("ConvLast") == 2 * HAS_ONEDNN


def test_signals_that_would_be_turned_at_every_step_stay() -> None:
    nodes = [
        h.make_node("Conv", ["x", "first"], ["a"]),
        h.make_node("InstanceNormalization", ["a", "scale", "shift"], ["b"]),
        h.make_node("Conv", ["b", "second"], ["c"]),
        h.make_node("InstanceNormalization", ["c", "scale", "shift"], ["y"]),
    ]
    constants = [weights("first", 8, 3, 3), weights("second", 8, 8, 3), weights("scale", 8), weights("shift", 8)]
    assert "ConvLast" not in check(network(nodes, constants, 3, 3), (12,)).plan.text()


def test_signals_turned_once_on_the_way_do_not_come_back_turned() -> None:
    nodes = [
        h.make_node("Conv", ["x", "first"], ["a"]),
        h.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1]),
        h.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2]),
        h.make_node("Transpose", ["c"], ["d"], perm=[0, 2, 1]),
        h.make_node("Conv", ["d", "second"], ["e"]),
        h.make_node("Conv", ["e", "third"], ["y"]),
    ]
    constants = [weights("first", 8, 3, 3), weights("second", 8, 7, 3), weights("third", 2, 8, 3)]
    exe = check(network(nodes, constants, 3, 3), (12,))
    assert exe.plan.text().count("ConvLast") == 3 * HAS_ONEDNN
    assert "PoolLast" not in exe.plan.text()


@pytest.mark.parametrize("strides", [[1, 3], [3, 1]], ids=str)
@pytest.mark.parametrize("kernel", [(3, 1), (1, 3), (3, 3)], ids=str)
def test_weights_that_one_shape_packed_serve_no_shape_that_lies_otherwise(
    kernel: tuple[int, int], strides: list[int]
) -> None:
    node = h.make_node("ConvTranspose", ["a", "w"], ["b"], strides=strides)
    model = between(node, [weights("w", 16, 16, *kernel)], kernel, 16, 16)
    check(model, (9, 7), (7, 1), (1, 7), (9, 7))


@pytest.mark.parametrize("channels", [13, 16, 24, 64])
@pytest.mark.parametrize("kernel", [(3, 1), (3, 3), (1, 4)], ids=str)
def test_convolutions_and_transposed_ones_share_weights(kernel: tuple[int, int], channels: int) -> None:
    constants = [weights("first", channels, 3, 1, 1), weights("w", channels, channels, *kernel)]
    nodes = [
        h.make_node("Conv", ["x", "first"], ["a"]),
        h.make_node("Conv", ["a", "w"], ["b"]),
        h.make_node("ConvTranspose", ["b", "w"], ["c"]),
        h.make_node("ConvTranspose", ["c", "w"], ["d"], strides=[2, 2]),
        h.make_node("Conv", ["d", "w"], ["y"]),
    ]
    check(network(nodes, constants, 4, 3), (7, kernel[1]), (9, 23), (5, 40))
