"""One-dimensional convolutions that models write as two-dimensional ones, with Squeeze and Unsqueeze between them."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx import helper as h

import ascendsched as asc

CHANNELS = 6
pytestmark = pytest.mark.sanitize


class Net:
    """A network on x [n, t, channels], as exporters of channels-last frameworks write it."""

    def __init__(self, axis: int = 2) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[object] = []
        self.constants: list[TensorProto] = []
        self.axis = axis

    def constant(self, values: object) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(values), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def numbers(self, *shape: int) -> str:
        return self.constant(self.rng.standard_normal(shape).astype(np.float32) * 0.5)

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(h.make_node(op, list(inputs), [f"v{len(self.nodes)}"], **attributes))
        return f"v{len(self.nodes) - 1}"

    def start(self) -> str:
        return self.add("Transpose", self.add("Unsqueeze", "x", self.constant([1])), perm=[0, 3, 1, 2])

    def conv(self, x: str, kernel: tuple[int, int] = (1, 3), **attributes: object) -> str:
        return self.add("Conv", x, self.numbers(CHANNELS, CHANNELS, *kernel), auto_pad="SAME_UPPER", **attributes)

    def squeeze(self, x: str) -> str:
        return self.add("Squeeze", x, self.constant([self.axis]))

    def unsqueeze(self, x: str) -> str:
        return self.add("Unsqueeze", x, self.constant([self.axis]))

    def model(self, *results: str) -> ModelProto:
        x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "t", CHANNELS])
        outputs = [h.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results]
        graph = h.make_graph(self.nodes, "net", [x], outputs, self.constants)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


def check(model: ModelProto) -> asc.Executable:
    """Against onnxruntime without its optimisations, in both modes, with and without fusion."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    peer = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    for mode in ("host", "sink"):
        exe = asc.compile(model, mode=mode, threads=1)
        plain = asc.compile(model, mode=mode, threads=1, options=asc.Options(fuse=False))
        for shape in ((1, 6), (3, 5), (1, 1), (2, 40)):
            x = rng.standard_normal((*shape, CHANNELS)).astype(np.float32)
            wanted = peer.run(None, {"x": x})
            for each in (exe, plain):
                for got, result in zip(each.run({"x": x}).values(), wanted, strict=True):
                    np.testing.assert_allclose(got, result, rtol=1e-5, atol=2e-5)
    return exe


def views(exe: asc.Executable) -> int:
    return sum(" view " in line for line in exe.plan.text().splitlines())


@pytest.mark.parametrize("axis", [2, -2])
@pytest.mark.parametrize("shape", [(1, CHANNELS, 1), (CHANNELS, 1), (1, 1, 1), (1,), ()], ids=str)
def test_what_lies_between_joins_the_convolution(axis: int, shape: tuple[int, ...]) -> None:
    net = Net(axis)
    x = net.start()
    for _ in range(2):
        x = net.squeeze(net.conv(x))
        x = net.unsqueeze(net.add("Relu", net.add("Add", x, net.numbers(*shape))))
    exe = check(net.model(net.squeeze(net.conv(x, (1, 1)))))
    assert views(exe) == 2  # at the beginning and at the end
    lines = exe.plan.text().splitlines()
    assert sum(any(conv in line for conv in ("ConvLast", "Conv{", " Conv '")) for line in lines) == 3
    assert not any(f" {op} '" in line for op in ("Add", "Relu") for line in lines)


def test_several_readers_see_the_squeezed_value() -> None:
    net = Net()
    squeezed = net.squeeze(net.conv(net.start()))
    active = net.add("Sigmoid", net.add("Mul", squeezed, net.numbers(CHANNELS, 1)))
    sums = net.add("ReduceSum", active, net.constant([1]), keepdims=0)
    both = net.add("Add", squeezed, active)
    x = net.squeeze(net.conv(net.unsqueeze(both)))
    check(net.model(net.add("Relu", x), sums, squeezed, active))


def test_a_constant_that_broadcasts_other_dimensions() -> None:
    net = Net()
    x = net.squeeze(net.conv(net.start()))
    x = net.add("Add", x, net.numbers(4, 1, 1, 1))  # of more dimensions: stays behind the Squeeze
    x = net.add("Squeeze", net.add("ReduceSum", x, net.constant([0]), keepdims=1), net.constant([0]))
    check(net.model(net.squeeze(net.conv(net.unsqueeze(net.add("Relu", x))))))


def test_an_unsqueeze_at_another_place_stays() -> None:
    net = Net()
    x = net.add("Relu", net.squeeze(net.conv(net.start())))
    x = net.add("Unsqueeze", x, net.constant([3]))
    check(net.model(net.conv(x, (3, 1))))


def test_windows_that_widen_the_dimension_keep_the_squeeze_and_its_error() -> None:
    net = Net()
    wide = net.add("Conv", net.start(), net.numbers(CHANNELS, CHANNELS, 1, 1), pads=[1, 0, 1, 0])
    model = net.model(net.conv(net.unsqueeze(net.add("Relu", net.squeeze(wide)))))
    for fuse in (True, False):
        exe = asc.compile(model, mode="sink", threads=1, options=asc.Options(fuse=fuse))
        with pytest.raises(asc.AscendSchedError, match="Squeeze"):
            exe.run({"x": np.ones((1, 4, CHANNELS), np.float32)})
