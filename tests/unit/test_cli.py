"""The command line: every command explains itself, prints JSON with a schema, and fails in one line."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from ascendsched._version import __version__
from ascendsched.arrays import random_array
from ascendsched.cli import COMMANDS, main
from ascendsched.cli.inputs import make_inputs, parse_pairs, parse_shape
from ascendsched.errors import GraphError, OutOfMemoryError


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def declared(name: str, dtype: str, *shape: int | str | None) -> Any:
    return SimpleNamespace(name=name, dtype=dtype, shape=shape)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = x @ w + a, with a dynamic batch."""
    pytest.importorskip("ascendsched._core", reason="the extension is not built")
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "a"], ["y"])]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4]),
        helper.make_tensor_value_info("a", TensorProto.FLOAT, ["batch", 4]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])]
    graph = helper.make_graph(nodes, "affine", inputs, outputs, [weights])
    path = tmp_path_factory.mktemp("models") / "affine.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


# --- overview --------------------------------------------------------------------------------------------------------


def test_the_overview_lists_every_command() -> None:
    text = invoke("--help").output
    assert all(name in text for name in COMMANDS)
    assert invoke("--version").output == f"ascendsched, version {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_helps_with_an_example_and_prints_json(name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert f"Example: ascendsched {name}" in result.output
    assert "--json" in result.output


@pytest.mark.parametrize("arguments", [["nonsense"], ["run"], ["run", "m.onnx", "--mode", "fast"], ["plan", "--nope"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert invoke(*arguments).exit_code == 2


def test_info_tells_what_a_bug_report_needs() -> None:
    facts = json.loads(invoke("info", "--json").output)
    assert facts["schema"] == "ascendsched.info/1"
    assert facts["version"] == __version__
    assert facts["packages"]["numpy"] == np.__version__
    assert "devices" in facts or "core" in facts
    assert f"version: {__version__}" in invoke("info").output


# --- inputs of run ---------------------------------------------------------------------------------------------------


def test_dimensions_that_nothing_fixes_become_1_with_a_note() -> None:
    arrays, notes = make_inputs([declared("x", "float32", "batch", 3, None)], {}, {}, 0)
    assert arrays["x"].shape == (1, 3, 1)
    assert notes == ["'x': batch, unknown dimension taken as 1; set it with --shape x=…"]


def test_a_given_shape_fixes_its_symbols_everywhere(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 2), np.float32))
    inputs = [
        declared("x", "float32", "batch", 2),
        declared("m", "int64", "batch", "seq"),
        declared("s", "bool", "seq"),
    ]
    arrays, notes = make_inputs(inputs, {"x": str(tmp_path / "x.npy")}, {"s": "7"}, 0)
    assert {name: array.shape for name, array in arrays.items()} == {"x": (5, 2), "m": (5, 7), "s": (7,)}
    assert arrays["x"].all()
    assert notes == []


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "int64", "bool"])
def test_random_inputs_have_the_declared_type_and_repeat(dtype: str) -> None:
    first, second = (random_array(np.random.default_rng(3), dtype, (2, 3)) for _ in range(2))
    assert first.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(first, second)


def test_bfloat16_inputs_come_as_bfloat16() -> None:
    pytest.importorskip("ml_dtypes", reason="comes with onnx")
    assert str(random_array(np.random.default_rng(0), "bfloat16", (4,)).dtype) == "bfloat16"


def test_names_with_an_equals_sign_are_taken_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "a=b.npy", np.ones(3, np.float32))
    inputs = [declared("x", "float32", "n"), declared("x=y", "float32", "n")]
    given = parse_pairs([f"x=y={tmp_path / 'a=b.npy'}"], "--input")
    arrays, _ = make_inputs(inputs, given, parse_pairs(["x=3"], "--shape"), 0)
    assert arrays["x=y"].all()
    assert arrays["x"].shape == (3,)


