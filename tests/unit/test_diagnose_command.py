"""`ascendsched diagnose`: text for people, JSON for programs, one line for errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import ascendsched
from ascendsched.cli import main

from .profile_files import Event, ascend_trace, call, dumps, kineto, late_launches, span, write


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["diagnose", *map(str, arguments)])


def as_json(*arguments: object) -> Any:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def advice_of(document: Any) -> str:
    return " ".join(f"{item['action']} {item['details']}" for item in document["advice"])


def test_json_has_a_schema_and_a_split_that_adds_up(tmp_path: Path) -> None:
    document = as_json(kineto(tmp_path / "trace.json", late_launches()))
    assert document["schema"] == "ascendsched.diagnose/1"
    assert document["verdict"] == "host_bound"
    assert document["device_activities"] == 20
    assert document["busy_pct"] + document["idle_pct"] == pytest.approx(100)
    assert sum(document["idle_split_pct"].values()) == pytest.approx(100)
    assert document["top_kernels"] == [{"name": "gemm", "us": 200.0, "count": 20, "share_pct": 100.0}]


def test_text_says_verdict_causes_gaps_and_advice(tmp_path: Path) -> None:
    text = invoke(kineto(tmp_path / "trace.json", late_launches())).output
    for part in (
        "Host bound",
        "Why the device idled",
        "host_late.framework",
        "Longest gaps",
        "Longest work",
        "What would help",
    ):
        assert part in text
    assert "CUDA graphs" in text


def test_a_blocking_call_is_named_with_its_stack_and_without_the_home_folder(tmp_path: Path) -> None:
    events: list[Event] = [*late_launches(), span(0, 2000, "/home/someone/train.py(7): step", "python_function")]
    events += [call(i * 100 + 30, 70, 100 + i, "cudaStreamSynchronize") for i in range(0, 20, 2)]
    path = kineto(tmp_path / "trace.json", events)
    document = as_json(path)
    assert "cudaStreamSynchronize" in advice_of(document)
    assert "~/train.py(7): step" in advice_of(document)
    assert "someone" not in json.dumps(document)
    assert "someone" not in invoke(path).output


@pytest.mark.parametrize("level", [0, 1])
def test_ascend_advice_is_in_the_owners_words(tmp_path: Path, level: int) -> None:
    advice = advice_of(as_json(write(tmp_path / "trace_view.json", ascend_trace(level))))
    for word in ("TASK_QUEUE_ENABLE", "CPU_AFFINITY_CONF", "graph"):
        assert word in advice
    assert ("collect level 1" in advice) is (level == 0)


def test_steps_are_chosen_or_listed(tmp_path: Path) -> None:
    steps = [span(0, 1000, "ProfilerStep#1"), span(1000, 1000, "ProfilerStep#2")]
    path = kineto(tmp_path / "trace.json", [*steps, *late_launches()])
    assert as_json(path, "--step", 2)["device_activities"] == 10
    assert [row["step"] for row in as_json(path, "--step", "all")["by_step"]] == [1, 2]
    assert "Steps" in invoke(path, "--step", "all").output
    result = invoke(path, "--step", "3")
    assert result.exit_code == 1
    assert "step '3' is not recorded: there are 1, 2;" in result.output
    many = [span(1000 * n, 1000, f"ProfilerStep#{n}") for n in range(1, 41)]
    assert (
        "there are 1 to 40;" in invoke(kineto(tmp_path / "many.json", [*many, *late_launches()]), "--step", 99).output
    )
    gaps = [span(1000 * n, 1000, f"ProfilerStep#{n}") for n in range(0, 60, 2)]
    assert "22 and 18 more;" in invoke(kineto(tmp_path / "gaps.json", [*gaps, *late_launches()]), "--step", 99).output


def test_ranks_are_printed_side_by_side(tmp_path: Path) -> None:
    for number in (0, 1):
        write(tmp_path / f"rank{number}" / "trace_view.json", ascend_trace(collective=3000, shift=number * 400.0))
    document = as_json(tmp_path)
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1]
    assert document["skew"]["collectives"][0]["late_rank"] == "rank 1"
    assert document["skew"]["collectives"][0]["dispatch_skew_us"] == 400
    text = invoke(tmp_path).output
    assert "rank 1 arrives last" in text


def test_totals_of_host_calls_are_shown_where_they_are_exported(tmp_path: Path) -> None:
    write(tmp_path / "rank0" / "trace_view.json", ascend_trace())
    table = "Level,API Name,Time(us),Count,Avg(us)\nacl,aclnnMul,12.5,5,2.5\nnode,launch,30.25,9,3.4\n"
    (tmp_path / "rank0" / "api_statistic.csv").write_text(table)
    assert as_json(tmp_path)["host_apis"][0] == {"level": "node", "name": "launch", "us": 30.25, "calls": 9}


def test_an_error_is_one_line_and_exit_status_1(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("{")
    result = invoke(path)
    assert result.exit_code == 1
    assert result.output.count("\n") == 1
    assert result.output.startswith("ascendsched: [diagnose] ")


def test_a_trace_of_25_mb_fits_in_400_mb(tmp_path: Path) -> None:
    shapes = '"args":{"Input Dims":"' + "[8,512,512]," * 30 + '"}'
    block = dumps(late_launches(count=40))[1:-1].replace('"args":{}', shapes) + ","
    block += '{"ph": "f", "cat": "ac2g", "id": 1, "ts": 5, "pid": 0},' * 40
    text = block * 800
    assert len(text) > 25_000_000
    assert text.count('"ph"') > 100_000
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents":[' + text.rstrip(",") + "]}")
    program = (
        f"from ascendsched.cli import main; main(['diagnose', {str(path)!r}, '--json'], standalone_mode=False)\n"
        # Not ru_maxrss: that remembers the parent's size from before exec.
        "import re, sys; print(re.search('VmHWM:\\s*(.*) kB', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    root = Path(ascendsched.__file__).parents[1]
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(ran.stdout)["device_activities"] == 32_000
    assert int(ran.stderr) < 400 << 10


def test_a_profile_is_diagnosed_where_there_is_no_extension(tmp_path: Path) -> None:
    path = kineto(tmp_path / "trace.json", late_launches())
    program = (
        "import sys; sys.modules['ascendsched._core'] = None\n"
        f"from ascendsched.cli import main; main(['diagnose', {str(path)!r}, '--json'], standalone_mode=False)\n"
        "loaded = [m for m in ('onnx', 'torch', 'rich') if m in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)"
    )
    root = Path(ascendsched.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["verdict"] == "host_bound"
