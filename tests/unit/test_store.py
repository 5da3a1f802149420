"""Saved executables, and what becomes of files that are damaged or stale."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import ascendsched as asc
from ascendsched import _core, setup, store

from . import onnx_models as models
from .saved_files import Feeds, rebuilt, rewritten_at, rows, same, save_mlp, small_mlp, written

MODES = ("host", "sink", "auto")


def folding() -> onnx.ModelProto:
    """y = x + (a + b) W; the sum is folded, one output is a constant and one an input."""
    nodes = [
        onnx.helper.make_node("Add", ["a", "b"], ["sum"]),
        onnx.helper.make_node("Mul", ["sum", "w"], ["scale"]),
        onnx.helper.make_node("Add", ["x", "scale"], ["y"]),
        onnx.helper.make_node("Identity", ["scale"], ["c"]),
        onnx.helper.make_node("Identity", ["x"], ["z"]),
    ]
    constants = {k: np.arange(4, dtype=np.float32) for k in "abw"}
    outputs = [models.info(n) for n in "ycz"]
    return models.model(nodes, [models.info("x", shape=["n", 4])], outputs, constants)


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], list[Feeds]]] = {
    "mlp": (small_mlp, [rows(1), rows(3)]),
    "folding": (folding, [{"x": np.ones((2, 4), np.float32)}]),
    "branches": (models.branches, [{"x": np.full((2, 3), v, np.float32)} for v in (1, -1)]),
    "loop": (models.counted_loop, [{"x": np.ones(2, np.float32), "trips": np.int64(t)} for t in (3, 9)]),
    "nonzero": (models.nonzero, [{"x": np.eye(3, dtype=np.float32)}]),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return save_mlp(tmp_path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_a_loaded_executable_gives_the_bits_of_the_saved_one(case: str, mode: str, tmp_path: Path) -> None:
    make, feeds = CASES[case]
    exe = asc.compile(written(tmp_path, make()), mode=mode, threads=1)
    expected = [exe.run(f) for f in feeds]
    exe.save(tmp_path / "m.asc")
    again = asc.load(tmp_path / "m.asc")
    assert again.mode == mode
    assert (again.inputs, again.outputs) == (exe.inputs, exe.outputs)
    assert all(same(again.run(f), e) for f, e in zip(feeds, expected, strict=True))
    again.save(tmp_path / "second.asc")
    third = asc.load(tmp_path / "second.asc")
    assert all(same(third.run(f), e) for f, e in zip(feeds, expected, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_the_demo_decoder_gives_the_same_bits_while_its_cache_grows(mode: str, tmp_path: Path) -> None:
    from ascendsched.demo.models import decoder

    exe = asc.compile(written(tmp_path, decoder(vocab=50, d=32, layers=2, ff=40)), mode=mode, threads=1)
    past = {i.name: np.zeros((1, 2, 0, 8), np.float32) for i in exe.inputs[1:]}
    steps = [{"input_ids": np.arange(n, dtype=np.int64)[None], **past} for n in (3, 1, 1)]
    expected = decoded(exe, steps)
    exe.save(tmp_path / "m.asc")
    again = asc.load(tmp_path / "m.asc")
    assert again.stats()["warmups"] == 3
    assert all(same(a, b) for a, b in zip(decoded(again, steps), expected, strict=True))


def decoded(exe: asc.Executable, steps: list[Feeds]) -> list[Feeds]:
    """The results of a decoder, each step with the cache of the step before."""
    results: list[Feeds] = []
    for feeds in steps:
        past = {k.replace("present", "past"): v for k, v in results[-1].items() if k != "logits"} if results else {}
        results.append(exe.run(feeds | past))
    return results


def test_folded_work_is_not_done_again(tmp_path: Path) -> None:
    exe = asc.compile(written(tmp_path, folding()), threads=1)
    exe.save(tmp_path / "m.asc")
    structure = _core.graph_bytes(exe._core)[0]
    assert b"Mul" not in structure
    assert asc.load(tmp_path / "m.asc").plan.text().count("Mul") == 0


def test_equal_constants_are_stored_once(tmp_path: Path) -> None:
    g = asc.Graph()
    x = g.input("x", "float32", (4,))
    for _ in range(3):
        x = g.op("Add", x, g.constant(np.arange(4, dtype=np.float32)))
    g.output(x, "y")
    assert len(_core.graph_bytes(asc.compile(g)._core)[1]) == 1


def test_a_loaded_executable_is_warm_for_the_shapes_that_ran(saved: Path) -> None:
    exe = asc.load(saved)
    stats = exe.stats()
    assert (stats["warmups"], stats["loads"], stats["runs"]) == (1, 1, 0)
    exe.run(rows(3))
    assert exe.stats()["loads"] == 1
    assert asc.load(saved, warm=False).stats()["warmups"] == 0


def test_contents_that_shapes_depend_on_are_kept(tmp_path: Path) -> None:
    exe = asc.compile(models.counted_loop(), threads=1)
    feeds = {"x": np.ones(2, np.float32), "trips": np.int64(4)}
    exe.run(feeds)
    exe.save(tmp_path / "m.asc")
    ((x, trips),) = _core.hot_shapes(asc.load(tmp_path / "m.asc")._core)
    assert x == ((2,), None)
    assert trips == ((), np.int64(4).tobytes())


def test_settings_are_kept_and_can_be_replaced(tmp_path: Path) -> None:
    options = asc.Options(memo=False, tiling_cache_bytes=1 << 20)
    asc.compile(small_mlp(), "null", "host", 1, options).save(tmp_path / "m.asc")
    exe = asc.load(tmp_path / "m.asc")
    assert replace(exe._setup, results={}) == store.Setup("null", "host", 1, options)
    assert asc.load(tmp_path / "m.asc", device="cpu", mode="sink").mode == "sink"


def test_shapes_that_a_model_declares_for_its_results_are_told_and_kept(tmp_path: Path) -> None:
    nodes = [onnx.helper.make_node("Neg", ["x"], ["y"]), onnx.helper.make_node("Neg", ["x"], ["z"])]
    outputs = [models.info("y", shape=["n", 4]), models.info("z")]
    exe = asc.compile(models.model(nodes, [models.info("x", shape=["n", 4])], outputs), threads=1)
    exe.save(tmp_path / "m.asc")
    for one in (exe, asc.load(tmp_path / "m.asc")):
        assert [info.shape for info in one.outputs] == [("n", 4), None]


def test_a_declared_shape_that_is_wrong_changes_no_result() -> None:
    nodes = [onnx.helper.make_node("Neg", ["x"], ["y"])]
    made = models.model(nodes, [models.info("x", shape=["n", 4])], [models.info("y", shape=["n", 5, 1])])
    for mode in MODES:
        exe = asc.compile(made, mode=mode, threads=1)
        assert [exe(np.ones((2, 4), np.float32)).shape for _ in range(3)] == [(2, 4)] * 3


def test_an_executable_serves_alone_where_its_model_is_gone(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    (saved.parent / "model.onnx").unlink()
    assert asc.load(saved).run(rows(2))["y"].shape == (2, 8)
    assert not rebuilt(caplog)


@pytest.mark.parametrize("what", ["version", "isa", "cpu", "onednn", "blas"])
def test_a_file_of_another_version_or_cpu_is_rebuilt_or_refused(
    what: str, saved: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if what == "version":
        monkeypatch.setattr(store, "__version__", "0.0.other")
    else:
        build = _core.build_info()
        monkeypatch.setattr(_core, "build_info", lambda: build | {what: "other"})
    assert asc.load(saved).run(rows(1))["y"].shape == (1, 8)
    assert rebuilt(caplog)
    (saved.parent / "model.onnx").unlink()
    with pytest.raises(asc.GraphError, match=r"other.*pass model="):
        asc.load(saved)


def test_a_changed_model_is_never_ignored(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(saved.parent, models.mlp(width=8, layers=2, seed=1))
    with pytest.raises(asc.GraphError, match=r"has changed; pass model="):
        asc.load(saved)
    changed = asc.compile(path, threads=1).run(rows(3))
    assert same(asc.load(saved, model=path).run(rows(3)), changed)
    assert rebuilt(caplog)


def test_a_change_that_keeps_size_and_time_is_noticed(saved: Path) -> None:
    path = saved.parent / "model.onnx"
    before, data = path.stat(), bytearray(path.read_bytes())
    data[data.index(b"\x0a\x02w0") - 30] ^= 1  # a weight
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(asc.GraphError, match=r"has changed; pass model="):
        asc.load(saved)


def test_a_copied_model_is_the_same_model(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = saved.parent / "model.onnx"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    assert asc.load(saved).stats()["warmups"] == 1
    assert not rebuilt(caplog)


@pytest.mark.parametrize("settled", [True, False])
def test_only_a_stamp_that_had_settled_saves_reading_the_model(
    settled: bool, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_SETTLED_NS", -1 if settled else 1 << 62)
    asc.compile(saved.parent / "model.onnx", threads=1).save(saved)
    read: list[Path] = []
    whole = setup.hash_of
    monkeypatch.setattr(setup, "hash_of", lambda path: read.append(path) or whole(path))
    asc.load(saved)
    assert bool(read) != settled


def test_changed_external_data_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(small_mlp(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    asc.compile(path, threads=1).save(tmp_path / "m.asc")
    asc.load(tmp_path / "m.asc")
    weights = bytearray((tmp_path / "weights.bin").read_bytes())
    weights[10] ^= 1
    (tmp_path / "weights.bin").write_bytes(weights)
    with pytest.raises(asc.GraphError, match=r"weights.bin' has changed"):
        asc.load(tmp_path / "m.asc")


def test_a_model_that_changed_since_it_was_compiled_is_not_saved(tmp_path: Path) -> None:
    exe = asc.compile(written(tmp_path, small_mlp()), threads=1)
    written(tmp_path, models.mlp(width=8, layers=3))
    with pytest.raises(asc.GraphError, match="has changed since it was compiled"):
        exe.save(tmp_path / "m.asc")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx"]


def test_a_moved_folder_and_a_model_elsewhere_are_accepted(saved: Path, tmp_path: Path) -> None:
    moved = saved.parent / "moved"
    moved.mkdir()
    for name in ("m.asc", "model.onnx"):
        (saved.parent / name).rename(moved / name)
    asc.load(moved / "m.asc")
    elsewhere = (moved / "model.onnx").rename(tmp_path / "renamed.onnx")
    assert asc.load(moved / "m.asc", model=elsewhere).stats()["warmups"] == 1


def test_a_model_in_memory_is_built_instead_of_being_trusted(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    asc.load(saved, model=small_mlp())
    assert rebuilt(caplog)


def test_a_failed_save_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = saved.read_bytes()
    exe = asc.load(saved)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(asc.WriteError, match="No space left"):
        exe.save(saved)
    assert saved.read_bytes() == good
    assert sorted(p.name for p in saved.parent.iterdir()) == ["m.asc", "model.onnx"]


def test_an_executable_can_replace_the_file_that_it_uses(saved: Path) -> None:
    exe = asc.load(saved)
    expected = exe.run(rows(3))
    exe.save(saved)
    assert same(exe.run(rows(3)), expected)
    assert same(asc.load(saved).run(rows(3)), expected)


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    exe = asc.compile(small_mlp(), threads=1)
    for path in (tmp_path / "absent.asc", tmp_path):
        with pytest.raises(asc.GraphError, match=r"\[load\] cannot read"):
            asc.load(path)
    with pytest.raises(asc.GraphError, match="is a path, got NoneType"):
        asc.load(None)  # type: ignore[arg-type]
    for path in (tmp_path / "absent" / "m.asc", tmp_path):
        with pytest.raises(asc.WriteError, match=r"\[save\] cannot write"):
            exe.save(path)
    assert not list(tmp_path.iterdir())


def test_loading_is_quiet_where_all_is_well(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ascendsched"):
        asc.load(saved)
    assert not caplog.records


def turning() -> onnx.ModelProto:
    """y = Relu(x) between a transposition and its inverse, which compiling removes."""
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["last"], perm=[0, 2, 3, 1]),
        onnx.helper.make_node("Relu", ["last"], ["positive"]),
        onnx.helper.make_node("Transpose", ["positive"], ["y"], perm=[0, 3, 1, 2]),
    ]
    return models.model(nodes, [models.info("x", shape=["n", 2, 3, 4])], [models.info("y")], {})


@pytest.mark.parametrize("saved_fused", [True, False])
@pytest.mark.parametrize("loaded_fused", [True, False])
def test_what_was_rewritten_before_it_was_saved_need_not_be_again(
    saved_fused: bool, loaded_fused: bool, tmp_path: Path
) -> None:
    model = turning()
    model.graph.name = "a_name_of_its_own"
    x = np.random.default_rng(5).standard_normal((2, 2, 3, 4)).astype(np.float32)
    exe = asc.compile(written(tmp_path, model), threads=1, options=asc.Options(fuse=saved_fused))
    exe.save(tmp_path / "m.asc")
    data = (tmp_path / "m.asc").read_bytes()
    assert data[rewritten_at(data, b"a_name_of_its_own")] == saved_fused
    again = asc.load(tmp_path / "m.asc", options=asc.Options(fuse=loaded_fused))
    assert ("task Transpose" in again.plan.text()) == (not saved_fused and not loaded_fused)
    assert same(again.run({"x": x}), {"y": np.maximum(x, 0)})


def test_a_path_with_a_null_byte_is_refused() -> None:
    with pytest.raises(asc.GraphError, match="null byte"):
        asc.load("a\0b")


def test_a_path_that_is_no_unicode_is_taken(saved: Path, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\xfe.asc"
    exe = asc.load(saved)
    exe.save(os.fsdecode(odd))
    assert same(asc.load(os.fsdecode(odd)).run(rows(3)), exe.run(rows(3)))
