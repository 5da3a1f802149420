"""Bad input: each kind ends in its class of error, with the name, the values and the next step, or works as NumPy users
expect; the executable stays usable. What the fuzzer found has its test here, too."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc
from ascendsched import options as settings
from tests.fuzz import feeds as feeding
from tests.fuzz.seeds import operators, seed_models, single
from tests.unit import onnx_models
from tests.unit.onnx_models import info

F = np.float32
LIMIT = 1 << 20
MODES = ["host", "sink", "auto"]
X = np.arange(6, dtype=F).reshape(2, 3)


def executable(nodes, inputs, constants=None, mode="auto", **options):
    outputs = [h.make_empty_tensor_value_info(nodes[-1].output[0])]
    model = onnx_models.model(nodes, inputs, outputs, constants)
    return asc.compile(model, mode=mode, threads=1, options=asc.Options(**options))


def doubled(mode="auto", dims=("n", 3)):
    return executable([h.make_node("Add", ["x", "x"], ["y"], name="twice")], [info("x", T.FLOAT, dims)], mode=mode)


def refused(error, *parts):
    """The error's class, the form of its message, and what it must name."""
    text = str(error.value)
    assert isinstance(error.value, asc.AscendSchedError)
    assert text.startswith("["), text
    for part in parts:
        assert str(part) in text, text


def test_seeds_use_every_operator():
    from ascendsched import _core

    used = set().union(*(operators(model.graph) for model in seed_models()))
    others = {
        "HostCall",
        "Extension",
        "GroupedMatMul",
        "TreeSums",
    }  # of Unique and others; of packages; torch; ai.onnx.ml
    assert set(_core.op_names()) - others <= used


