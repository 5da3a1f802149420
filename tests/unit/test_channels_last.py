"""Convolutional networks compute with channels last, and give what they give with channels first."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper
from onnx import helper as h

import ascendsched as asc

Array = NDArray[np.float32]
MODES = ("host", "sink")
pytestmark = pytest.mark.sanitize


class Net:
    """Builds a network of images node by node."""

    def __init__(self, channels: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[object] = []
        self.weights: list[TensorProto] = []
        self.channels = channels

    def constant(self, values: object) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(op, list(inputs), [name], **attributes))
        return name

    def numbers(self, *shape: int) -> str:
        return self.constant(self.rng.standard_normal(shape).astype(np.float32) * 0.5)

    def conv(
        self, x: str, inputs: int, outputs: int, kernel: tuple[int, int] = (3, 3), bias: bool = True, **a: object
    ) -> str:
        group = int(str(a.get("group", 1)))
        w = self.numbers(outputs, inputs // group, *kernel)
        rest = (self.numbers(outputs),) if bias else ()
        if "pads" not in a and "auto_pad" not in a:
            a["pads"] = [kernel[0] // 2, kernel[1] // 2] * 2
        return self.add("Conv", x, w, *rest, **a)

    def norm(self, x: str, channels: int) -> str:
        variance = self.constant((self.rng.random(channels) + 0.5).astype(np.float32))
        parts = [self.numbers(channels) for _ in range(3)]
        return self.add("BatchNormalization", x, *parts, variance)

    def model(self, *results: str, size: tuple[object, object] = ("h", "w")) -> ModelProto:
        x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", self.channels, *size])
        outputs = [h.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results]
        graph = h.make_graph(self.nodes, "net", [x], outputs, self.weights)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


def check(model: ModelProto, channels: int, sizes: tuple[tuple[int, int], ...] = ((12, 9), (7, 16), (12, 9))) -> None:
    """Against onnxruntime without its optimisations, in both modes, at several shapes."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    peer = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    for mode in MODES:
        exe = asc.compile(model, mode=mode, threads=1)
        plain = asc.compile(model, mode=mode, threads=1, options=asc.Options(fuse=False))
        for batch, (height, width) in enumerate(sizes, 1):
            x = rng.standard_normal((batch, channels, height, width)).astype(np.float32)
            for got, unfused, wanted in zip(
                exe.run({"x": x}).values(), plain.run({"x": x}).values(), peer.run(None, {"x": x}), strict=True
            ):
                scale = max(1.0, float(np.abs(wanted).max())) if wanted.size else 1.0
                np.testing.assert_allclose(got, wanted, atol=2e-5 * scale)
                np.testing.assert_allclose(unfused, wanted, atol=2e-5 * scale)


def turned(exe: asc.Executable) -> int:
    return sum(bool(re.search("onednn:last|vector:lines", line)) for line in exe.explain().splitlines())


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 2]},
        {"pads": [0, 1, 2, 3]},
        {"dilations": [2, 1], "pads": [2, 1, 2, 1]},
        {"group": 2},
        {"group": 8},
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
        {"auto_pad": "VALID"},
        {"bias": False},
        {"kernel": (1, 1)},
        {"kernel": (1, 1), "strides": [2, 2]},
        {"kernel": (5, 2)},
    ],
    ids=str,
)
def test_convolutions_of_all_kinds(attributes: dict[str, object]) -> None:
    net = Net(3)
    x = net.conv("x", 3, 8)
    x = net.conv(x, 8, 8, **attributes)  # type: ignore[arg-type]
    check(net.model(net.conv(net.add("Relu", x), 8, 5)), 3)


def number(net: Net, value: float) -> str:
    return net.constant(np.float32(value))


def six(net: Net, x: str, high: float = 6) -> str:
    return net.add("Clip", net.add("Add", x, number(net, 3)), number(net, 0), number(net, high))


