"""Operators of users: Python functions, by name in the builder, in ONNX models and in torch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import ascendsched as asc

_numbers = itertools.count()


def _name() -> str:
    return f"own::op{next(_numbers)}"


def _run(name: str, *arrays: Any, outputs: int = 1, mode: str = "auto", **attributes: Any) -> Any:
    g = asc.Graph()
    inputs = [g.input(f"x{i}", a.dtype.name, a.shape) for i, a in enumerate(arrays)]
    made = g.op(name, *inputs, outputs=outputs, name="the_node", **attributes)
    for i, value in enumerate(made if outputs > 1 else [made]):
        g.output(value, f"y{i}")
    exe = asc.compile(g, mode=mode)
    return [exe(*arrays) for _ in range(3)][-1]


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_function_on_arrays_is_an_operator(mode: str) -> None:
    name = _name()

    @asc.op(name, infer_shape=lambda x, factor=1.0: x)
    def scale(x: Any, factor: float = 1.0) -> Any:
        return x * np.float32(factor)

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(_run(name, x, mode=mode, factor=3.0), 3 * x)
    np.testing.assert_array_equal(scale(x, factor=2.0), 2 * x)


def test_operator_has_several_results_of_several_types() -> None:
    name = _name()

    @asc.op(name, types=[0, "int64"], infer_shape=lambda x: [x, (x[0],)])
    def both(x: Any) -> Any:
        return x + 1, x.argmax(1)

    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    added, places = _run(name, x, outputs=2)
    np.testing.assert_array_equal(added, x + 1)
    np.testing.assert_array_equal(places, x.argmax(1))
    assert places.dtype == np.int64


def test_tiling_is_made_once_for_the_same_shapes_and_attributes() -> None:
    name, made = _name(), []

    def tile(x: Any, power: int) -> int:
        made.append(x)
        return int(np.prod(x)) ** power

    @asc.op(name, infer_shape=lambda x, power: x, tiling=tile)
    def fill(x: Any, power: int, tiling: int) -> Any:
        return np.full_like(x, tiling)

    g = asc.Graph()
    x = g.input("x", "float32", ("n",))
    g.output(g.op(name, x, power=2), "y")
    exe = asc.compile(g)
    for n, seed in ((3, 0), (3, 1), (4, 2), (3, 3)):
        assert exe(np.full(n, seed, np.float32)).tolist() == [n**2] * n
    assert made == [(3,), (4,)]


def test_operator_is_found_in_onnx_models() -> None:
    from onnx import TensorProto, helper

    name = _name()

    @asc.op(name, infer_shape=lambda a, b, axes=(): a)
    def combine(a: Any, b: Any, axes: Any = ()) -> Any:
        return a + b.sum(tuple(axes), keepdims=True)

    domain, _, op_type = name.partition("::")
    node = helper.make_node(op_type, ["a", "b"], ["y"], "mine", domain=domain, axes=[0, 1])
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2]) for n in ("a", "b", "y")]
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)])
    a, b = np.ones((3, 2), np.float32), np.full((3, 2), 2, np.float32)
    np.testing.assert_array_equal(asc.compile(model)(a, b), a + 12)


def test_operator_is_found_in_torch() -> None:
    torch = pytest.importorskip("torch")
    from ascendsched import torch as back_end

    name, calls = _name(), []

    @asc.op(name, infer_shape=lambda x, bias: x)
    def shift(x: Any, bias: float) -> Any:
        calls.append(bias)
        return x + np.float32(bias)

    schema = "(Tensor x, float bias) -> Tensor"
    shift_in_torch = torch.library.custom_op(name, lambda x, bias: x + bias, mutates_args=(), schema=schema)

    shift_in_torch.register_fake(lambda x, bias: torch.empty_like(x))
    torch._dynamo.reset()
    back_end.reset()
    run = torch.compile(lambda x: shift_in_torch(x * 2, 0.5) + 1, backend=back_end.backend, fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(run(torch.ones(3)), torch.full((3,), 3.5))
    assert calls == [0.5]
    assert back_end.stats()["fallbacks"] == {}


def _broken(kind: str) -> Any:
    if kind == "raises":
        return lambda x: 1 / 0
    if kind == "shape":
        return lambda x: x[:1]
    if kind == "count":
        return lambda x: (x, x)
    if kind == "type":
        return lambda x: x.astype(np.float64)
    if kind == "nothing":
        return lambda x: None
    return lambda: None


@pytest.mark.parametrize("kind", ["raises", "shape", "count", "type", "nothing", "arguments"])
def test_errors_carry_the_names_of_operator_and_node(kind: str) -> None:
    name = _name()
    asc.op(name, infer_shape=lambda x: x)(_broken(kind))
    with pytest.raises(asc.GraphError, match=rf"{name} 'the_node'"):
        _run(name, np.ones(3, np.float32))


@pytest.mark.parametrize("found", [(-1,), ("three",), None, [(1,), (1,)], 7])
def test_infer_shape_that_gives_nonsense_is_an_error(found: Any) -> None:
    name = _name()
    asc.op(name, infer_shape=lambda x: found)(lambda x: x)
    with pytest.raises(asc.GraphError, match=name):
        _run(name, np.ones(3, np.float32))


def test_kernel_cannot_change_its_inputs() -> None:
    name = _name()

    @asc.op(name, infer_shape=lambda x: x)
    def vandal(x: Any) -> Any:
        x[:] = 0
        return x

    x = np.ones(3, np.float32)
    with pytest.raises(asc.GraphError, match="read-only"):
        _run(name, x)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["gelu", "::gelu", "my::", "", None, "ai.onnx::Relu"])
def test_names_need_a_domain(name: Any) -> None:
    with pytest.raises(asc.PlanError, match="domain"):
        asc.op(name, infer_shape=lambda x: x)


@pytest.mark.parametrize("types", [(), ("float31",), (-1,), (None,)])
def test_types_have_to_exist(types: Any) -> None:
    with pytest.raises(asc.PlanError, match="types"):
        asc.op(_name(), infer_shape=lambda x: x, types=types)


def test_operator_that_nobody_registered_is_named() -> None:
    with pytest.raises(asc.GraphError, match="nobody::knows"):
        asc.Graph().op("nobody::knows")


def test_number_of_results_has_to_fit() -> None:
    name = _name()
    asc.op(name, infer_shape=lambda x: x)(lambda x: x)
    with pytest.raises(asc.GraphError, match="1 results"):
        _run(name, np.ones(3, np.float32), outputs=2)


@pytest.mark.parametrize("use", ["run", "run_async", "stats", "explain"])
def test_operator_that_uses_the_executable_that_runs_it_gets_an_error(use: str) -> None:
    name = _name()
    made: list[asc.Executable] = []

    @asc.op(name, infer_shape=lambda x: x)
    def nested(x: Any) -> Any:
        getattr(made[0], use)(*([{"x": x}] if use.startswith("run") else []))
        return x

    g = asc.Graph()
    g.output(g.op(name, g.input("x", "float32", (2,)), name="the_node"), "y")
    made.append(asc.compile(g))
    with pytest.raises(asc.AscendSchedError, match=r"the_node.*uses the executable that runs it; compile"):
        made[0](np.zeros(2, np.float32))


def test_operator_may_drop_and_wait_for_earlier_runs_of_its_model() -> None:
    name = _name()
    earlier: list[Any] = []

    @asc.op(name, infer_shape=lambda x: x)
    def late(x: Any) -> Any:
        if len(earlier) == 2:
            earlier.pop()
            earlier.pop().wait()
        return x + 1

    g = asc.Graph()
    g.output(g.op(name, g.input("x", "float32", (2,))), "y")
    exe = asc.compile(g)
    x = np.zeros(2, np.float32)
    for i in range(2):
        earlier.append(exe.run_async({"x": x + i}))
    np.testing.assert_array_equal(exe(x + 2), x + 3)
    assert earlier == []
    np.testing.assert_array_equal(exe(x), x + 1)