@pytest.mark.parametrize("index", range(0, len(seed_models()), 9))
def test_truncated_files_are_refused_or_work_without_a_crash(index):
    data = seed_models()[index].SerializeToString()
    for cut in range(0, len(data), max(1, len(data) // 40)):
        try:
            asc.compile(data[:cut], threads=1)
        except asc.AscendSchedError as e:
            assert str(e).startswith("[")  # noqa: PT017


def test_random_bytes_are_refused():
    rng = np.random.default_rng(5)
    for size in (0, 1, 10, 1000):
        with pytest.raises(asc.GraphError) as error:
            asc.compile(rng.bytes(size))
        refused(error, "bytes")


@pytest.mark.parametrize(("location", "part"), [("none.bin", "none.bin"), ("../secret.bin", "secret.bin")])
def test_external_data_that_are_missing_or_outside_the_folder_are_refused(tmp_path, location, part):
    (tmp_path / "secret.bin").write_bytes(bytes(12))
    folder = tmp_path / "model"
    folder.mkdir()
    tensor = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[3], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    model = onnx_models.model([h.make_node("Add", ["x", "w"], ["y"])], [info("x", shape=[3])], [info("y")])
    model.graph.initializer.append(tensor)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(asc.GraphError) as error:
        asc.compile(folder / "m.onnx")
    refused(error, "'w'", part)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("feeds", "parts"),
    [
        ({}, ["missing x"]),
        ({"x": X, "z": X}, ["z", "the model takes x"]),
        ({"\ud800": X}, ["missing x"]),
        ({1: X}, ["missing x", "1"]),
        ({"x": X.astype(np.float64)}, ["'x'", "float32", "float64"]),
        ({"x": X[0]}, ["'x'", "2 dimensions", "[3]"]),
        ({"x": X[:, :2]}, ["'x'", "dim 1 is 3", "[2, 2]"]),
        ({"x": np.zeros((1,) * 9, F)}, ["'x'", "rank 9"]),
        ({"x": None}, ["'x'", "NoneType"]),
        ({"x": "text"}, ["'x'", "str"]),
        ({"x": X.astype(object)}, ["'x'", "object"]),
        ({"x": [[1, 2], [3]]}, ["'x'", "list"]),
        ({"x": np.broadcast_to(F(1), (2**40, 3))}, ["'x'"]),
    ],
)
def test_feeds_that_do_not_fit_are_refused_and_the_executable_stays_usable(mode, feeds, parts):
    exe = doubled(mode)
    with pytest.raises(asc.AscendSchedError) as error:
        exe.run(feeds)
    refused(error, *parts)
    assert np.array_equal(exe(X), 2 * X)


def test_equal_symbols_must_have_equal_values():
    nodes = [h.make_node("Concat", ["a", "b"], ["y"], axis=1)]
    exe = executable(nodes, [info("a", shape=["n", 1]), info("b", shape=["n", 1])])
    with pytest.raises(asc.GraphError) as error:
        exe(np.zeros((2, 1), F), np.zeros((3, 1), F))
    refused(error, "'b'", "'n'", 3, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("array", [np.full((2, 3), np.nan, F), np.zeros((0, 3), F), np.full((1, 3), np.inf, F)])
def test_nan_and_empty_arrays_work(mode, array):
    assert np.array_equal(doubled(mode)(array), array + array, equal_nan=True)


@pytest.mark.parametrize("change", feeding.SAME)
def test_layouts_and_classes_that_numpy_users_mix_work(change):
    assert np.array_equal(doubled()(change(X)), 2 * X)


@pytest.mark.parametrize(
    "value",
    [
        feeding.DlpackLiar(X, (1, 0), OSError("odd")),
        feeding.DlpackLiar(X, (), None),
        feeding.DlpackLiar(X, None, None),
        feeding.ArrayLiar(RuntimeError("no")),
        feeding.ArrayLiar("text"),
        feeding.Overriding(),
        np.ma.masked_array(X, mask=X > 2),
    ],
    ids=["export", "no device", "none", "raises", "text", "overriding", "masked"],
)
def test_objects_that_are_no_arrays_after_all_are_refused(value):
    exe = doubled()
    with pytest.raises(asc.GraphError) as error:
        exe(value)
    refused(error, "'x'")
    assert np.array_equal(exe(X), 2 * X)


def test_dlpack_of_another_device_is_refused_before_any_copy():
    class OnDevice:
        exported = False

        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **kwargs):
            self.exported = True
            return X.__dlpack__(**kwargs)

    value = OnDevice()
    with pytest.raises(asc.GraphError) as error:
        doubled()(value)
    refused(error, "'x'", "another device", "copy it to the CPU")
    assert not value.exported


def test_a_cyclic_graph_is_refused():
    nodes = [h.make_node("Add", ["x", "b"], ["a"], name="one"), h.make_node("Neg", ["a"], ["b"], name="two")]
    with pytest.raises(asc.GraphError) as error:
        executable(nodes, [info("x", shape=[3])])
    refused(error, "one")


GROWING = [
    ("Expand", [X, np.array([2**40, 2, 3])], {}),
    ("Tile", [X, np.array([2**20, 2**20])], {}),
    ("ConstantOfShape", [np.array([2**20, 2**20])], {}),
    ("Pad", [X, np.array([2**40, 0, 0, 0])], {}),
    ("OneHot", [np.array([0, 1]), np.int64(2**40), np.array([0, 1], F)], {}),
]


@pytest.mark.parametrize("mode", ["host", "sink"])
@pytest.mark.parametrize("limits", [{}, {"memory_limit_bytes": LIMIT}], ids=["default", "limit"])
@pytest.mark.parametrize(("op", "inputs", "attributes"), GROWING, ids=[g[0] for g in GROWING])
def test_a_dimension_of_2_to_the_40_ends_in_out_of_memory(mode, limits, op, inputs, attributes):
    exe = asc.compile(single(op, inputs, **attributes), mode=mode, threads=1, options=asc.Options(**limits))
    with pytest.raises(asc.OutOfMemoryError) as error:
        exe(inputs[0])
    refused(error, op, "limit")


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_the_results_of_a_run_count_against_the_limit(mode):
    nodes = [h.make_node("Expand", ["x", f"s{i}"], [f"y{i}"]) for i in range(3)]
    inputs = [info("x", shape=["n"]), *(info(f"s{i}", T.INT64, [1]) for i in range(3))]
    model = onnx_models.model(nodes, inputs, [info(f"y{i}") for i in range(3)])
    exe = asc.compile(model, mode=mode, threads=1, options=asc.Options(memory_limit_bytes=LIMIT))
    feeds = {"x": np.ones(1, F), **{f"s{i}": np.array([100_000]) for i in range(3)}}
    with pytest.raises(asc.OutOfMemoryError) as error:
        exe.run(feeds)
    refused(error, "'y2'", "memory_limit_bytes")
    feeds["s2"] = np.array([2])
    assert exe.run(feeds)["y2"].shape == (2,)


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_many_impossible_sizes_do_not_add_up_to_a_possible_one(mode):
    names = [f"y{i}" for i in range(40)]
    nodes = [*(h.make_node("Expand", ["x", "s"], [n]) for n in names), h.make_node("Sum", names, ["z"])]
    exe = executable(nodes, [info("x", T.DOUBLE, [1]), info("s", T.INT64, [1])], mode=mode, memory_limit_bytes=0)
    with pytest.raises(asc.OutOfMemoryError):
        exe(np.ones(1), np.array([2**56]))
    assert exe(np.ones(1), np.array([2]))[0] == 40


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_scanned_outputs_of_an_endless_loop_end_at_the_limit(mode):
    nodes = [h.make_node("Identity", ["c"], ["go_on"]), h.make_node("Add", ["a", "a"], ["b"])]
    inputs = [info("i", T.INT64, []), info("c", T.BOOL, []), info("a")]
    body = onnx_models.body(nodes, inputs, [info("go_on", T.BOOL, []), info("b"), info("b")])
    body.output[2].name = "piece"
    body.node.append(h.make_node("Neg", ["b"], ["piece"]))
    loop = h.make_node("Loop", ["trips", "", "x"], ["last", "all"], name="endless", body=body)
    exe = executable([loop], [info("x", shape=[256]), info("trips", T.INT64, [])], mode=mode, memory_limit_bytes=LIMIT)
    with pytest.raises(asc.OutOfMemoryError) as error:
        exe(np.ones(256, F), np.int64(2**62))
    refused(error, "limit")
    assert exe(np.ones(256, F), np.int64(3))[0] == 8


@pytest.mark.parametrize("offset", [0, 2])
def test_bound_outputs_that_share_memory_with_an_input_or_each_other_are_refused(offset):
    exe = asc.compile(single("Split", [X, np.array([1, 2])], outputs=2, axis=1), threads=1)
    memory = np.zeros(20, F)
    x, first, second = memory[:6].reshape(2, 3), memory[offset : offset + 2], memory[offset + 1 : offset + 5]
    with pytest.raises(asc.GraphError) as error:
        exe.bind({"i0": x}, {"o0": first.reshape(2, 1)})
    refused(error, "'o0'", "input 'i0'")
    with pytest.raises(asc.GraphError) as error:
        exe.bind({"i0": X}, {"o0": first.reshape(2, 1), "o1": second.reshape(2, 2)})
    refused(error, "'o1'", "output 'o0'")
    memory[:6] = X.ravel()
    apart = memory[6:8].reshape(2, 1)
    exe.bind({"i0": x}, {"o0": apart}).run()
    assert np.array_equal(apart, X[:, :1])


def nested(depth):
    """Depth bodies in one another, built in place: the parser would refuse them."""
    model = onnx_models.model([], [info("x", shape=[2]), info("c", T.BOOL, [])], [info("o")])
    graph = model.graph
    for _ in range(depth):
        outer = graph.node.add(op_type="If", input=["c"], output=["o"])
        inner = onnx_models.body([h.make_node("Identity", ["x"], ["e"])], [], [info("e")])
        outer.attribute.append(h.make_attribute("else_branch", inner))
        attribute = outer.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        attribute.g.output.add(name="o")
        graph = attribute.g
    graph.node.add(op_type="Identity", input=["x"], output=["o"])
    return model


@pytest.mark.parametrize("depth", [100, 1000])
def test_bodies_nested_too_deep_are_refused(depth):
    with pytest.raises(asc.GraphError) as error:
        asc.compile(nested(depth))
    refused(error, "nested", "flatten")


@pytest.mark.parametrize(
    ("use", "part"),
    [
        (lambda exe: exe.run(None), "NoneType"),
        (lambda exe: exe.run("x"), "str"),
        (lambda exe: exe.bind([X]), "list"),
        (lambda exe: exe.bind({"x": X}, [X]), "list"),
        (lambda exe: exe.bind({"x": X}, {"\ud800": X}), "not one of the model's"),
        (lambda exe: exe.run_async({"x": X}).wait("soon"), "'soon'"),
        (lambda exe: exe.run_async({"x": X}).wait(float("nan")), "nan"),
        (lambda exe: exe.resize_caches(1 << 70, 0), "0 or more bytes"),
        (lambda exe: exe.resize_caches("1", 0), "0 or more bytes"),
    ],
)
def test_calls_with_other_kinds_of_arguments_are_refused(use, part):
    exe = doubled()
    with pytest.raises(asc.GraphError) as error:
        use(exe)
    refused(error, part)
    assert np.array_equal(exe(X), 2 * X)


@pytest.mark.parametrize(
    "settings",
    [
        {"device": None},
        {"device": "\ud800"},
        {"mode": 5},
        {"options": {}},
        {"threads": "x"},
        {"threads": float("inf")},
        {"threads": 1.5},
        {"threads": True},
    ],
)
def test_settings_of_other_kinds_are_refused(settings):
    with pytest.raises(asc.PlanError) as error:
        asc.compile(onnx_models.mlp(), **settings)
    refused(error, *settings)


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_host_values_count_together_against_the_limit(mode):
    nodes, constants = [], {}
    for i in range(20):
        constants[f"k{i}"] = np.array([i])
        nodes += [
            h.make_node("Add", ["s", f"k{i}"], [f"s{i}"]),
            h.make_node("ConstantOfShape", [f"s{i}"], [f"c{i}"], value=h.make_tensor("v", T.INT64, [1], [1])),
            h.make_node("ReduceMax", [f"c{i}"], [f"r{i}"], keepdims=1),
        ]
    nodes += [h.make_node("Sum", [f"r{i}" for i in range(20)], ["t"]), h.make_node("Expand", ["x", "t"], ["y"])]
    inputs = [info("x", shape=[1]), info("s", T.INT64, [1])]
    exe = executable(nodes, inputs, constants, mode=mode, memory_limit_bytes=LIMIT)
    for _ in range(3):
        with pytest.raises(asc.OutOfMemoryError) as error:
            exe(np.ones(1, F), np.array([10_000]))
        refused(error, "host values", "memory_limit_bytes")
        assert exe(np.ones(1, F), np.array([100])).shape == (20,)


FLAGS = [
    (single("ReduceSum", [X, np.array([0])], keepdims=2), "keepdims is 2"),
    (single("ReduceMax", [X], noop_with_empty_axes=-1), "noop_with_empty_axes is -1"),
    (single("ArgMax", [X], keepdims=99), "keepdims is 99"),
    (single("TopK", [X, np.array([1])], outputs=2, largest=7), "largest is 7"),
    (single("Reshape", [X, np.array([3, 2])], allowzero=-1), "allowzero is -1"),
    (single("Gemm", [X, X], transB=3), "transB is 3"),
    (single("MaxPool", [np.ones((1, 1, 4), F)], kernel_shape=[2], ceil_mode=-(2**40)), "ceil_mode is -1099511627776"),
]


@pytest.mark.parametrize(("model", "part"), FLAGS, ids=[part for _, part in FLAGS])
def test_flags_that_are_neither_0_nor_1_are_refused(model, part):
    exe = asc.compile(model, threads=1)
    with pytest.raises(asc.GraphError) as error:
        exe(np.ones([d if isinstance(d, int) else 2 for d in exe.inputs[0].shape], F))
    refused(error, part, "expected 0 or 1")


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_a_negative_trip_count_runs_no_iteration(mode):
    exe = asc.compile(onnx_models.counted_loop(), mode=mode, threads=1)
    got = exe.run({"x": np.ones(2, F), "trips": np.int64(-1)})
    assert np.array_equal(got["a"], np.ones(2, F))
    assert got["s"].shape[0] == 0


def test_the_default_limit_comes_from_the_machine():
    limit = asc.Options().memory_limit_bytes
    assert limit == settings.default_memory_limit()
    assert 0 < limit < 1 << 50


@pytest.mark.parametrize("value", [-1, 1 << 63, 1.5, "1", None])
def test_limits_that_are_no_byte_counts_are_refused(value):
    with pytest.raises(asc.PlanError) as error:
        asc.Options(memory_limit_bytes=value)
    refused(error, "memory_limit_bytes")


@pytest.mark.parametrize("us", ["nan", "-1", "inf", "1e9", ""])
def test_task_times_of_the_timed_device_are_checked(us):
    with pytest.raises(asc.DeviceError) as error:
        asc.compile(onnx_models.mlp(), device=f"timed:us={us}")
    refused(error, "timed")