TAILS: dict[str, Callable[[Net, str], str]] = {
    "Relu": lambda net, x: net.add("Relu", x),
    "LeakyRelu": lambda net, x: net.add("LeakyRelu", x),
    "Sigmoid": lambda net, x: net.add("Sigmoid", x),
    "Tanh": lambda net, x: net.add("Tanh", x),
    "HardSwish": lambda net, x: net.add("HardSwish", x),
    "HardSigmoid": lambda net, x: net.add("HardSigmoid", x),
    "hard swish, spelt out": lambda net, x: net.add("Div", net.add("Mul", x, six(net, x)), number(net, 6)),
    "hard sigmoid, spelt out": lambda net, x: net.add("Mul", six(net, x), number(net, 1 / 6)),
    "hard swish of a hard sigmoid": lambda net, x: net.add("Mul", net.add("Div", six(net, x), number(net, 6)), x),
    "almost a hard swish": lambda net, x: net.add("Div", net.add("Mul", x, six(net, x, 5)), number(net, 6)),
    "swish": lambda net, x: net.add("Mul", net.add("Sigmoid", x), x),
    "gate of another value": lambda net, x: net.add("Mul", net.add("Sigmoid", x), net.conv("x", 3, 8)),
    "constants": lambda net, x: net.add(
        "Sub",
        net.numbers(8, 1, 1),
        net.add("Div", net.add("Mul", net.norm(x, 8), net.numbers(1, 8, 1, 1)), number(net, 3)),
    ),
    "numbers after an activation": lambda net, x: net.add(
        "Add", number(net, 0.5), net.add("Mul", net.add("Relu", x), number(net, -1.5))
    ),
    "a number for each position": lambda net, x: net.add("Mul", x, net.numbers(1, 1, 12, 9)),
    "bounds": lambda net, x: net.add("Clip", x, number(net, -0.5), number(net, 0.7)),
    "wide bounds": lambda net, x: net.add("Clip", x, number(net, -1e30), number(net, 1e3)),
    "upper bound": lambda net, x: net.add("Clip", x, "", number(net, 0.7)),
    "addition to itself": lambda net, x: net.add("Add", x, x),
    "addition of one row": lambda net, x: net.add("Add", x, net.add("ReduceMean", x, axes=[3], keepdims=1)),
}


@pytest.mark.parametrize("is_residual", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("name", TAILS)
def test_what_follows_a_convolution(name: str, is_residual: bool) -> None:
    net = Net(3)
    first = net.conv("x", 3, 8)
    x = net.conv(first, 8, 8)
    if is_residual:
        x = net.add("Add", first, x)
    x = TAILS[name](net, x)
    check(net.model(net.conv(x, 8, 4)), 3, ((12, 9), (12, 9)))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("MaxPool", {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
        ("MaxPool", {"kernel_shape": [2, 3], "dilations": [2, 2], "ceil_mode": 1, "strides": [3, 2]}),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1], "strides": [2, 1]}),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("AveragePool", {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER", "strides": [2, 2]}),
        ("AveragePool", {"kernel_shape": [64, 80], "strides": [64, 80], "ceil_mode": 1}),
        ("MaxPool", {"kernel_shape": [64, 80], "strides": [64, 80], "ceil_mode": 1}),
        ("GlobalAveragePool", {}),
        ("GlobalMaxPool", {}),
        ("ReduceMean", {"axes": [2, 3]}),
        ("ReduceMean", {"axes": [-1, -2], "keepdims": 0}),
        ("ReduceMean", {"axes": [1]}),
    ],
    ids=str,
)
def test_pooling_between_convolutions(op: str, attributes: dict[str, object]) -> None:
    net = Net(3)
    x = net.add("Relu", net.conv(net.conv("x", 3, 8), 8, 8))
    y = net.add(op, x, **attributes)
    results = [y] if op == "ReduceMean" and attributes.get("keepdims", 1) == 0 else []
    if not results:
        results = [net.conv(y, 1 if attributes.get("axes") == [1] else 8, 4, kernel=(1, 1))]
    check(net.model(*results), 3)


@pytest.mark.parametrize("channels", [8, 40, 300])
def test_global_averages_of_all_extents(channels: int) -> None:
    net = Net(3)
    y = net.add("GlobalAveragePool", net.conv("x", 3, channels, kernel=(1, 1)))
    check(net.model(net.conv(y, channels, 4, kernel=(1, 1))), 3, ((1, 1), (1, 97), (31, 64), (3, 257), (14, 14)))


def test_pooling_without_convolutions_takes_windows_larger_than_the_input() -> None:
    net = Net(3)
    pools = [
        net.add(op, "x", kernel_shape=[40, 50], strides=[40, 50], ceil_mode=1) for op in ("MaxPool", "AveragePool")
    ]
    check(net.model(*pools), 3)