@pytest.mark.parametrize(
    ("files", "shapes", "words"),
    [
        ({}, {"z": "1"}, "no input 'z'; its inputs are x"),
        ({}, {"x": "1,2"}, "rank 1"),
        ({"x": "missing.npy"}, {}, "cannot read 'missing.npy'"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(files: dict[str, str], shapes: dict[str, str], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        make_inputs([declared("x", "float32", "n")], files, shapes, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("length", ["9" * 11, "9" * 30])
def test_random_inputs_that_no_memory_holds_are_refused(dtype: str, length: str) -> None:
    with pytest.raises(OutOfMemoryError, match="give smaller shapes"):
        make_inputs([declared("x", dtype, "n", 8)], {}, {"x": length + ",8"}, 0)


@pytest.mark.parametrize("option", ["--trace", "--html", "--out"])
def test_simulate_refuses_a_folder_that_is_not_there_before_it_starts(option: str) -> None:
    result = invoke("simulate", "no such model", option, "no/folder/file")
    assert result.exit_code == 1
    assert result.output == "ascendsched: [simulate] cannot write 'no/folder/file': no folder for it; create it first\n"


def test_files_that_are_no_array_or_differ_from_the_shape_are_refused(tmp_path: Path) -> None:
    (tmp_path / "garbage.npy").write_bytes(b"nonsense")
    np.savez(tmp_path / "many.npz", a=np.zeros(1), b=np.zeros(1))
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    inputs = [declared("x", "float32", "n")]
    for name, words in (("garbage.npy", "cannot read"), ("objects.npy", "cannot read"), ("many.npz", "several arrays")):
        with pytest.raises(GraphError, match=words):
            make_inputs(inputs, {"x": str(tmp_path / name)}, {}, 0)
    with pytest.raises(GraphError, match="drop one"):
        make_inputs(inputs, {"x": str(tmp_path / "x.npy")}, {"x": "4"}, 0)


def test_options_of_the_wrong_form_are_usage_errors() -> None:
    assert parse_pairs(["a=1", "b:0=2", "c=d=1/x.npy"], "--shape") == {"a": "1", "b:0": "2", "c": "d=1/x.npy"}
    assert parse_shape("1x3,2", "x") == (1, 3, 2)
    assert parse_shape("()", "x") == ()
    for values in (["a"], ["=1"], ["a="], ["a=1", "a=2"]):
        with pytest.raises(click.BadParameter):
            parse_pairs(values, "--shape")
    for text in ("a", "1,,2", "-1"):
        with pytest.raises(click.BadParameter):
            parse_shape(text, "x")


# --- with the core ---------------------------------------------------------------------------------------------------


def test_run_shows_results_times_and_a_trace(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((2, 4), 3, np.float32))
    trace = tmp_path / "trace.json"
    options = ["--input", f"x={tmp_path / 'x.npy'}", "--runs", "5", "--mode", "host", "--threads", "1"]
    result = invoke("run", str(model), *options, "--profile", str(trace), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["schema"], facts["mode"], facts["runs"]) == ("ascendsched.run/1", "host", 5)
    assert facts["inputs"]["x"]["max"] == 3.0
    assert facts["outputs"]["y"]["shape"] == [2, 4]
    assert facts["verdict"]["figures"]["kernels"] >= 5
    assert json.loads(trace.read_text())["schema"] == "ascendsched.trace/1"
    text = invoke("run", str(model), *options).output
    assert "host mode on cpu: median" in text
    assert "\x1b" not in text


def test_plan_shows_the_plan_and_why(model: Path) -> None:
    facts = json.loads(invoke("plan", str(model), "--json").stdout)
    assert facts["schema"] == "ascendsched.plan/1"
    assert facts["inputs"][0] == {"name": "x", "dtype": "float32", "shape": ["batch", 4]}
    text = invoke("plan", str(model)).output
    assert "input x: float32 batch x 4" in text
    assert facts["plan"].rstrip("\n") in text
    assert facts["explain"]


@pytest.mark.parametrize("arguments", [["run"], ["plan"], ["run", "--device", "abacus"]])
def test_our_errors_are_one_line_and_exit_with_1(model: Path, tmp_path: Path, arguments: list[str]) -> None:
    command, *options = arguments
    path = str(model) if options else str(tmp_path / "missing.onnx")
    result = invoke(command, path, *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("ascendsched: [")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_shape_that_does_not_fit_is_our_error(model: Path) -> None:
    result = invoke("run", str(model), "--shape", "x=2,5")
    assert result.exit_code == 1
    assert "'x'" in result.stderr


def test_the_quick_demo_checks_and_measures_every_row(tmp_path: Path) -> None:
    pytest.importorskip("ascendsched._core", reason="the extension is not built")
    result = invoke("demo", "--quick", "--json", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["schema"] == "ascendsched.demo/1"
    ours = [row for row in facts["rows"] if row["verdict"]]
    assert [row["model"] for row in ours] == ["decoder"] * 4 + ["ResNet-18"] * 2
    for row in ours:
        assert row["us"]["median"] > 0
        assert row["max_error"] < 1e-2
        assert row["host_share_pct"] + row["kernel_share_pct"] == pytest.approx(100)
        assert Path(row["trace"]).parent == tmp_path
    assert facts["conclusion"].startswith("Sinking ")
