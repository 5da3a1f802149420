"""The tuner, the shapes that it reads, the file that it writes."""

from __future__ import annotations

import itertools
import json
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import ascendsched as asc
from ascendsched.cli import main
from ascendsched.errors import GraphError, PlanError
from ascendsched.tuning import tuner
from ascendsched.tuning.race import Timing, race, ratio_interval
from ascendsched.tuning.settings import Settings, read_settings
from ascendsched.tuning.shapes import check_shapes, read_shapes

from . import onnx_models as models


def declared(name: str, *shape: int | str | None) -> Any:
    return SimpleNamespace(name=name, dtype="float32", shape=shape)


SHAPES = [{"x": (1 + i % 3, 8)} for i in range(12)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(models.mlp(width=8, layers=2), path)
    return path


def test_tuning_compares_before_and_after_and_its_file_compiles(tmp_path: Path, model: Path) -> None:
    said: list[str] = []
    found = asc.tune(model, SHAPES, threads=1, budget_s=0.5, progress=said.append)
    assert found.before.runs == found.after.runs >= len(SHAPES)
    assert found.low <= found.ratio <= found.high
    assert "p99" in found.text()
    assert found.trials
    assert said[0] == "compiling"
    found.settings.save(tmp_path / "tuned.json")
    exe = asc.compile(model, options=tmp_path / "tuned.json")
    assert exe.mode == found.settings.mode
    x = np.ones((2, 8), np.float32)
    np.testing.assert_array_equal(exe(x), asc.compile(model, threads=1)(x))


def test_forbidden_modes_are_not_chosen(model: Path) -> None:
    found = asc.tune(model, SHAPES, threads=1, budget_s=0.2, forbid=["auto", "sink"])
    assert found.settings.mode == "host"
    assert not [trial for trial in found.trials if "sink" in trial.what]


def test_buckets_are_tried_where_they_are_declared(model: Path) -> None:
    found = asc.tune(
        model, SHAPES, threads=1, budget_s=1.0, buckets=asc.Buckets(axis={"x": 0}, max_count=2, slice={"y": 0})
    )
    assert "buckets" in [trial.what for trial in found.trials]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"shapes": []}, GraphError),
        ({"shapes": [{"q": (1, 8)}]}, GraphError),
        ({"shapes": [{"x": (1, "n")}]}, GraphError),
        ({"shapes": [{"x": (1, 7)}]}, GraphError),
        ({"shapes": [{"x": (2**40, 8)}]}, GraphError),
        ({"shapes": ["x"]}, GraphError),
        ({"shapes": 3}, GraphError),
        ({"shapes": SHAPES, "budget_s": 0}, PlanError),
        ({"shapes": SHAPES, "budget_s": float("nan")}, PlanError),
        ({"shapes": SHAPES, "forbid": ["host", "sink", "auto"]}, PlanError),
        ({"shapes": SHAPES, "forbid": "host"}, PlanError),
        ({"shapes": SHAPES, "threads": 0}, PlanError),
        ({"shapes": SHAPES, "device": "sim"}, PlanError),
    ],
)
def test_bad_arguments_give_our_errors(model: Path, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        asc.tune(model, **arguments)


def test_command_prints_and_writes_what_it_found(tmp_path: Path, model: Path) -> None:
    shapes = tmp_path / "shapes.jsonl"
    shapes.write_text('{"x": [1, 8]}\n{"x": [3, 8]}\n', encoding="utf-8")
    out = tmp_path / "tuned.json"
    arguments = ["tune", str(model), "--shapes", str(shapes), "--budget", "0.3s", "--threads", "1", "--out", str(out)]
    text = CliRunner().invoke(main, arguments)
    assert text.exit_code == 0, text.output
    assert "p99" in text.output
    assert read_settings(out).threads == 1
    result = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output)
    assert result["schema"] == "ascendsched.tune/1"
    assert result["before"]["runs"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--budget", "soon"],
        ["--slice", "y=0"],
        ["--axis", "x=one"],
        ["--pad", "x=0"],
        ["--symbol", "q"],
        ["--out", "no/folder/tuned.json"],
    ],
)
def test_command_refuses_in_one_line(tmp_path: Path, model: Path, arguments: list[str]) -> None:
    shapes = tmp_path / "lengths"
    shapes.write_text("1\n2\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["tune", str(model), "--shapes", str(shapes), *arguments])
    assert result.exit_code in {1, 2}
    assert "Traceback" not in result.output


# --- shapes ----------------------------------------------------------------------------------------------------------


def test_lengths_of_a_trace_become_the_dimension_that_is_no_batch(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("5\n9\n", encoding="utf-8")
    inputs = [declared("ids", "batch", "seq"), declared("mask", "batch", "seq", 4)]
    assert read_shapes(path, inputs) == [{"ids": (1, n), "mask": (1, n, 4)} for n in (5, 9)]
    with pytest.raises(GraphError, match="fit several dimensions"):
        read_shapes(path, [declared("ids", "seq", "past")])
    assert read_shapes(path, [declared("ids", "seq", "past")], "past")[0] == {"ids": (1, 5)}
    with pytest.raises(GraphError, match="no input has"):
        read_shapes(path, inputs, "q")
    with pytest.raises(GraphError, match="instead of a trace"):
        read_shapes(path, [declared("ids", "seq", None)])


@pytest.mark.parametrize(
    "text", ['{"x": 3}', '{"x": ["a"]}', '{"x": [true]}', '{"q": [1]}', '{"x": [1e9]}', "{", '{"x": [-1]}']
)
def test_lines_that_are_no_shapes_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shapes"
    path.write_text('{"x": [1]}\n' + text + "\n", encoding="utf-8")
    with pytest.raises(GraphError):
        read_shapes(path, [declared("x", "n")])


def test_inputs_of_fixed_shape_may_be_left_out() -> None:
    assert check_shapes([{"x": [3]}], [declared("x", "n"), declared("w", 2, 2)]) == [{"x": (3,), "w": (2, 2)}]
    with pytest.raises(GraphError, match="no shape for 'x'"):
        check_shapes([{}], [declared("x", "n")])
    with pytest.raises(GraphError, match="no list of whole numbers"):
        check_shapes([{"x": "n"}], [declared("x", "n")])


# --- races and settings ----------------------------------------------------------------------------------------------


def test_interval_holds_the_ratio_and_is_the_same_each_time() -> None:
    chance = np.random.default_rng(0)
    first = (chance.random(400) + 1) * 1e6
    low, high = ratio_interval(first.tolist(), (first * 0.8).tolist())
    assert low <= 0.8 + 1e-9
    assert high >= 0.8 - 1e-9
    assert (low, high) == ratio_interval(first.tolist(), (first * 0.8).tolist())
    assert Timing.of([1_000_000, 3_000_000]).mean_ms == 2


def test_a_race_runs_everything_on_both_sides() -> None:
    ran: dict[str, list[int]] = {"a": [], "b": []}
    feeds = [{"x": np.full(1, n)} for n in range(5)]
    race(lambda f: ran["a"].append(int(f["x"][0])), lambda f: ran["b"].append(int(f["x"][0])), feeds, 0.0)
    assert ran["a"] == ran["b"]
    assert set(ran["a"]) == set(range(5))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_race_lets_each_side_begin_on_every_one_of_the_feeds(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", partial(next, itertools.count()))
    ran: list[tuple[str, int]] = []
    feeds = [{"x": np.full(1, n)} for n in range(count)]

    def call(side: str) -> Any:
        return lambda feed: ran.append((side, int(feed["x"][0])))

    race(call("a"), call("b"), feeds, 20)
    began = set(ran[::2])
    assert began == {(side, n) for side in "ab" for n in range(count)}


def test_settings_that_stay_as_they_were_claim_no_gain(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "MIN_GAIN", 1.0)  # nothing can save so much
    found = asc.tune(model, SHAPES[:2], threads=1, budget_s=0.2)
    assert (found.ratio, found.low, found.high) == (1, 1, 1)
    assert found.before == found.after
    assert "stay as they are" in found.text()
    assert "/" not in found.text().splitlines()[-1]
    assert "kernels recorded" not in found.verdict  # few shapes are repeated until a verdict is possible


def test_settings_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    options = asc.Options(memo=False, buckets=asc.Buckets(axis={"x": 1}, sizes=[8, 4], pad={"x": 2}))
    Settings("sink", 3, options).save(path)
    again = read_settings(path)
    assert (again.mode, again.threads, again.options) == ("sink", 3, options)
    assert "fuse" not in path.read_text(encoding="utf-8")
    with pytest.raises(asc.WriteError, match="cannot write"):
        Settings().save(tmp_path / "no" / "folder")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "ascendsched.tuned/1", "mode": "fast"}',
        '{"schema": "ascendsched.tuned/1", "mode": [1]}',
        '{"schema": "ascendsched.tuned/1", "threads": 0}',
        '{"schema": "ascendsched.tuned/1", "options": 3}',
        '{"schema": "ascendsched.tuned/1", "options": {"unknown": 1}}',
        '{"schema": "ascendsched.tuned/1", "options": {"memo": 7}}',
        '{"schema": "ascendsched.tuned/1", "options": {"buckets": 7}}',
        '{"schema": "ascendsched.tuned/1", "options": {"buckets": {"axis": {}}}}',
        '{"schema": "ascendsched.tuned/1", "options": {"buckets": {"q": 1}}}',
        "[" * 100_000,
    ],
)
def test_files_that_are_no_settings_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tuned.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError, match=r"\[options\]"):
        asc.compile(models.mlp(width=8, layers=1), options=path)


def test_arguments_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    Settings("sink", 2).save(path)
    assert asc.compile(models.mlp(width=8, layers=1), options=path).mode == "sink"
    assert asc.compile(models.mlp(width=8, layers=1), options=path, mode="host").mode == "host"