def test_joins_cuts_pads_and_resizing_keep_channels_last() -> None:
    net = Net(3)
    a, b = net.conv("x", 3, 8), net.conv("x", 3, 6, kernel=(1, 1))
    joined = net.add("Concat", net.add("Relu", a), b, axis=1)
    net.nodes.append(h.make_node("Split", [joined, net.constant([5, 9])], ["left", "right"], axis=1))
    pads = net.constant([0, 0, 1, 0, 0, 0, 2, 1])
    padded = net.add("Pad", "left", pads, net.constant(np.float32(0.25)))
    mirrored = net.add("Pad", "right", net.constant([0, 1, 1, 2, 0, 0, 1, 1]), mode="reflect")
    larger = net.add("Resize", padded, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
    check(net.model(net.conv(larger, 5, 4), net.conv(mirrored, 10, 3)), 3)


def test_padding_with_zeros_joins_the_convolution_that_reads_it() -> None:
    net = Net(3)
    pads = net.constant([0, 0, 0, 0, 0, 0, 1, 1])
    x = net.conv(net.add("Pad", net.conv("x", 3, 4), pads), 4, 4, strides=[2, 2], pads=[1, 0, 0, 0])
    x = net.add("AveragePool", net.add("Pad", x, net.constant([0, 0, 1, 1, 0, 0, 1, 0])), kernel_shape=[3, 3])
    model = net.model(net.conv(x, 4, 2))
    check(model, 3)
    assert "Pad" not in asc.compile(model).explain()


@pytest.mark.parametrize(
    ("pads", "value"),
    [([0, 0, 1, 1, 0, 0, 1, 1], 0.5), ([0, 1, 1, 1, 0, 0, 1, 1], 0.0), ([0, 0, -1, 0, 0, 0, 1, 1], 0.0)],
    ids=["of another number", "of channels", "that crops"],
)
def test_padding_that_a_convolution_cannot_take_stays(pads: list[int], value: float) -> None:
    net = Net(3)
    x = net.add("Pad", net.conv("x", 3, 4), net.constant(pads), net.constant(np.float32(value)))
    model = net.model(net.conv(x, 4 + pads[1], 2))
    check(model, 3)
    assert "Pad" in asc.compile(model).explain()


def test_padding_read_by_others_too_stays() -> None:
    net = Net(3)
    x = net.add("Pad", net.conv("x", 3, 4), net.constant([0, 0, 1, 1, 0, 0, 1, 1]))
    check(net.model(net.conv(x, 4, 2), net.add("Relu", x)), 3)


def test_gate_of_channels_and_attention_beside_convolutions() -> None:
    net = Net(3)
    x = net.add("Relu", net.conv("x", 3, 8))
    gate = net.conv(
        net.add("Relu", net.conv(net.add("GlobalAveragePool", x), 8, 4, kernel=(1, 1))), 4, 8, kernel=(1, 1)
    )
    x = net.add("Mul", x, net.add("Sigmoid", gate))
    flat = net.add("Reshape", x, net.constant([0, 8, -1]))
    mixed = net.add(
        "MatMul", net.add("Softmax", net.add("MatMul", flat, net.add("Transpose", flat, perm=[0, 2, 1]))), flat
    )
    back = net.add("Reshape", mixed, net.add("Shape", x))
    check(net.model(net.conv(net.add("Add", back, x), 8, 4)), 3)


def test_shapes_of_turned_values_are_those_of_the_model() -> None:
    net = Net(3)
    x = net.add("Transpose", net.add("Relu", net.conv("x", 3, 8)), perm=[0, 2, 3, 1])
    dims = net.add("Cast", net.add("Shape", x), to=TensorProto.FLOAT)
    check(net.model(net.conv(net.add("Transpose", x, perm=[0, 3, 1, 2]), 8, 4), dims), 3)


def test_norm_between_activations_and_convolutions() -> None:
    net = Net(3)
    x = net.conv(net.add("Relu", net.norm(net.add("Relu", net.conv("x", 3, 8)), 8)), 8, 8)
    check(net.model(net.norm(net.add("Concat", x, net.conv("x", 3, 4), axis=1), 12)), 3)


def test_nan_passes_through_what_follows_a_convolution() -> None:
    for op, attributes in (("Relu", {}), ("Clip", {}), ("LeakyRelu", {}), ("HardSwish", {}), ("Sigmoid", {})):
        net = Net(1)
        bounds = (net.constant(np.float32(0)), net.constant(np.float32(6))) if op == "Clip" else ()
        x = net.add(op, net.conv(net.conv("x", 1, 4), 4, 4, kernel=(1, 1)), *bounds, **attributes)
        x_nan = np.zeros((1, 1, 8, 8), np.float32)
        x_nan[0, 0, 3, 3] = np.nan
        result = asc.compile(net.model(x)).run({"x": x_nan})[x]
        assert np.isnan(result).sum() == 4 * 9, op


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize(("outputs", "group"), [(64, 1), (32, 2), (64, 32), (32, 32)], ids=str)
def test_sigmoid_keeps_nan_behind_convolutions_of_all_groups(op: str, outputs: int, group: int) -> None:
    net = Net(3)
    first = net.conv("x", 3, 32, kernel=(1, 1))
    shape = [outputs, 32 // group] if op == "Conv" else [32, outputs // group]
    weights = net.constant(net.rng.standard_normal([*shape, 3, 3]).astype(np.float32))
    y = net.add("Sigmoid", net.add(op, first, weights, group=group, strides=[2, 2]))
    exe, plain = (asc.compile(net.model(y), options=asc.Options(fuse=fuse)) for fuse in (True, False))
    x = np.ones((1, 3, 7, 7), np.float32)
    x[0, 0, 3, 3] = np.nan
    wanted = plain.run({"x": x})[y]
    assert np.isnan(wanted).any()
    np.testing.assert_allclose(exe.run({"x": x})[y], wanted, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("value", [1e38, -np.inf, np.nan, 1.0], ids=str)
@pytest.mark.parametrize("place", ["input", "weights", "bias"])
def test_bounds_of_what_is_no_number_or_huge(value: float, place: str, threads: int) -> None:
    net = Net(2)
    first = net.conv("x", 2, 4, kernel=(1, 1))
    image = np.ones((2, 2, 200, 170), np.float32)
    if place == "input":
        image[0, 0, 3, 4] = value
    weights = net.rng.standard_normal((4, 4, 3, 3)).astype(np.float32)
    bias = np.zeros(4, np.float32)
    if place == "weights":
        weights[1, 2, 1, 1] = value
    if place == "bias":
        bias[2] = value
    x = net.add("Conv", first, net.constant(weights), net.constant(bias), pads=[1, 1, 1, 1])
    y = net.add("Clip", x, number(net, 0), number(net, 6))
    model = net.model(y)
    exe, plain = (asc.compile(model, threads=threads, options=asc.Options(fuse=fuse)) for fuse in (True, False))
    for _ in range(2):
        np.testing.assert_allclose(exe.run({"x": image})[y], plain.run({"x": image})[y], atol=1e-4)
        image[0, 0, 3, 4] = 1.0


def test_empty_batches_and_images_of_one_position() -> None:
    net = Net(3)
    x = net.add("Relu", net.conv("x", 3, 8))
    model = net.model(net.conv(net.add("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 8, 4))
    check(model, 3, ((1, 1), (1, 5)))
    exe = asc.compile(model)
    assert next(iter(exe.run({"x": np.zeros((0, 3, 4, 4), np.float32)}).values())).shape == (0, 4, 4, 4)


def test_image_of_padding_alone_gives_the_bias() -> None:
    net = Net(2)
    model = net.model(net.conv(net.conv("x", 2, 4, pads=[2, 2, 2, 2]), 4, 3))
    exe, plain = asc.compile(model), asc.compile(model, options=asc.Options(fuse=False))
    x = np.zeros((1, 2, 0, 3), np.float32)
    for got, wanted in zip(exe.run({"x": x}).values(), plain.run({"x": x}).values(), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_saved_plan_gives_the_same_bits(tmp_path: Path) -> None:
    net = Net(3)
    x = TAILS["hard swish, spelt out"](net, net.norm(net.conv("x", 3, 8), 8))
    x = net.add("MaxPool", net.add("Relu", net.conv(x, 8, 8)), kernel_shape=[2, 2])
    exe = asc.compile(net.model(net.conv(x, 8, 4)))
    feeds = {"x": np.random.default_rng(3).standard_normal((2, 3, 10, 14)).astype(np.float32)}
    wanted = exe.run(feeds)
    exe.save(tmp_path / "net.asc")
    loaded = asc.load(tmp_path / "net.asc")
    for name, value in loaded.run(feeds).items():
        np.testing.assert_array_equal(value, wanted[name])
    assert turned(loaded) == turned(exe)


def test_convolution_alone_is_left_as_it_is() -> None:
    net = Net(3)
    exe = asc.compile(net.model(net.add("Relu", net.conv("x", 3, 8))))
    exe.run({"x": np.zeros((1, 3, 8, 8), np.float32)})
    assert turned(exe) == 0


def test_wrong_ranks_and_channels_are_refused() -> None:
    net = Net(3)
    exe = asc.compile(net.model(net.conv(net.conv("x", 3, 4), 4, 2)))
    for shape in ((1, 3, 8), (1, 2, 8, 8), (1, 3, 8, 8, 8)):
        with pytest.raises(asc.GraphError):
            exe.run({"x": np.zeros(shape, np.float32)})
    assert exe.run({"x": np.zeros((1, 3, 8, 8), np.float32)})


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("kernel", [[3, 5], [1, 2**40], [3]], ids=str)
def test_kernel_shape_that_the_weights_do_not_have_is_refused(op: str, kernel: list[int]) -> None:
    net = Net(3)
    weights = net.constant(np.ones((8, 8, 3, 3), np.float32))
    y = net.add(op, net.conv("x", 3, 8, kernel=(1, 1)), weights, kernel_shape=kernel)
    exe = asc.compile(net.model(y))
    with pytest.raises(asc.GraphError, match="kernel_shape has other sizes"):
        exe.run({"x": np.zeros((1, 3, 8, 8), np.float32)})
