"""Padded runs: results of the given length, checks against runs without padding, sizes that are given up."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from . import onnx_models as models


def rowwise() -> Any:
    """y = -x, row by row: padding rows changes nothing."""
    return models.model(
        [h.make_node("Neg", ["x"], ["y"])], [models.info("x", shape=["n", 3])], [models.info("y", shape=["n", 3])]
    )


def mean_sensitive() -> Any:
    """y = x - mean over all rows: padding rows with anything but the mean changes it."""
    nodes = [h.make_node("ReduceMean", ["x"], ["m"], keepdims=0), h.make_node("Sub", ["x", "m"], ["y"])]
    return models.model(nodes, [models.info("x", shape=["n", 3])], [models.info("y", shape=["n", 3])])


def compiled(model: Any, mode: str = "auto", **buckets: Any) -> asc.Executable:
    settings = {"axis": {"x": 0}, "slice": {"y": 0}} | buckets
    return asc.compile(model, mode=mode, threads=1, options=asc.Options(buckets=asc.Buckets(**settings)))


def rows(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((count, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_results_have_the_given_length_and_few_shapes_run(mode: str) -> None:
    exe = compiled(rowwise(), mode, sizes=[4, 16], check_every=0)
    for n in [1, 2, 3, 4, 5, 9, 16, 3, 1] * 3:
        x = rows(n)
        for result in (exe(x), exe(x=x), exe.run({"x": x})["y"], exe.run_async({"x": x}).wait()["y"]):
            np.testing.assert_array_equal(result, -x)
            assert result.flags.c_contiguous
    assert exe.stats()["schedule_entries"] <= 2
    assert "buckets 4, 16" in exe.explain()


def test_bound_runs_are_padded_and_read_their_inputs_anew() -> None:
    exe = compiled(rowwise(), sizes=[4, 16], check_every=0)
    for n in [1, 3, 9, 16, 20] * 2:
        x, y = rows(n), np.zeros((n, 3), np.float32)
        fresh, into = exe.bind({"x": x}), exe.bind({"x": x}, {"y": y})
        for _ in range(3):
            x += 1
            np.testing.assert_array_equal(fresh.run()["y"], -x)
            assert into.run()["y"] is y
            np.testing.assert_array_equal(y, -x)
    assert exe.stats()["schedule_entries"] <= 3
    assert exe.stats()["exact_runs"] == 12


def test_a_bound_array_of_another_shape_is_refused_with_and_without_padding() -> None:
    exe = compiled(rowwise(), sizes=[4, 16], check_every=0)
    for n in (3, 20):
        binding = exe.bind({"x": rows(n)}, {"y": np.zeros((n + 1, 3), np.float32)})
        with pytest.raises(asc.GraphError, match="bound array has shape"):
            binding.run()
    with pytest.raises(asc.GraphError, match="arrays by name"):
        exe.bind([rows(3)])  # type: ignore[arg-type]
    with pytest.raises(asc.GraphError, match="missing x"):
        exe.bind({"z": rows(3)})


def test_bound_runs_are_checked_and_a_size_that_differs_is_switched_off() -> None:
    exe = compiled(mean_sensitive(), sizes=[8])
    x, y = rows(5), np.zeros((5, 3), np.float32)
    binding = exe.bind({"x": x}, {"y": y})
    with pytest.warns(RuntimeWarning, match="size 8 is switched off"):
        binding.run()
    np.testing.assert_allclose(y, x - x.mean(), atol=1e-6)
    x *= 2
    np.testing.assert_allclose(binding.run()["y"], x - x.mean(), atol=1e-6)


def test_a_length_above_all_sizes_runs_as_it_is() -> None:
    exe = compiled(rowwise(), sizes=[4])
    np.testing.assert_array_equal(exe(rows(7)), -rows(7))
    assert exe.stats()["exact_runs"] == 1


def test_empty_inputs_are_not_padded() -> None:
    exe = compiled(rowwise(), sizes=[4])
    assert exe(rows(0)).shape == (0, 3)


def test_sizes_are_learned_while_lengths_come() -> None:
    exe = compiled(rowwise(), max_count=3)
    for i in range(300):
        x = rows([3, 10, 11, 12, 40][i % 5])
        np.testing.assert_array_equal(exe(x), -x)
    stats = exe.stats()
    assert stats["buckets"] <= 3
    assert stats["padded_positions"] < stats["given_positions"] / 4
    assert "learned" in exe.explain()


def test_a_size_whose_results_differ_is_switched_off_loudly_and_results_stay_exact() -> None:
    exe, exact = compiled(mean_sensitive(), sizes=[8, 16]), asc.compile(mean_sensitive(), threads=1)
    with pytest.warns(RuntimeWarning, match="size 8 is switched off: result 'y' of length 5 differs"):
        np.testing.assert_array_equal(exe(rows(5)), exact(rows(5)))
    np.testing.assert_array_equal(exe(rows(6)), exact(rows(6)))
    with pytest.warns(RuntimeWarning, match="size 16"):
        run = exe.run_async({"x": rows(9)})
    np.testing.assert_array_equal(run.wait()["y"], exact(rows(9)))
    assert exe.stats()["buckets_off"] == 2
    assert "bucket 8 is off" in exe.explain()


def test_no_size_is_padded_once_many_were_given_up() -> None:
    exe = compiled(mean_sensitive(), sizes=range(4, 80, 4))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for n in range(3, 79, 4):
            exe(rows(n))
    assert len(said) == 8


def test_a_later_difference_is_found_by_sampling() -> None:
    exe = compiled(mean_sensitive(), sizes=[8], check_every=4)
    exe(np.zeros((5, 3), np.float32))  # the mean is the padding: no difference
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(4):
            exe(rows(5))
    assert len(said) == 1


def test_a_result_that_is_not_cut_is_found_by_its_shape() -> None:
    exe = compiled(rowwise(), sizes=[8], slice={})
    with pytest.warns(RuntimeWarning, match=r"shape \(8, 3\) with padding"):
        assert exe(rows(5)).shape == (5, 3)


def test_a_size_that_the_model_refuses_is_switched_off() -> None:
    constants = {"table": np.arange(6, dtype=np.float32)}
    nodes = [
        h.make_node("Shape", ["x"], ["s"], start=0, end=1),
        h.make_node("Expand", ["one", "s"], ["e"]),
        h.make_node("CumSum", ["e", "axis"], ["c"]),
        h.make_node("Gather", ["table", "c"], ["y"]),
    ]
    constants |= {"one": np.ones(1, np.int64), "axis": np.int64(0)}  # type: ignore[dict-item]
    model = models.model(nodes, [models.info("x", shape=["n", 3])], [models.info("y", shape=["n"])], constants)
    exe = compiled(model, sizes=[8])
    with pytest.warns(RuntimeWarning, match="padded run fails"):
        np.testing.assert_array_equal(exe(rows(3)), [1, 2, 3])


def test_padding_uses_the_declared_value_and_type() -> None:
    model = models.model(
        [h.make_node("Neg", ["x"], ["y"])],
        [models.info("x", T.INT64, shape=["n"])],
        [models.info("y", T.INT64, shape=["n"])],
    )
    exe = asc.compile(
        model, threads=1, options=asc.Options(buckets=asc.Buckets(axis={"x": 0}, sizes=[4], pad={"x": 7}))
    )
    with pytest.warns(RuntimeWarning, match="without"):
        exe([1, 2])
    for bad in (1.5, float("nan"), 2**70):
        with pytest.raises(asc.PlanError, match="no int64"):
            asc.compile(model, options=asc.Options(buckets=asc.Buckets(axis={"x": 0}, sizes=[4], pad={"x": bad})))


def test_copies_beyond_the_bound_are_not_made() -> None:
    exe = compiled(rowwise(), sizes=[1000], max_bytes=100)
    exe(rows(5))
    assert exe.stats()["exact_runs"] == 1


def test_inputs_of_different_lengths_are_refused() -> None:
    inputs = [models.info("x", shape=["n", 3]), models.info("z", shape=["m", 3])]
    model = models.model(
        [h.make_node("Neg", ["x"], ["y"]), h.make_node("Neg", ["z"], ["w"])],
        inputs,
        [models.info("y", shape=["n", 3]), models.info("w", shape=["m", 3])],
    )
    exe = compiled(model, sizes=[8], axis={"x": 0, "z": 0})
    with pytest.raises(asc.GraphError, match="same length"):
        exe(rows(2), rows(3))


def test_wrong_inputs_give_the_usual_errors() -> None:
    exe = compiled(rowwise(), sizes=[8])
    for feeds in ({}, {"z": rows(2)}, {"x": rows(2)[0]}, {"x": rows(2).astype(np.float64)}, {"x": None}):
        with pytest.raises(asc.GraphError):
            exe.run(feeds)
    with pytest.raises(asc.GraphError, match="dict"):
        exe.run(rows(2))  # type: ignore[arg-type]
    with pytest.raises(asc.GraphError):
        exe(rows(2), rows(2))
    np.testing.assert_array_equal(exe(rows(2)), -rows(2))


@pytest.mark.parametrize(
    "settings",
    [
        {"axis": {}},
        {"axis": {"x": -1}},
        {"axis": {"x": True}},
        {"axis": ["x"]},
        {"sizes": [0]},
        {"sizes": [1.5]},
        {"sizes": "12"},
        {"sizes": range(1, 5000)},
        {"sizes": []},
        {"max_count": 3},
        {"pad": {"z": 1}},
        {"pad": {"x": "1"}},
        {"slice": {"y": 99}},
        {"max_bytes": -1},
        {"check_every": 1.5},
        {"tolerance": -1.0},
        {"tolerance": float("inf")},
    ],
)
def test_declarations_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(asc.PlanError, match=r"\[buckets\]"):
        asc.Buckets(**({"axis": {"x": 0}, "sizes": [4]} | settings))


@pytest.mark.parametrize("settings", [{"axis": {"q": 0}}, {"axis": {"x": 1}}, {"axis": {"x": 5}}, {"slice": {"q": 0}}])
def test_declarations_that_do_not_fit_the_model_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(asc.PlanError, match=r"\[buckets\]"):
        compiled(rowwise(), sizes=[4], **settings)


def test_saved_executables_keep_their_buckets(tmp_path: Any) -> None:
    exe = compiled(rowwise(), sizes=[4])
    exe.save(tmp_path / "m.asc")
    again = asc.load(tmp_path / "m.asc")
    np.testing.assert_array_equal(again(rows(3)), -rows(3))
    assert again.stats()["bucket_runs"] == 1


def test_a_size_is_checked_until_a_run_of_it_has_passed() -> None:
    nodes = [
        h.make_node("Gather", ["table", "i"], ["g"]),
        h.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        h.make_node("Add", ["g", "s"], ["y"]),
    ]
    inputs = [models.info("x", shape=["n"]), models.info("i", T.INT64, shape=[1])]
    table = {"table": np.zeros(4, np.float32)}
    model = models.model(nodes, inputs, [models.info("y", shape=[1])], table)
    exe = compiled(model, sizes=[8], slice={}, pad={"x": 1})
    x, bad, good = np.zeros(5, np.float32), np.array([9]), np.array([0])
    for _ in range(3):  # the run without padding fails: nothing is known of the size
        with pytest.raises(asc.GraphError, match="out of range"):
            exe.run({"x": x, "i": bad})
    with pytest.warns(RuntimeWarning, match="size 8 is switched off"):
        assert exe.run({"x": x, "i": good})["y"] == 0
    assert exe.stats()["checks"] == 4


def test_strings_beside_what_is_padded_pass_and_are_compared() -> None:
    nodes = [h.make_node("Neg", ["x"], ["y"]), h.make_node("Identity", ["s"], ["t"])]
    inputs = [models.info("x", shape=["n", 3]), models.info("s", T.STRING, shape=["k"])]
    model = models.model(nodes, inputs, [models.info("y"), models.info("t", T.STRING)])
    exe = compiled(model, sizes=[8], check_every=2)
    for _ in range(5):
        y, t = exe(rows(5), np.array(["a", "b"], object))
        np.testing.assert_array_equal(y, -rows(5))
        assert list(t) == ["a", "b"]
    with pytest.raises(asc.PlanError, match="'s' is a string, which cannot be padded"):
        compiled(model, sizes=[8], axis={"s": 0})


def test_sequences_are_compared_and_not_cut() -> None:
    nodes = [h.make_node("SplitToSequence", ["x"], ["q"], axis=0), h.make_node("Neg", ["x"], ["y"])]
    outputs = [h.make_tensor_sequence_value_info("q", T.FLOAT, None), models.info("y")]
    model = models.model(nodes, [models.info("x", shape=["n", 3])], outputs)
    exe = compiled(model, sizes=[8])
    with pytest.warns(RuntimeWarning, match="another number of elements"):
        assert len(exe(rows(5))[0]) == 5
    with pytest.raises(asc.PlanError, match="'q' is a sequence"):
        compiled(model, sizes=[8], slice={"q": 0})


def test_padding_that_no_memory_holds_is_one_of_our_errors() -> None:
    with pytest.raises(asc.OutOfMemoryError, match="lower max_bytes"):
        compiled(rowwise(), sizes=[1 << 40], max_bytes=1 << 62)(rows(2))
