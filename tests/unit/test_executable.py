"""The public face: modes, inputs, results, bindings, errors."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from . import onnx_models

MODES = ["host", "sink", "auto"]
pytestmark = pytest.mark.sanitize


def rows(n: int, seed: int = 0, width: int = 16) -> np.ndarray:
    return np.random.default_rng([n, seed]).standard_normal((n, width)).astype(np.float32)


def mlp_reference(model, x):
    from onnx import numpy_helper

    w = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}
    y = x.astype(np.float64)
    for i in range(len(w) // 2):
        y = np.tanh(y @ w[f"w{i}"] + w[f"b{i}"])
    return y


@pytest.mark.parametrize("mode", MODES)
def test_results_equal_float64_numpy_at_every_shape(mode):
    model = onnx_models.mlp()
    exe = asc.compile(model, mode=mode, threads=1)
    for seed in range(3):
        for n in (1, 2, 7, 33, 1):
            x = rows(n, seed)
            np.testing.assert_allclose(exe(x), mlp_reference(model, x), atol=1e-5)


def test_modes_give_the_same_bits_on_run_1_and_on_run_1000():
    model = onnx_models.mlp()
    exes = [asc.compile(model, mode=mode, threads=1) for mode in MODES]
    first = {n: exes[0](rows(n)) for n in range(1, 9)}
    for i in range(1000):
        n = 1 + i % 8
        for exe in exes:
            assert np.array_equal(exe(rows(n)), first[n])
    for exe in exes:
        assert np.array_equal(exe.run_async({"x": rows(3)}).wait(60)["y"], first[3])


def test_host_mode_launches_every_task_and_sink_mode_submits_once():
    unfused = asc.Options(fuse=False)
    host = asc.compile(onnx_models.mlp(), mode="host", threads=1, options=unfused)
    sink = asc.compile(onnx_models.mlp(), mode="sink", threads=1, options=unfused)
    for _ in range(5):
        host(rows(4))
        sink(rows(4))
    assert (host.stats()["launches"], host.stats()["submits"]) == (5 * 6, 0)
    assert (sink.stats()["launches"], sink.stats()["submits"], sink.stats()["loads"]) == (0, 5, 1)


def test_auto_runs_the_first_shape_node_by_node_and_sinks_it_when_it_comes_back():
    exe = asc.compile(onnx_models.mlp(), mode="auto", threads=1)
    exe(rows(4))
    assert (exe.stats()["submits"], exe.stats()["loads"]) == (0, 1)  # made after the run, which tells the price
    exe(rows(4))
    assert (exe.stats()["submits"], exe.stats()["loads"]) == (1, 1)
    exe(rows(4))
    assert (exe.stats()["submits"], exe.stats()["loads"]) == (2, 1)


def test_a_repeated_shape_resolves_nothing_in_host_mode():
    exe = asc.compile(onnx_models.mlp(), mode="host", threads=1)
    exe(rows(4))
    resolved = exe.stats()["nodes_resolved"]
    exe(rows(4, seed=1))
    assert exe.stats()["nodes_resolved"] == resolved


@pytest.mark.parametrize("mode", MODES)
def test_a_later_run_leaves_earlier_results_alone(mode):
    exe = asc.compile(onnx_models.mlp(), mode=mode, threads=1)
    results = [exe(rows(4, seed)) for seed in range(4)]
    copies = [r.copy() for r in results]
    for seed in range(4, 8):
        exe(rows(4, seed))
    for result, copy in zip(results, copies, strict=True):
        assert np.array_equal(result, copy)


@pytest.mark.parametrize("mode", MODES)
def test_bound_buffers_are_read_and_overwritten_by_every_run(mode):
    model = onnx_models.mlp()
    exe = asc.compile(model, mode=mode, threads=1)
    x, y = rows(4).copy(), np.zeros((4, 16), np.float32)
    binding = exe.bind({"x": x}, outputs={"y": y})
    for seed in range(4):
        x[...] = rows(4, seed)
        y[...] = np.nan
        assert binding.run()["y"] is y
        np.testing.assert_allclose(y, mlp_reference(model, x), atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_results_never_alias_inputs_constants_or_each_other(mode):
    nodes = [
        h.make_node("Identity", ["x"], ["same"]),
        h.make_node("Reshape", ["x", "flat"], ["reshaped"]),
        h.make_node("Identity", ["c"], ["constant"]),
        h.make_node("Neg", ["x"], ["n"]),
        h.make_node("Reshape", ["n", "flat"], ["n_flat"]),
        h.make_node("Shape", ["x"], ["shape"]),
    ]
    names = ["same", "reshaped", "constant", "n", "n_flat"]
    outputs = [onnx_models.info(o) for o in names] + [onnx_models.info("shape", T.INT64)]
    constants = {"flat": np.array([-1], np.int64), "c": np.arange(3, dtype=np.float32)}
    exe = asc.compile(
        onnx_models.model(nodes, [onnx_models.info("x", shape=["a", "b"])], outputs, constants), mode=mode, threads=1
    )
    x = rows(3, width=5)
    kept = x.copy()
    for _ in range(3):
        got = exe.run({"x": x})
        arrays = [x, *got.values()]
        for i, a in enumerate(arrays):
            for b in arrays[:i]:
                assert not np.shares_memory(a, b)
        for name in ("same", "constant", "n"):
            got[name][...] = 77
        again = exe.run({"x": x})
        assert np.array_equal(x, kept)
        assert np.array_equal(again["same"], x)
        assert np.array_equal(again["reshaped"], x.ravel())
        assert np.array_equal(again["constant"], np.arange(3))
        assert np.array_equal(again["n_flat"], -x.ravel())
        assert again["shape"].tolist() == [3, 5]


@pytest.mark.parametrize("mode", MODES)
def test_a_result_that_is_a_view_has_its_own_shape(mode):
    nodes = [h.make_node("Neg", ["x"], ["n"]), h.make_node("Unsqueeze", ["n", "axes"], ["y"])]
    constants = {"axes": np.array([0, 2])}
    exe = asc.compile(
        onnx_models.model(nodes, [onnx_models.info("x", shape=["a"])], [onnx_models.info("y")], constants), mode=mode
    )
    for n in (3, 0, 3, 3):
        assert exe(np.ones(n, np.float32)).shape == (1, n, 1)
    y = np.zeros((1, 3, 1), np.float32)
    exe.bind({"x": np.ones(3, np.float32)}, outputs={"y": y}).run()
    assert (y == -1).all()
    with pytest.raises(asc.GraphError, match=r"\[1, 3, 1\]"):
        exe.bind({"x": np.ones(3, np.float32)}, outputs={"y": np.zeros(3, np.float32)}).run()


def test_results_outlive_their_executable():
    result = asc.compile(onnx_models.mlp(), threads=1)(rows(4))
    assert np.isfinite(result).all()


def test_arrays_of_any_layout_work():
    exe = asc.compile(onnx_models.mlp(), threads=1)
    x = rows(6)
    want = exe(x)
    wide = np.zeros((6, 32), np.float32)
    wide[:, ::2] = x
    raw = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(x.shape)
    misaligned[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for form in (np.asfortranarray(x), wide[:, ::2], x[::-1][::-1], x.astype(">f4"), misaligned, frozen, x.tolist()):
        assert np.array_equal(exe(form), want)


class OnDevice:
    """Claims to live on a GPU; an export must never be asked for."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("exported before its device was looked at")


