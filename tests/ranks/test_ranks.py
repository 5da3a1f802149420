"""Real ranks: processes over torch.distributed and over MPI, healthy and with faults injected."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ascendsched import ranks
from ascendsched.errors import DeviceError, DeviceUnavailableError, PlanError
from ascendsched.ranks.agreement import Agreement, Choice
from ascendsched.ranks.group import Group
from ascendsched.ranks.operators import all_reduce, step_input

WORKER = Path(__file__).with_name("worker.py")
ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120  # of a whole job, far above what any takes

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
HERE = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # wheels put it beside Python
MPIEXEC = shutil.which("mpiexec.hydra", path=HERE) or shutil.which("mpiexec", path=HERE)
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIEXEC is None, reason="mpi4py and mpiexec are not installed"
)
HEALTHY = ("collectives", "decoder", "agreement", "skew")


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_ranks(size: int, timeout_s: float, *scenarios: str, started: int | None = None) -> list[list[dict]]:
    """Lines of each rank, in order of rank."""
    port = str(free_port())
    processes = []
    for rank in range(size if started is None else started):
        place = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, str(WORKER), str(timeout_s), *scenarios]
        processes.append(subprocess.Popen(command, env=environment(**place), stdout=subprocess.PIPE, text=True))
    try:
        outputs = [process.communicate(timeout=DEADLINE_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [json_lines(output) for output in outputs]


def check_healthy(found: list[list[dict]]) -> None:
    size = len(found)
    for rank, lines in enumerate(found):
        by_name = {line["scenario"]: line for line in lines}
        assert all(line["rank"] == rank for line in lines)
        if "collectives" in by_name:
            total = sum((r + 1) ** 2 for r in range(size))
            expected = [total + r + 1 for r in range(size) for _ in range(4)]
            assert by_name["collectives"]["y"] == [expected] * 3
            assert by_name["collectives"]["max"] == [size - 1]
        assert by_name["decoder"]["error"] < 1e-5
        assert by_name["decoder"]["next"] == [by_name["decoder"]["alone"]] * 2
        modes = ["sink", "sink", "host", "sink", "sink"]
        assert by_name["agreement"]["seen"] == [[m, 64 * (size - 1 + s)] for s, m in enumerate(modes)]
        if "skew" in by_name:
            assert by_name["skew"]["late"] == 1
            assert by_name["skew"]["share"] >= 0.5
            # The workers' clocks are one clock, of which rank 1's is shifted by five seconds.
            assert by_name["skew"]["offsets"][0] == 0
            assert by_name["skew"]["offsets"][1] == pytest.approx(5e9, abs=0.2e9)
            assert "rank 1 came last" in by_name["skew"]["text"]


@needs_torch
def test_two_ranks_agree_compute_what_one_does_and_know_who_is_late():
    check_healthy(run_ranks(2, 60, *HEALTHY))


@needs_torch
def test_four_ranks_share_a_decoder():
    check_healthy(run_ranks(4, 60, "decoder", "agreement"))


@needs_torch
def test_a_rank_that_dies_is_named_by_the_others():
    survivor = run_ranks(2, 10, "dies")[0][-1]
    assert survivor["error_class"] in {"DeviceError", "WaitTimeoutError"}
    assert "rank 1 stopped at step 2, this rank is at step 3" in survivor["message"]


@needs_torch
def test_a_rank_that_hangs_ends_in_an_error_on_every_rank_within_the_deadline():
    found = run_ranks(2, 3, "hangs")
    assert found[0][-1]["error_class"] == "WaitTimeoutError"
    assert "rank 1 stopped at step 2, this rank is at step 3" in found[0][-1]["message"]
    assert found[1][-1]["error_class"] in {"DeviceError", "WaitTimeoutError"}  # when it wakes up, the job is gone


@needs_torch
def test_a_rank_with_another_model_ends_the_job_on_every_rank():
    for lines in run_ranks(2, 20, "stranger"):
        assert lines[-1]["error_class"] == "DeviceError"
        assert "have another model" in lines[-1]["message"]


@needs_torch
def test_a_rank_that_never_comes_is_named():
    (lines,) = run_ranks(2, 3, "absent", started=1)
    assert "rank 1 did not come" in lines[-1]["message"]


@needs_torch
def test_torchrun_starts_ranks():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(WORKER), "60"]
    done = subprocess.run(
        [*command, *HEALTHY], env=environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    check_healthy(by_rank(done.stdout))


@needs_mpi
@pytest.mark.parametrize("size", [2, 4])
def test_mpiexec_starts_ranks(size: int):
    done = mpiexec(size, "60", *(HEALTHY if size == 2 else ("decoder", "agreement")))
    assert done.returncode == 0, done.stderr[-2000:]
    check_healthy(by_rank(done.stdout))


@needs_mpi
def test_an_mpi_rank_that_dies_is_named_by_all_others():
    lines = json_lines(mpiexec(3, "4", "dies").stdout)
    assert len(lines) == 2
    for line in lines:
        assert line["error_class"] in {"DeviceError", "WaitTimeoutError"}
        assert "rank 1 did not come there in step 3" in line["message"]


@needs_mpi
def test_an_mpi_rank_that_hangs_is_named_and_told_when_it_wakes_up():
    lines = json_lines(mpiexec(3, "3", "hangs").stdout)
    assert {line["error_class"] for line in lines} == {"WaitTimeoutError"}
    assert sum("rank 1 did not come there in step 3" in line["message"] for line in lines) == 2
    assert sum("gave up" in line["message"] or "had given up" in line["message"] for line in lines) == 1


@needs_mpi
def test_an_mpi_rank_with_another_model_is_named_on_every_rank():
    lines = json_lines(mpiexec(3, "20", "stranger").stdout)
    assert len(lines) == 3
    assert all("ranks [1] of 3 have another model" in line["message"] for line in lines)


@needs_mpi
def test_mpi_ranks_that_meet_in_different_collectives_say_in_which():
    lines = json_lines(mpiexec(2, "3", "parts_ways").stdout)
    assert len(lines) == 2
    assert any("rank 1 gave up at agreement" in line["message"] for line in lines)
    assert any("rank 0 gave up at all_reduce here" in line["message"] for line in lines)


@needs_mpi
def test_joining_over_mpi_ends_by_its_deadline_when_a_rank_does_not_come():
    lines = json_lines(mpiexec(2, "2", "late").stdout)
    assert {line["error_class"] for line in lines} == {"WaitTimeoutError"}
    assert any("a rank did not come" in line["message"] for line in lines)


def mpiexec(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a job whose ranks mpiexec leaves alone when one of them dies, so that each can tell its error."""
    keep = "--enable-recovery" if "Open MPI" in mpi_version() else "-disable-auto-cleanup"
    command = [str(MPIEXEC), keep, "-n", str(size), sys.executable, str(WORKER), *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def mpi_version() -> str:
    return subprocess.run([str(MPIEXEC), "--version"], capture_output=True, text=True, check=False).stdout


def json_lines(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def by_rank(output: str) -> list[list[dict]]:
    lines = json_lines(output)
    return [[line for line in lines if line["rank"] == rank] for rank in sorted({line["rank"] for line in lines})]


class AloneGroup(Group):
    """A job of one process, whose minimum with the others is scripted."""

    def __init__(self, others=()):
        super().__init__(0, 1, 1.0)
        self.others = list(others)

    def advance(self, step):
        pass

    def close(self):
        pass

    def _all_reduce(self, array, op):
        return array

    def _all_gather(self, array):
        return [array]

    def _start_min(self, array):
        other = self.others.pop(0) if self.others else array
        return lambda: np.minimum(array, other)

    def _exchange(self, peer, array, is_first):
        raise RuntimeError("nobody there")


def test_the_most_cautious_mode_and_the_largest_bucket_win():
    agreed = Agreement(AloneGroup([np.array([0, -128]), np.array([1, -32])]))
    agreed.propose(Choice("sink", 64))
    assert agreed.next() == Choice("host", 128)
    agreed.propose(Choice("sink", 64))
    assert agreed.next() == Choice("sink", 64)


def test_proposals_and_steps_take_turns():
    agreed = Agreement(AloneGroup())
    with pytest.raises(PlanError, match="propose"):
        agreed.next()
    agreed.propose(Choice())
    with pytest.raises(PlanError, match="twice"):
        agreed.propose(Choice())
    with pytest.raises(PlanError, match="no choice"):
        Agreement(AloneGroup(), Choice("fast"))


def test_the_first_failure_is_final():
    group = AloneGroup()
    with pytest.raises(DeviceError, match="nobody there") as first:
        group.exchange(1, np.zeros(1), True)
    with pytest.raises(DeviceError) as second:
        group.all_reduce(np.zeros(1))
    assert second.value is first.value


def test_a_collective_outside_of_a_job_says_so():
    import ascendsched as asc

    ranks.operators.use(None)
    g = asc.Graph("g")
    x, step = g.input("x", "float32", (2,)), step_input(g)
    g.output(all_reduce(g, x, step, name="sum"), "y")
    with pytest.raises(asc.AscendSchedError, match="in no job"):
        asc.compile(g).run({"x": np.ones(2, np.float32), "ascendsched.step": np.array(1, np.int64)})


@pytest.mark.parametrize(
    ("env", "part"),
    [
        ({}, "torchrun or mpiexec"),
        pytest.param({"RANK": "x", "WORLD_SIZE": "2"}, "expected 0 <= rank < size", marks=needs_torch),
        pytest.param({"RANK": "2", "WORLD_SIZE": "2"}, "expected 0 <= rank < size", marks=needs_torch),
    ],
)
def test_a_process_without_a_place_in_a_job_is_told_so(env, part):
    with pytest.raises((DeviceError, DeviceUnavailableError), match=part):
        ranks.join(environment=env)


def test_deadlines_and_operators_that_do_not_exist_are_refused():
    with pytest.raises(DeviceError, match="timeout_s"):
        ranks.join(timeout_s=float("nan"))
    with pytest.raises(DeviceError, match="use sum, min or max"):
        AloneGroup().all_reduce(np.zeros(1), "mean")
