"""Simulation: the virtual clock, the work of tasks, cost profiles, and the command."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ascendsched as asc
from ascendsched.cli import main
from ascendsched.errors import AscendSchedError
from ascendsched.profile.trace import write_trace
from ascendsched.sim.cluster import agree, grow
from ascendsched.sim.comparison import Subject, compare_modes, run_mode
from ascendsched.sim.cost_profile import load_profile, parse_profile, profile_bytes, profile_names
from ascendsched.sim.engine import MODES, Mode, simulate
from ascendsched.sim.models import BUILDERS, build_model
from ascendsched.sim.plans import plan_tasks
from ascendsched.sim.work import collective_ns, kernel_ns, work_of
from ascendsched.sim.workload import Workload, make_workload
from ascendsched.tasks import Operand, Task

ASCEND = load_profile("ascend-910b")


def workload(*kernels: int, collective: int | None = None) -> Workload:
    marks = np.array([i == collective for i in range(len(kernels))])
    nodes = tuple((f"n{i}", "Relu") for i in range(len(kernels)))
    return Workload(np.array(kernels, np.int64), marks, np.zeros(len(kernels), bool), nodes)


def costs(**given: float):
    """A profile in which nothing takes time but what is given."""
    zero = {name: 0.0 for name in ASCEND.costs if name.endswith("_us")}
    return ASCEND.replaced(**{**zero, **given})


def test_serial_host_adds_up_its_stages_and_the_last_kernel():
    profile = costs(infer_shape_us=1, tiling_hit_us=2, alloc_us=3, launch_us=4)
    found = simulate(workload(5000, 5000, 5000), profile, MODES["host"], steps=1)
    assert found.step_ns.tolist() == [[35_000]]
    assert found.host_ns.tolist() == [[30_000]]
    assert found.device_ns.tolist() == [[15_000]]


def test_a_tiling_that_is_made_takes_its_full_time():
    profile = costs(tiling_us=10, tiling_hit_us=1)
    made = replace(workload(100, 100), needs_tiling=np.array([True, False]))
    assert simulate(made, profile, MODES["host"], steps=1).host_ns[0, 0] == 11_000
    assert simulate(made, profile, MODES["host-uncached"], steps=1).host_ns[0, 0] == 20_000


def test_sink_mode_pays_one_submit_and_no_stage():
    profile = costs(submit_us=7, infer_shape_us=1, launch_us=4, chain_gap_us=1, latency_us=2, sync_us=3)
    found = simulate(workload(1000, 1000), profile, MODES["sink"], steps=1)
    assert found.step_ns[0, 0] == 7000 + 2000 + 1000 + 1000 + 1000 + 3000
    assert found.host_ns[0, 0] == 10_000


def test_a_pipeline_takes_as_long_as_its_slowest_worker():
    profile = costs(infer_shape_us=1, tiling_hit_us=8, alloc_us=1, launch_us=2)
    kernels = workload(*[10] * 100)
    one, four = (simulate(kernels, profile, Mode("p", workers=n), steps=1).step_ns[0, 0] for n in (1, 4))
    assert one == 1000 + 100 * 8000 + 1000 + 2000 + 10
    # Four workers make a tiling every two microseconds: launches of two are the slowest stage then.
    assert four == 1000 + 8000 + 1000 + 100 * 2000 + 10


def test_a_launch_waits_while_the_queue_is_full():
    profile = costs(launch_us=1).replaced(queue_depth=2)
    found = simulate(workload(*[100_000] * 5), profile, MODES["host"], steps=1, records=True)
    assert found.step_ns[0, 0] == 1000 + 5 * 100_000
    assert "queue_full" in {row["name"] for row in events(found.recording)}


def test_a_collective_starts_when_the_last_rank_is_there():
    profile = costs(launch_us=10)
    noisy = replace(profile, jitter=((0.0, 1.0), (0.5, 1.0), (1.0, 50.0)))
    found = simulate(workload(100, 100, collective=1), noisy, MODES["host"], steps=2, ranks=64, seed=3)
    assert found.step_ns[0].min() == found.step_ns[0].max()
    alone = simulate(workload(100, 100), noisy, MODES["host"], steps=1, ranks=64, seed=3)
    assert alone.step_ns.min() < alone.step_ns.max()


def test_more_ranks_never_make_a_step_with_collectives_shorter():
    work = workload(*[20_000] * 30, collective=29)
    steps = [simulate(work, ASCEND, MODES["host"], ranks=n, seed=1).step_ns[-1].max() for n in (1, 16, 256)]
    assert steps == sorted(steps)


def events(recording):
    from ascendsched.profile.trace import trace_events

    return list(trace_events(recording))


def test_equal_inputs_give_byte_equal_traces_on_one_and_on_two_cpus(tmp_path: Path):
    subject = Subject("resnet-50", ASCEND)
    cpus = sorted(os.sched_getaffinity(0))
    texts = []
    try:
        for chosen in ({cpus[0]}, set(cpus[:2])):
            os.sched_setaffinity(0, chosen)
            for mode in (*MODES.values(), Mode("wide", workers=4)):
                again = Subject("resnet-50", ASCEND)
                recording = run_mode(again, mode, ranks=4).recording
                texts.append((mode.name, Path(write_trace(recording, tmp_path / "t.json")).read_bytes()))
    finally:
        os.sched_setaffinity(0, cpus)
    half = len(texts) // 2
    assert texts[:half] == texts[half:]
    assert len(subject.workload()) > 100


def test_a_simulated_trace_is_read_back_and_diagnosed(tmp_path: Path):
    trace = tmp_path / "t.json"
    result = CliRunner().invoke(main, ["simulate", "resnet-50", "--mode", "host-uncached", "--trace", str(trace)])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(main, ["diagnose", str(trace), "--json"])
    assert result.exit_code == 0, result.output
    assert "host_bound" in result.output


def test_work_of_a_product_counts_two_operations_per_term():
    a, b, y = Operand("float32", (2, 3, 4)), Operand("float32", (4, 5), True), Operand("float32", (2, 3, 5))
    work = work_of(Task("m", "MatMul", "", (a, b), (y,)), float_bytes=2)
    assert work.matrix == 2 * 30 * 4
    assert work.bytes == 2 * (24 + 20 + 30)
    x, w, c = Operand("float32", (1, 8, 9, 9)), Operand("float32", (16, 4, 3, 3)), Operand("float32", (1, 16, 7, 7))
    assert work_of(Task("c", "Conv", "", (x, w), (c,))).matrix == 2 * 16 * 49 * 4 * 9


def test_a_gather_reads_only_what_it_writes():
    table, ids, rows = Operand("float32", (32000, 64)), Operand("int64", (1,)), Operand("float32", (1, 64))
    assert work_of(Task("g", "Gather", "", (table, ids), (rows,))).bytes == 2 * 256


def test_kernels_take_the_slowest_unit_and_at_least_the_shortest_kernel():
    operand = Operand("float32", (1 << 20,))
    relu = work_of(Task("r", "Relu", "", (operand,), (operand,)))
    assert kernel_ns(relu, ASCEND) == round(8 * (1 << 20) / (1200 * 0.7))
    tiny = Operand("float32", (1,))
    assert kernel_ns(work_of(Task("r", "Relu", "", (tiny,), (tiny,))), ASCEND) == 1500


def test_an_all_reduce_of_one_rank_takes_no_time_and_of_more_takes_longer():
    times = [collective_ns(1e6, n, ASCEND) for n in (1, 2, 8, 1024)]
    assert times[0] == 0
    assert times == sorted(times)


@pytest.mark.parametrize("name", ["resnet-50", "bert-large"])
def test_operations_of_known_models_are_those_of_the_literature(name: str):
    model = build_model(name, context=512)
    operations = sum(work_of(task).matrix for task in plan_tasks(model)) / 1e9
    # ResNet-50: 4.1 GMAC per picture. BERT-large: 2 x 302 M weights of its layers per token, and attention.
    assert operations == pytest.approx({"resnet-50": 8.2, "bert-large": 335.0}[name], rel=0.02)


def test_llama_7b_reads_its_weights_and_its_cache_once_per_token():
    model = build_model("llama-7b", context=512)
    moved = sum(work_of(task, model.float_bytes).bytes for task in plan_tasks(model)) / 1e9
    assert 13.2 < moved < 15.0


def test_shards_divide_the_products_and_end_in_collectives():
    whole, part = (plan_tasks(build_model("llama-7b", context=64, shards=n)) for n in (1, 8))
    ratio = sum(work_of(t).matrix for t in part) / sum(work_of(t).matrix for t in whole)
    assert 1 / 8 <= ratio < 0.2  # the vocabulary is not divided
    assert make_workload(part, ASCEND, 2, ranks=8).is_collective.sum() == 64


def test_every_profile_names_a_source_for_every_figure():
    for name in profile_names():
        profile = load_profile(name)
        assert all(profile.sources.values())
        assert all(low <= profile.costs[key] <= high for key, (low, high) in profile.ranges.items())
        assert parse_profile(name, profile_bytes(profile)).costs == profile.costs


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda d: d.update(schema="x/1"), "schema"),
        (lambda d: d["host"].pop("launch_us"), "launch_us"),
        (lambda d: d["device"].update(other={"value": 1, "source": "s"}), "other"),
        (lambda d: d["device"]["memory_gbps"].update(value=0), "memory_gbps"),
        (lambda d: d["device"]["memory_efficiency"].update(value=1.5), "share"),
        (lambda d: d["host"]["launch_us"].update(value=-1), "launch_us"),
        (lambda d: d["host"]["launch_us"].update(value="fast"), "no cost profile"),
        (lambda d: d.update(jitter=[[0, 2], [1, 1]]), "jitter"),
        (lambda d: d.update(jitter=[]), "jitter"),
    ],
)
def test_a_wrong_profile_is_refused_with_its_place(change, part: str):
    document = json.loads(profile_bytes(ASCEND))
    change(document)
    with pytest.raises(AscendSchedError, match=part):
        parse_profile("p", json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"1e999"])
def test_a_file_that_is_no_profile_is_refused(data: bytes):
    with pytest.raises(AscendSchedError, match="no cost profile"):
        parse_profile("p", data)


def test_impossible_requests_are_refused():
    with pytest.raises(AscendSchedError, match="no model"):
        build_model("gpt-9")
    with pytest.raises(AscendSchedError, match="no device"):
        load_profile("abacus")
    with pytest.raises(AscendSchedError, match="divided"):
        build_model("llama-7b", shards=3)
    with pytest.raises(AscendSchedError, match="ranks"):
        simulate(workload(1), ASCEND, MODES["host"], ranks=10**9)
    with pytest.raises(AscendSchedError, match="no tasks"):
        simulate(workload(), ASCEND, MODES["host"])
    with pytest.raises(AscendSchedError, match="unknown costs"):
        ASCEND.replaced(coffee_us=1)


def test_what_memory_cannot_hold_is_refused_and_files_are_sent_where_they_run(tmp_path: Path):
    with pytest.raises(asc.OutOfMemoryError, match="smaller batch or context"):
        Subject("llama-7b", ASCEND, 4096, 131072).plan(1)
    file = tmp_path / "mine.onnx"
    file.touch()
    with pytest.raises(AscendSchedError, match=r"profile .*mine\.onnx --device sim:"):
        build_model(str(file))


def test_the_title_tells_the_tokens_that_are_simulated():
    titles = {
        name: CliRunner().invoke(main, ["simulate", name, "--mode", "sink"]).output.splitlines()[0]
        for name in ("resnet-50", "bert-large")
    }
    assert "context" not in titles["resnet-50"]
    assert "context 512," in titles["bert-large"]


def test_modes_stand_side_by_side_and_sink_mode_needs_the_least_host():
    rows = {row.mode: row for row in compare_modes(Subject("resnet-50", ASCEND))}
    assert set(rows) == set(MODES)
    assert rows["sink"].step_ms < rows["host"].step_ms < rows["host-uncached"].step_ms
    assert rows["host-uncached"].verdict == "host_bound"


def test_ranks_that_agree_miss_as_seldom_as_one_and_ahead_of_time_they_do_not_wait():
    subject = Subject("resnet-50", ASCEND)
    one, many = agree(subject, grow(subject, [1, 64]))
    assert one.alone_ms == pytest.approx(one.aligned_ms)  # nobody to agree with
    assert many.ahead_ms < many.aligned_ms < many.alone_ms
    assert many.alone_ms / many.aligned_ms > one.alone_ms / one.aligned_ms


def test_agreeing_costs_what_it_waits_for_where_no_signature_is_new():
    subject = Subject("resnet-50", ASCEND)
    (row,) = agree(subject, grow(subject, [64]), miss_share=0.0)
    assert row.aligned_ms > row.alone_ms == row.ahead_ms


def test_the_command_prints_json_for_every_model_it_knows():
    for name in ("resnet-50", "bert-large"):
        assert name in BUILDERS
        result = CliRunner().invoke(main, ["simulate", name, "--device", "cuda-h100", "--ranks", "16", "--json"])
        assert result.exit_code == 0, result.output
        document = json.loads(result.output)
        assert document["schema"] == "ascendsched.simulate/1"
        assert {row["mode"] for row in document["modes"]} == set(MODES)
        assert {row["ranks"] for row in document["growth"]} == {1, 8, 16}


def test_the_page_holds_the_table_and_the_sources_and_loads_nothing(tmp_path: Path):
    page = tmp_path / "page.html"
    assert CliRunner().invoke(main, ["simulate", "resnet-50", "--html", str(page)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "sink" in text
    assert "launch_us" in text
    assert "http" not in text.replace("https://", "http://").split("<body>")[0]


def test_tasks_of_an_executable_have_the_shapes_of_its_last_run():
    g = asc.Graph("g")
    x = g.input("x", "float32", ("n", 4))
    g.output(g.op("MatMul", x, g.constant(np.ones((4, 3), np.float32))), "y")
    executable = asc.compile(g, device="null", mode="host")
    for n in (2, 7):
        executable(np.zeros((n, 4), np.float32))
        (task,) = [t for t in executable.tasks() if t.op == "MatMul"]
        assert task.inputs[0] == Operand("float32", (n, 4))
        assert task.inputs[1] == Operand("float32", (4, 3), True)
        assert task.outputs == (Operand("float32", (n, 3)),)
