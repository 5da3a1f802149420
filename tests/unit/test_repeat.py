"""Runs that repeat one of the last signatures: the shortest way of a call, and what it must not forget."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model

MODES = ["host", "sink", "auto"]
pytestmark = pytest.mark.sanitize


def chain(*ops, shape=(3, 4)):
    nodes = [h.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(ops)]
    return model(nodes, [info("v0", shape=shape)], [info(f"v{len(ops)}")])


def lookup():
    node = h.make_node("Gather", ["x", "i"], ["y"], name="look")
    return model([node], [info("x", shape=(3, 4)), info("i", T.INT64, (2,))], [info("y")])


@pytest.mark.parametrize("mode", MODES)
def test_a_device_that_computes_nothing_gives_zeros_however_often_a_run_repeats(mode):
    exe = asc.compile(chain("Tanh", "Relu"), device="null", mode=mode, threads=1)
    x, y = np.ones((3, 4), np.float32), np.empty((3, 4), np.float32)
    binding, fresh = exe.bind({"v0": x}, {"v2": y}), exe.bind({"v0": x})
    for _ in range(12):
        y.fill(7)
        assert not binding.run()["v2"].any()
        assert not fresh.run()["v2"].any()
        assert not exe(x).any()
        assert not exe.run({"v0": x})["v2"].any()
    assert exe.stats()["runs"] == 48


@pytest.mark.parametrize("mode", MODES)
def test_every_bound_run_gives_a_dict_of_its_own_with_the_bound_arrays(mode):
    exe = asc.compile(chain("Neg"), mode=mode, threads=1)
    x, y = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    binding = exe.bind({"v0": x}, {"v1": y})
    for i in range(12):
        x.fill(i)
        results = binding.run()
        assert results["v1"] is y
        assert (y == -i).all()
        results["v1"] = None
        results["more"] = 1


@pytest.mark.parametrize("mode", MODES)
def test_an_error_in_a_repeated_bound_run_is_raised_and_the_next_run_works(mode):
    exe = asc.compile(lookup(), mode=mode, threads=1)
    x, i = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([0, 2])
    binding = exe.bind({"x": x, "i": i})
    for _ in range(5):
        np.testing.assert_array_equal(binding.run()["y"], x[i])
    i[1] = 9
    for _ in range(3):
        with pytest.raises(asc.GraphError, match="Gather 'look'"):
            binding.run()
    i[1] = 1
    np.testing.assert_array_equal(binding.run()["y"], x[i])


def test_bindings_hold_while_other_shapes_run_between():
    exe = asc.compile(chain("Neg", shape=("n", 4)), mode="sink", threads=1)
    few, many = (np.full((n, 4), n, np.float32) for n in (2, 5))
    bindings = [exe.bind({"v0": x}, {"v1": np.empty_like(x)}) for x in (few, many)]
    for turn in range(20):
        binding, x = bindings[turn // 4 % 2], (few, many)[turn // 4 % 2]
        np.testing.assert_array_equal(binding.run()["v1"], -x)


def test_the_run_of_a_binding_keeps_what_it_needs_and_no_more():
    exe = asc.compile(chain("Neg"), mode="sink", threads=1)
    x = np.ones((3, 4), np.float32)
    y = np.empty((3, 4), np.float32)
    kept = weakref.ref(y)
    run = exe.bind({"v0": x}, {"v1": y}).run
    del exe, y
    gc.collect()
    assert (run()["v1"] == -1).all()
    del run
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [2, 4, 7])
def test_shapes_that_take_turns_get_their_own_results_in_every_way_to_call(mode, count):
    exe = asc.compile(chain("Neg", "Abs", shape=("n", 4)), mode=mode, threads=1)
    inputs = [np.random.default_rng(n).standard_normal((n + 1, 4)).astype(np.float32) for n in range(count)]
    bindings = [exe.bind({"v0": x}, {"v2": np.empty_like(x)}) for x in inputs]
    fresh = [exe.bind({"v0": x}) for x in inputs]
    for turn in range(10):
        order = range(count) if turn < 6 else np.random.default_rng(turn).integers(count, size=count)
        for i in order:
            x, wanted = inputs[i], abs(inputs[i])
            np.testing.assert_array_equal(exe(x), wanted)
            np.testing.assert_array_equal(exe.run({"v0": x})["v2"], wanted)
            np.testing.assert_array_equal(bindings[i].run()["v2"], wanted)
            np.testing.assert_array_equal(fresh[i].run()["v2"], wanted)
    assert exe.stats()["runs"] == 4 * 10 * count


def test_shapes_that_take_turns_hold_while_caches_are_emptied_and_changed():
    exe = asc.compile(chain("Neg", shape=("n", 4)), mode="sink", threads=1)
    inputs = [np.full((n, 4), n, np.float32) for n in (1, 2, 3)]
    bindings = [exe.bind({"v0": x}) for x in inputs]
    for turn in range(30):
        for x, binding in zip(inputs, bindings, strict=True):
            np.testing.assert_array_equal(binding.run()["v1"], -x)
        if turn % 5 == 4:
            exe._core.drop_cache_entries(turn)
        if turn % 10 == 9:
            exe.resize_caches(1 << 20, 1 << 20)


def test_an_error_in_one_of_two_shapes_that_take_turns_is_raised_and_the_others_work():
    node = h.make_node("Gather", ["x", "i"], ["y"], name="look")
    exe = asc.compile(
        model([node], [info("x", shape=("n", 4)), info("i", T.INT64, (2,))], [info("y")]), mode="sink", threads=1
    )
    few, many, i = np.ones((2, 4), np.float32), np.ones((5, 4), np.float32), np.array([0, 4])
    for _ in range(6):
        with pytest.raises(asc.GraphError, match="Gather 'look'"):
            exe(few, i)
        assert exe(many, i).shape == (2, 4)
