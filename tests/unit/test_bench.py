"""`ascendsched bench`: results come before speed, and the sentence says which runtime to keep."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from ascendsched._version import __version__
from ascendsched.bench import measure
from ascendsched.bench.child import Cold, measure_cold, peak_bytes
from ascendsched.bench.difference import compare
from ascendsched.bench.report import print_report, to_dict
from ascendsched.bench.result import KEEP, Bench, Case, Row, format_ms
from ascendsched.bench.timing import percentile, time_in_turn
from ascendsched.cli import main
from ascendsched.cli.bench import parse_cases

from . import onnx_models

HAS_PEER = measure.has_peer()


@pytest.fixture(scope="module")
def mlp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "mlp.onnx"
    path.write_bytes(onnx_models.mlp().SerializeToString())
    return path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments, "--threads", "1", "--rounds", "2"])


def row(runtime: str, p50: float, is_bound: bool = False, problem: str = "") -> Row:
    return Row(runtime, is_bound, max_error=0.0, problem=problem, p50_ms=p50, p99_ms=p50 * 2, runs=5)


def case(ours: float, peer: float, shapes: str = "x=1") -> Case:
    return Case(shapes, [row("auto", ours), row("onnxruntime", peer)])


# --- the verdict -----------------------------------------------------------------------------------------------------


def test_where_onnxruntime_wins_the_verdict_says_to_keep_it() -> None:
    assert case(2.0, 1.0).verdict == (
        "keep onnxruntime here: it is 2.00 times as fast (ascendsched auto 2.000 ms, onnxruntime 1.000 ms)"
    )


def test_where_we_win_the_verdict_says_by_how_much() -> None:
    assert case(1.0, 3.0).verdict.startswith("ascendsched is 3.00 times as fast (")


def test_a_tie_is_no_reason_to_change() -> None:
    assert case(1.0, 1.01).verdict.startswith("no difference that matters")


def test_the_best_way_of_each_runtime_counts() -> None:
    found = Case(
        "x=1", [row("host", 5.0), row("sink", 2.0, True), row("onnxruntime", 9.0), row("onnxruntime", 4.0, True)]
    )
    assert found.ratio == 0.5
    assert "ascendsched sink, bound 2.000 ms, onnxruntime, bound 4.000 ms" in found.verdict


def test_wrong_results_have_no_speed() -> None:
    found = Case("x=1", [row("auto", math.nan, problem="'y' differs"), row("onnxruntime", 1.0)])
    assert found.verdict == f"{KEEP}: 'y' differs"
    assert Bench("m", 1, "onnxruntime", [found]).is_wrong


def test_without_onnxruntime_there_is_nothing_to_compare_with() -> None:
    found = Case("x=1", [row("auto", 1.0)])
    assert found.ratio is None
    assert "onnxruntime is not installed; install it with pip install onnxruntime" in found.verdict


def test_the_verdict_of_the_whole_names_the_shapes_that_onnxruntime_wins() -> None:
    bench = Bench("m", 1, "onnxruntime", [case(1.0, 4.0), case(4.0, 1.0, "x=2"), case(1.0, 2.0, "x=3")])
    assert bench.verdict == (
        f"ascendsched is faster for 2 of 3 sets of shapes, 1.26 times as fast on average; {KEEP} for x=2"
    )
    assert (
        Bench("m", 1, "onnxruntime", [case(2.0, 1.0)] * 2).verdict == f"{KEEP}: it is faster for all 2 sets of shapes"
    )


def test_the_report_shows_what_failed_and_ends_with_the_verdict() -> None:
    bench = Bench(
        "m", 1, "onnxruntime", [case(1.0, 4.0), Case("x=2", [row("auto", 1.0), row("onnxruntime", 1.0, problem="no")])]
    )
    bench.cases[0].rows[0].cold = Cold(1.0, 2.0, 1 << 20, 5 << 20)
    console = Console(width=120, record=True, file=sys.stderr)
    print_report(bench, console)
    text = console.export_text()
    assert "onnxruntime: not timed: no" in text
    assert text.rstrip().endswith(bench.verdict)
    json.dumps(to_dict(bench), allow_nan=False)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "want", "error", "is_wrong"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), 0.0, False),
        (np.float32([1, 200.1]), np.float32([1, 200]), 0.1, False),
        (np.float32([1, 2.1]), np.float32([1, 2]), 0.1, True),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), 0.0, False),
        (np.float32([np.nan]), np.float32([1]), np.inf, True),
        (np.float32([1]), np.float32([np.inf]), np.inf, True),
        (np.float32([1]), np.float64([1]), np.inf, True),
        (np.float32([[1]]), np.float32([1]), np.inf, True),
        (np.int64([2**62 + 1]), np.int64([2**62]), 1.0, True),
        (np.uint8([3]), np.uint8([4]), 1.0, False),
        (np.uint8([3]), np.uint8([5]), 2.0, True),
        (np.array([True]), np.array([False]), 1.0, True),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), 0.0, False),
    ],
)
def test_errors_are_judged_by_element_type(got: Any, want: Any, error: float, is_wrong: bool) -> None:
    found = compare({"y": got}, {"y": want})
    assert found.max_error == pytest.approx(error, rel=1e-3)
    assert found.is_wrong == is_wrong


def test_a_missing_result_is_wrong_and_named() -> None:
    found = compare({"a": np.float32([1])}, {"a": np.float32([1]), "b": np.float32([1])})
    assert (found.where, found.is_wrong) == ("b", True)


# --- timing and memory -----------------------------------------------------------------------------------------------


def test_calls_take_turns_and_nobody_always_comes_second() -> None:
    order: list[str] = []
    calls = [lambda name=name: order.append(name) for name in "ab"]
    times = time_in_turn(calls, 2, 1)
    assert [len(own) > 0 for own in times] == [True, True]
    blocks = [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name]
    # Calibration, then a and b; in the second round b comes first.
    assert blocks == ["a", "b", "a", "b", "a"]


def test_nothing_to_time_takes_no_time() -> None:
    assert time_in_turn([], 3, 1) == []


def test_percentiles_are_times_that_were_measured() -> None:
    times = [int(ms * 1e6) for ms in range(1, 101)]
    assert (percentile(times, 0.5), percentile(times, 0.99), percentile([3_000_000], 0.99)) == (51.0, 100.0, 3.0)


def test_a_fresh_process_tells_cold_times_and_its_own_peak_memory(mlp: Path) -> None:
    cold = measure_cold("host", str(mlp), 1, {"x": np.zeros((2, 16), np.float32)})
    assert isinstance(cold, Cold)
    assert cold.compile_ms > 0
    assert cold.first_run_ms > 0
    assert 0 < cold.base_bytes <= cold.peak_bytes
    assert peak_bytes() > 0


def test_memory_of_this_process_is_not_counted_as_the_childs(mlp: Path) -> None:
    ballast = np.ones(512 << 20, np.uint8)
    cold = measure_cold("host", str(mlp), 1, {"x": np.zeros((2, 16), np.float32)})
    assert isinstance(cold, Cold)
    assert cold.peak_bytes < ballast.nbytes


def test_a_process_that_fails_tells_why(tmp_path: Path) -> None:
    said = measure_cold("host", str(tmp_path / "missing.onnx"), 1, {})
    assert isinstance(said, str)
    assert "does not exist" in said


# --- the command -----------------------------------------------------------------------------------------------------


def test_cases_come_from_the_command_line_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "shapes.txt").write_text("# batch\nx=1,8; m=1\n\nx=2,8;m=2  # two\n")
    assert parse_cases(("x=4,8;m=4", str(tmp_path / "shapes.txt"))) == [
        {"x": "4,8", "m": "4"},
        {"x": "1,8", "m": "1"},
        {"x": "2,8", "m": "2"},
    ]
    for bad in ("missing.txt", str(tmp_path), "x=1;y"):
        with pytest.raises(click.BadParameter):
            parse_cases((bad,))


def test_bench_measures_every_mode_and_shape(mlp: Path) -> None:
    result = invoke(str(mlp), "--shapes", "x=1,16", "--shapes", "x=5,16", "--mode", "host", "--mode", "sink", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["schema"] == "ascendsched.bench/1"
    assert [c["shapes"] for c in facts["cases"]] == ["x=1,16", "x=5,16"]
    for found in facts["cases"]:
        labels = [f"ascendsched {mode}{bound}" for mode in ("host", "sink") for bound in ("", ", bound")]
        assert [r["label"] for r in found["rows"]] == labels + ["onnxruntime", "onnxruntime, bound"] * HAS_PEER
        for r in found["rows"]:
            assert 0 < r["p50_ms"] <= r["p99_ms"]
            assert r["max_error"] < 1e-5
            assert r["bound"] or r["cold"]["peak_bytes"] > 0
    assert facts["verdict"]
    assert facts["versions"]["ascendsched"] == __version__


def test_bench_prints_a_table_and_the_verdict_without_control_characters(mlp: Path) -> None:
    result = invoke(str(mlp))
    assert result.exit_code == 0, result.output
    assert "note: 'x': n taken as 1; set it with --shapes x=…" in result.output
    assert "ascendsched auto, bound" in result.output
    assert "\x1b" not in result.output
    assert result.stderr == ""


def test_bench_works_without_onnxruntime_and_says_so(mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "has_peer", lambda: False)
    result = invoke(str(mlp), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert {r["runtime"] for r in facts["cases"][0]["rows"]} == {"auto"}
    assert facts["reference"] == "ascendsched auto"
    assert facts["cases"][0]["ratio_to_onnxruntime"] is None
    assert "onnxruntime is not installed" in facts["verdict"]


def test_bench_reads_inputs_from_files_and_refuses_those_that_do_not_fit(mlp: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 16), np.float32))
    facts = json.loads(invoke(str(mlp), "--input", f"x={tmp_path / 'x.npy'}", "--json").stdout)
    assert facts["cases"][0]["shapes"] == "x=3,16"
    assert invoke(str(mlp), "--input", f"x={tmp_path / 'x.npy'}", "--shapes", "x=4,16").exit_code == 1
    assert "no input 'z'" in invoke(str(mlp), "--shapes", "z=1").stderr


def test_wrong_results_are_not_timed_and_give_status_1(mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = measure.compare

    def doubtful(results: Any, reference: Any) -> Any:
        return honest({name: array + 1 for name, array in results.items()}, reference)

    monkeypatch.setattr(measure, "compare", doubtful)
    result = invoke(str(mlp), "--json")
    assert result.exit_code == 1
    rows = json.loads(result.stdout)["cases"][0]["rows"]
    assert all("differs from the reference" in r["problem"] and r["p50_ms"] is None for r in rows)


def test_a_model_that_we_do_not_support_stays_with_onnxruntime(tmp_path: Path) -> None:
    path = tmp_path / "regions.onnx"
    nodes = [onnx_models.h.make_node("MaxRoiPool", ["x", "x"], ["y"], pooled_shape=[1, 1])]
    proto = onnx_models.model(nodes, [onnx_models.info("x", shape=[2, 3])], [onnx_models.info("y")])
    path.write_bytes(proto.SerializeToString())
    result = invoke(str(path))
    assert result.exit_code == 1
    assert "MaxRoiPool" in result.stderr
    assert result.stderr.rstrip().endswith(KEEP)


def test_results_whose_shape_depends_on_data_are_measured_too(tmp_path: Path) -> None:
    path = tmp_path / "nonzero.onnx"
    path.write_bytes(onnx_models.nonzero().SerializeToString())
    result = invoke(str(path), "--shapes", "x=6,7", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["cases"][0]["rows"][0]["p50_ms"] > 0


@pytest.mark.skipif(not HAS_PEER, reason="onnxruntime is not installed")
def test_a_model_that_only_we_run_leaves_onnxruntime_out(mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ascendsched.demo import peers

    def refuse(model: str, threads: int) -> None:
        raise RuntimeError("[ONNXRuntimeError] : no")

    monkeypatch.setattr(peers, "create_session", refuse)
    result = invoke(str(mlp), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert "[ONNXRuntimeError] : no; it is left out" in facts["verdict"]
    assert [r["runtime"] for r in facts["cases"][0]["rows"] if r["p50_ms"]] == ["auto", "auto"]


def test_times_of_small_models_keep_digits_that_tell_them_apart() -> None:
    assert [format_ms(ms) for ms in (12.3456, 0.1, 0.00047, 0.0)] == ["12.346", "0.100", "0.00047", "0.000"]