class OnCpu:
    """An array behind DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


def test_dlpack_is_taken_from_the_cpu_and_refused_from_elsewhere_before_any_copy():
    exe = asc.compile(onnx_models.mlp(), threads=1)
    x = rows(2)
    assert np.array_equal(exe(OnCpu(x)), exe(x))
    with pytest.raises(asc.GraphError, match=r"'x'.*another device"):
        exe(OnDevice())


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "missing x"),
        ({"x": rows(2), "z": rows(2)}, "unknown z"),
        ({"z": rows(2)}, "missing x"),
        ({"x": rows(2).astype(np.float64)}, "expected float32, got float64"),
        ({"x": rows(2)[0]}, "expected 2 dimensions"),
        ({"x": rows(2, width=15)}, "dim 1 is 16"),
        ({"x": np.array(["a"])}, "expected float32"),
        ({"x": [[1.0], [1.0, 2.0]]}, "does not convert"),
        ({"x": None}, "does not convert"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_by_name_and_harm_nothing(feeds, message):
    exe = asc.compile(onnx_models.mlp(), threads=1)
    with pytest.raises(asc.GraphError, match=message):
        exe.run(feeds)
    assert exe(rows(2)).shape == (2, 16)


def test_equal_symbols_must_have_equal_sizes():
    nodes = [h.make_node("Concat", ["a", "b"], ["y"], axis=1)]
    inputs = [onnx_models.info("a", shape=["n", 2]), onnx_models.info("b", shape=["n", 2])]
    exe = asc.compile(onnx_models.model(nodes, inputs, [onnx_models.info("y")]), threads=1)
    with pytest.raises(asc.GraphError, match=r"'b'.*'n'"):
        exe(rows(2, width=2), rows(3, width=2))


@pytest.mark.parametrize("mode", MODES)
def test_a_failing_kernel_names_its_node_and_the_next_run_is_right(mode):
    nodes = [
        h.make_node("Gather", ["table", "i"], ["g"], name="lookup"),
        h.make_node("Neg", ["g"], ["n"]),
        h.make_node("Neg", ["n"], ["y"]),
    ]
    model = onnx_models.model(
        nodes, [onnx_models.info("i", T.INT64, ["n"])], [onnx_models.info("y")], {"table": rows(5)}
    )
    exe = asc.compile(model, mode=mode, threads=1)
    for _ in range(3):
        assert np.array_equal(exe(np.array([4, -1])), rows(5)[[4, -1]])
        with pytest.raises(asc.GraphError, match=r"lookup.*7"):
            exe(np.array([0, 7]))
        with pytest.raises(asc.GraphError, match="lookup"):
            exe.run_async({"i": np.array([0, 7])}).wait(60)
    assert np.array_equal(exe(np.array([0, 1])), rows(5)[:2])


@pytest.mark.parametrize("mode", MODES)
def test_the_memory_limit_ends_in_an_error_and_the_executable_stays_usable(mode):
    options = asc.Options(memory_limit_bytes=1 << 20)
    exe = asc.compile(onnx_models.mlp(), mode=mode, threads=1, options=options)
    small = exe(rows(8))
    with pytest.raises(asc.OutOfMemoryError, match=r"asked.*limit"):
        exe(rows(100_000))
    assert np.array_equal(exe(rows(8)), small)
    assert exe.stats()["device_bytes"] <= 1 << 20


def test_a_hostile_dimension_is_refused_before_anything_is_allocated():
    nodes = [h.make_node("Expand", ["x", "shape"], ["y"])]
    model = onnx_models.model(
        nodes, [onnx_models.info("x", shape=[1]), onnx_models.info("shape", T.INT64, [2])], [onnx_models.info("y")]
    )
    exe = asc.compile(model, threads=1)
    with pytest.raises((asc.GraphError, asc.OutOfMemoryError)):
        exe(np.ones(1, np.float32), np.array([2**40, 2**40]))
    with pytest.raises(asc.AscendSchedError):
        exe(np.ones(1, np.float32), np.array([-5, 2]))
    assert exe(np.ones(1, np.float32), np.array([2, 3])).shape == (2, 3)


def test_binding_a_result_of_the_wrong_shape_or_type_is_refused():
    exe = asc.compile(onnx_models.mlp(), threads=1)
    with pytest.raises(asc.GraphError, match="float32"):
        exe.bind({"x": rows(4)}, outputs={"y": np.zeros((4, 16))})
    with pytest.raises(asc.GraphError, match="not one of the model's"):
        exe.bind({"x": rows(4)}, outputs={"z": np.zeros((4, 16), np.float32)})
    with pytest.raises(asc.GraphError, match=r"\[3, 16\]"):
        exe.bind({"x": rows(4)}, outputs={"y": np.zeros((3, 16), np.float32)}).run()


def test_wait_gives_up_after_its_timeout_and_can_be_repeated():
    exe = asc.compile(onnx_models.mlp(), device="timed:us=100000", threads=1)
    run = exe.run_async({"x": rows(2)})
    with pytest.raises(asc.WaitTimeoutError):
        run.wait(0.001)
    assert not run.is_done
    assert run.wait(60)["y"].shape == (2, 16)
    assert run.is_done


def test_unknown_devices_modes_and_options_are_refused():
    model = onnx_models.mlp()
    with pytest.raises(asc.DeviceUnavailableError, match="known devices"):
        asc.compile(model, device="npu")
    with pytest.raises(asc.DeviceError, match="timed:us=20"):
        asc.compile(model, device="timed:fast")
    with pytest.raises(asc.PlanError, match="mode"):
        asc.compile(model, mode="fast")
    with pytest.raises(asc.PlanError, match="threads"):
        asc.compile(model, threads=0)
    with pytest.raises(asc.PlanError, match="tiling_cache_bytes"):
        asc.Options(tiling_cache_bytes=-1)


def test_unsupported_operators_are_listed_together():
    nodes = [
        h.make_node("MaxRoiPool", ["x", "x"], ["d"], pooled_shape=[1, 1]),
        h.make_node("Neg", ["d"], ["n"]),
        h.make_node("ImageDecoder", ["n"], ["m"]),
        h.make_node("StringConcat", ["m", "m"], ["y"]),
    ]
    with pytest.raises(asc.UnsupportedError, match=r"(?s)ImageDecoder.*MaxRoiPool"):
        asc.compile(onnx_models.model(nodes, [onnx_models.info("x")], [onnx_models.info("y")], opset=20))


def test_the_same_graph_gives_the_same_plan_text():
    texts = {asc.compile(onnx_models.counted_loop(), threads=1).plan.text() for _ in range(3)}
    assert len(texts) == 1


def test_explain_says_why_a_model_is_dynamic_and_how_its_nodes_run():
    exe = asc.compile(onnx_models.mlp(), threads=1)
    exe(rows(2))
    text = exe.explain()
    assert "dynamic because input 'x' dim 0 is unknown ('n')" in text
    assert "task, " in text


def test_graphs_can_be_built_in_python():
    g = asc.Graph("affine")
    x = g.input("x", "float32", ("batch", 4))
    weight = g.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    top, bottom = g.op("Split", g.op("MatMul", x, weight), outputs=2, axis=0, num_outputs=2)
    g.output(g.op("Sub", top, bottom), "y")
    x_value = rows(4, width=4)
    product = x_value @ np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_allclose(asc.compile(g, threads=1)(x_value), product[:2] - product[2:], rtol=1e-5)


def test_input_buffers_of_a_run_in_flight_stay_alive_without_their_owner():
    exe = asc.compile(onnx_models.mlp(), device="timed:us=2000", threads=1)
    runs = [exe.run_async({"x": rows(2, seed)}) for seed in range(8)]
    del exe
    for run in runs:
        assert run.wait(60)["y"].shape == (2, 16)
    ctypes.pythonapi.PyGC_Collect()


def test_a_cast_to_the_same_type_costs_no_task():
    nodes = [
        h.make_node("Neg", ["x"], ["n"]),
        h.make_node("Cast", ["n"], ["c"], to=1),
        h.make_node("Abs", ["c"], ["y"]),
    ]
    made = onnx_models.model(nodes, [onnx_models.info("x", shape=[3])], [onnx_models.info("y")])
    exe = asc.compile(made, mode="host", threads=1, options=asc.Options(fuse=False))
    np.testing.assert_array_equal(exe(np.float32([1, -2, 3])), np.float32([1, 2, 3]))
    assert exe.stats()["launches"] == 2


def test_copies_of_inputs_are_counted_by_reason():
    exe = asc.compile(onnx_models.mlp(), threads=1)
    x = rows(4)
    exe(x)
    exe(np.asfortranarray(x))
    exe(x.astype(">f4"))
    exe(rows(8)[::2])
    stats = exe.stats()
    assert (stats["input_copies_for_layout"], stats["input_copies_for_type"]) == (2, 1)
