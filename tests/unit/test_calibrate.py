"""Costs fitted to recordings: hosts, kernels, and how well they predict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ascendsched.cli import main
from ascendsched.errors import AscendSchedError
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.trace import write_trace
from ascendsched.sim.calibrate import check_host, fit_host, fit_profile
from ascendsched.sim.comparison import Subject, run_mode
from ascendsched.sim.cost_profile import load_profile
from ascendsched.sim.engine import MODES
from ascendsched.sim.host_cost import HostCost, RunFacts
from ascendsched.sim.kernel_library import KernelLibrary, Measured, non_negative_fit
from ascendsched.sim.sweep import sweep_models
from ascendsched.sim.work import work_of
from ascendsched.tasks import Operand, Task

ASCEND = load_profile("ascend-910b")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Host-bound runs of two models on one host, as traces."""
    folder = tmp_path_factory.mktemp("traces")
    paths = []
    for name in ("resnet-50", "bert-large"):
        recording = run_mode(Subject(name, ASCEND, context=64), MODES["host-uncached"]).recording
        paths.append(Path(write_trace(recording, folder / f"{name}.json")))
    return paths[0], paths[1]


def test_a_host_is_recovered_from_its_recording(traces: tuple[Path, Path]):
    fitted = fit_profile(read_profiles([traces[0]]).ranks[0], load_profile("cuda-a100"))
    for name in ("launch_us", "tiling_us", "infer_shape_us", "alloc_us"):
        assert fitted.costs[name] == pytest.approx(ASCEND.costs[name], rel=0.01), name
    assert fitted.costs["framework_us"] == pytest.approx(ASCEND.costs["framework_us"], rel=0.2)
    assert "resnet-50" in fitted.sources["launch_us"]


def test_a_fitted_host_predicts_a_recording_that_it_was_not_fitted_to(traces: tuple[Path, Path]):
    first, second = (read_profiles([path]).ranks[0] for path in traces)
    for rank in (first, second):
        check = check_host(fit_host(first), rank)
        assert check.median < 0.02
        assert check.predicted_ns == pytest.approx(check.recorded_ns, rel=0.05)


def test_the_command_calibrates_checks_and_writes_a_profile_that_simulates(traces: tuple[Path, Path], tmp_path: Path):
    out = tmp_path / "mine.json"
    arguments = ["--calibrate", str(traces[0]), "--check", str(traces[1]), "--out", str(out), "--json"]
    result = CliRunner().invoke(main, ["simulate", *arguments])
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert [check["role"] for check in document["checks"]] == ["fitted to", "not fitted to"]
    result = CliRunner().invoke(main, ["simulate", "resnet-50", "--device", str(out), "--json"])
    assert json.loads(result.output)["device"] == "mine"


def test_a_prediction_that_is_far_off_says_why(traces: tuple[Path, Path]):
    first, second = (read_profiles([path]).ranks[0] for path in traces)
    host = fit_host(first)
    assert check_host(host, second).reason == ""
    slow = replace(host, period=20 * host.period, period_of={})
    assert "none of those that the host was fitted to" in check_host(slow, second).reason
    slow = replace(host, period_of={name: 20 * ns for name, ns in fit_host(second).period_of.items()})
    assert check_host(slow, second).reason


def test_what_cannot_be_calibrated_on_is_refused(tmp_path: Path):
    events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": i, "dur": 1} for i in range(20)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"deviceProperties": [], "traceEvents": events}), encoding="utf-8")
    for arguments, part in (
        (["--calibrate", str(path)], "fewer than 8 launches"),
        (["--calibrate", str(tmp_path / "none.json")], "does not exist"),
        (["resnet-50", "--device", str(path)], "no cost profile"),
        (["resnet-50", "--html", str(tmp_path / "no" / "p.html")], "no folder for it"),
    ):
        result = CliRunner().invoke(main, ["simulate", *arguments])
        assert result.exit_code == 1
        assert part in result.output
        assert "Traceback" not in result.output
    assert CliRunner().invoke(main, ["simulate"]).exit_code == 2
    assert CliRunner().invoke(main, ["simulate", "resnet-50", "--check", "x"]).exit_code == 2


def product(rows: int, width: int) -> Task:
    operands = (Operand("float32", (rows, width)), Operand("float32", (width, width), True))
    return Task("m", "MatMul", "blas", operands, (Operand("float32", (rows, width)),))


def test_a_library_finds_between_what_was_measured():
    measured = [Measured(product(r, w), 100 + r * w * w / 10) for r in (1, 8, 64) for w in (16, 64, 256)]
    library = KernelLibrary(measured)
    for rows, width in ((2, 32), (16, 128), (32, 64)):
        assert library.ns(product(rows, width)) == pytest.approx(100 + rows * width**2 / 10, rel=0.35)
    # An operator that was never measured is judged by its work.
    assert library.ns(Task("r", "Relu", "", (Operand("float32", (4,)),), (Operand("float32", (4,)),))) > 0


def test_too_few_measurements_are_refused():
    with pytest.raises(AscendSchedError, match="4 or more"):
        KernelLibrary([Measured(product(1, 1), 1.0)])
    with pytest.raises(AscendSchedError, match="2 or more"):
        HostCost([])


def test_a_host_fit_separates_runs_from_launches():
    runs = [RunFacts({"kernel": n, "launch": n}, 1000.0, 1000.0 + 500 + 20 * n) for n in (1, 10, 100, 1000)]
    assert HostCost(runs).ns({"kernel": 50, "launch": 50}) == pytest.approx(1500, rel=0.01)


def test_fits_are_never_negative():
    matrix = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert (non_negative_fit(matrix, np.array([3.0, 2.0, 1.0])) >= 0).all()


def test_the_sweep_holds_runnable_models():
    import ascendsched as asc

    graphs = list(sweep_models())
    assert len(graphs) > 40
    graph, feeds = graphs[0]
    assert all(np.isfinite(array).all() for array in asc.compile(graph).run(feeds).values())


def test_a_kernel_that_was_disturbed_hardly_changes_what_is_predicted():
    measured = [Measured(product(r, w), 100 + r * w * w / 10) for r in (1, 8, 64) for w in (16, 64, 256)]
    before = KernelLibrary(measured).ns(product(8, 64))
    after = KernelLibrary([*measured, Measured(product(8, 64), 40_000.0), *measured]).ns(product(8, 64))
    assert after == pytest.approx(before, rel=0.35)


def test_a_stage_that_only_noisy_runs_have_costs_next_to_nothing():
    clean = [RunFacts({"kernel": n, "launch": n}, 60e3, 60e3 + 100 * n) for n in (10, 20, 40, 80)]
    noisy = RunFacts({"kernel": 10, "launch": 10, "sync": 1}, 20e6, 20.5e6)
    assert HostCost([*clean, noisy]).ns({"kernel": 10, "launch": 10, "sync": 1}) < 5_000


def test_the_product_of_a_fused_node_is_as_long_as_its_weights_have_rows():
    gate, x, w, y = (
        Operand("float32", (1, 9, 352)),
        Operand("float32", (1, 9, 128)),
        Operand("float32", (128, 352), True),
        Operand("float32", (1, 9, 352)),
    )
    task = Task("m", "Fused", "vector", (gate, x, w), (y,), parts=("Sigmoid", "Mul", "MatMul", "Mul"))
    assert work_of(task).matrix == 2 * 9 * 352 * 128
