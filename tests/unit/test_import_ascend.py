"""Ascend profiles in each of their forms become the same timeline."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ascendsched.errors import AscendSchedError
from ascendsched.profile.diagnosis import diagnose
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.importers.tasks import kind_of_task
from ascendsched.profile.timeline import COMMUNICATION, COPY, KERNEL, KINDS, WAIT, Rank

from .profile_files import BASE, CANN, HARDWARE, ascend_trace, cann, named, task, write

STAMP = "20250101120000"


def read(path: Path) -> Rank:
    return read_profiles([path]).ranks[0]


def write_table(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


# --- timelines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1])
def test_tasks_find_their_launch_through_both_schemes_of_flow_ids(tmp_path: Path, level: int) -> None:
    rank = read(write(tmp_path / "trace_view.json", ascend_trace(level, collective=500)))
    work = rank.devices[0].work
    assert len(work) == 21
    assert (work.launch >= 0).all()
    assert rank.system == "ascend"


def test_waiting_tasks_and_parts_of_collectives_are_no_work(tmp_path: Path) -> None:
    rank = read(write(tmp_path / "trace_view.json", ascend_trace(collective=500)))
    figures = diagnose(rank).figures
    assert figures["computing_us"] == 200
    assert figures["communication_us"] == 500
    assert figures["free_us"] == figures["window_us"] - 700


def test_stages_of_the_host_are_named_where_they_are_recorded(tmp_path: Path) -> None:
    diagnosis = diagnose(read(write(tmp_path / "trace_view.json", ascend_trace(level=1))))
    assert diagnosis.verdict == "host_bound"
    assert diagnosis.causes["host_late.tiling"] == 19 * 20_000
    assert diagnosis.causes["host_late.launch"] == 19 * 5_000


def test_level_0_says_what_to_collect(tmp_path: Path) -> None:
    diagnosis = diagnose(read(write(tmp_path / "trace_view.json", ascend_trace(level=0))))
    assert diagnosis.stages_us()["tiling"] == "not recorded: collect level 1"
    assert diagnosis.causes["host_late.tiling"] == 0


def test_a_long_collective_is_communication_bound(tmp_path: Path) -> None:
    assert diagnose(read(write(tmp_path / "t.json", ascend_trace(collective=9_000)))).verdict == "communication_bound"


def test_newer_traces_call_the_collectives_communication(tmp_path: Path) -> None:
    events = ascend_trace(collective=500)
    next(e for e in events if e.get("args", {}).get("name") == "HCCL")["args"]["name"] = "Communication"
    assert diagnose(read(write(tmp_path / "t.json", events))).figures["communication_us"] == 500


@pytest.mark.parametrize(
    ("task_type", "name", "kind"),
    [
        ("AI_CORE", "MatMul", KERNEL),
        ("AI_VECTOR_CORE", "Add", KERNEL),
        ("MIX_AIV", "Foreach", KERNEL),
        ("KERNEL_AICORE", "MatMul", KERNEL),
        ("AI_CPU", "TopK", KERNEL),
        ("DSA_SQE", "DSARandomUniform", KERNEL),
        ("N/A", "trans_TransData_0", KERNEL),
        ("PCIE_DMA_SQE", "MEMCPY_ASYNC", COPY),
        ("SDMA_SQE", "MEMCPY_ASYNC", COPY),
        ("SDMA", "SDMA", WAIT),
        ("EVENT_WAIT_SQE", "EVENT_WAIT", WAIT),
        ("Notify Wait", "Notify_Wait", WAIT),
        ("PLACE_HOLDER_SQE", "PROFILING_ENABLE", WAIT),
        ("Write Value", "Write Value", WAIT),
    ],
)
def test_task_types_have_a_kind(task_type: str, name: str, kind: int) -> None:
    assert KINDS[kind_of_task(task_type, name)] == KINDS[kind]


def test_calls_and_tasks_are_connected_without_arrows(tmp_path: Path) -> None:
    events = [event for event in ascend_trace(level=1) if event["ph"] not in {"s", "f"}]
    diagnosis = diagnose(read(write(tmp_path / "t.json", events)))
    assert diagnosis.causes["host_late.launch"] == 19 * 5_000


def test_tasks_of_a_loaded_model_belong_to_the_call_that_executed_it(tmp_path: Path) -> None:
    events = [named(HARDWARE, "Ascend Hardware"), named(CANN, "CANN"), cann(0, 5, "AscendCL@aclmdlRIExecuteAsync")]
    for i in range(10):
        (entry, _) = task(10 + i * 100, 60, 0)
        entry["args"] = {"Task Type": "AI_CORE", "Model Id": 3, "connection_id": 4294967295}
        events.append(entry)
    diagnosis = diagnose(read(write(tmp_path / "t.json", events)))
    assert diagnosis.verdict == "dependency_bound"
    assert diagnosis.idle_split_pct == {"graph_internal": 100.0}
    assert diagnosis.figures["graph_launches"] == 1


# --- folders ---------------------------------------------------------------------------------------------------------


def test_a_profiler_folder_is_found_with_its_rank(tmp_path: Path) -> None:
    folder = tmp_path / "host_1_2025_ascend_pt"
    write(folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", ascend_trace())
    write(folder / "profiler_info_5.json", {})
    assert read(tmp_path).label == "rank 5"
    assert read(folder / "ASCEND_PROFILER_OUTPUT").label == "rank 5"


def test_ranks_in_folders_are_read_in_order(tmp_path: Path) -> None:
    for number in (10, 9):
        write(tmp_path / f"rank{number}" / "trace_view.json", ascend_trace())
    assert [rank.number for rank in read_profiles([tmp_path]).ranks] == [9, 10]


def test_slices_of_the_newest_msprof_export_are_one_timeline(tmp_path: Path) -> None:
    output = tmp_path / "PROF_000001_X" / "mindstudio_profiler_output"
    events = ascend_trace()
    metadata, rest = [e for e in events if e["ph"] == "M"], [e for e in events if e["ph"] != "M"]
    write(output / f"msprof_slice_0_{STAMP}.json", metadata + rest[:37])
    write(output / f"msprof_slice_1_{STAMP}.json", rest[37:])
    write(output / "msprof_20240101120000.json", metadata)
    work = read(tmp_path / "PROF_000001_X").devices[0].work
    assert len(work) == 20
    assert (work.launch >= 0).all()


def test_an_unexported_msprof_folder_gets_the_command_that_exports_it(tmp_path: Path) -> None:
    folder = tmp_path / "PROF_000001_X"
    (folder / "device_0" / "data").mkdir(parents=True)
    (folder / "host").mkdir()
    with pytest.raises(AscendSchedError, match=r"never exported; run: msprof --export=on --output=.*PROF_000001_X"):
        read(folder)


def test_an_unanalysed_profiler_folder_gets_the_call_that_analyses_it(tmp_path: Path) -> None:
    (tmp_path / "h_1_ascend_pt" / "PROF_1" / "device_0").mkdir(parents=True)
    with pytest.raises(AscendSchedError, match=r"never analysed; run: python -c .*analyse"):
        read(tmp_path)


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("kernel_details.csv", ["Name", "Accelerator Core", "Start Time(us)", "Duration(us)", "Block Dim"]),
        (f"op_summary_{STAMP}.csv", ["Op Name", "Task Type", "Task Start Time(us)", "Task Duration(us)", "Block Num"]),
        (f"task_time_{STAMP}.csv", ["kernel_name", "kernel_type", "task_start(us)", "task_time(us)", "task_id"]),
    ],
)
def test_tables_are_read_whatever_their_columns_are_called(tmp_path: Path, name: str, header: list[str]) -> None:
    rows: list[list[object]] = [["MatMul", "AI_CORE", f"{BASE + i * 10}.{i:03d}\t", "5.0", 1] for i in range(20)]
    rows += [["hcom_allReduce__1", "HCCL", f"{BASE + 500}.000\t", "40.5", 1], ["bad", "AI_CORE", "N/A", "", 1]]
    write_table(tmp_path / "out" / name, header, rows)
    rank = read(tmp_path / "out")
    work = rank.devices[0].work
    assert len(work) == 21
    assert int(work.start[1] - work.start[0]) == 10_001
    assert int((work.kind == COMMUNICATION).sum()) == 1
    assert any("1 events dropped" in note for note in rank.notes)
    assert diagnose(rank).verdict == "insufficient_evidence"


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "kernel_details.csv", ["Step", "Computing"], [["1", "2"]])
    with pytest.raises(AscendSchedError, match="has no columns of name, start and duration"):
        read(path)


# --- databases -------------------------------------------------------------------------------------------------------


def write_database(path: Path, *, with_optional: bool = True) -> Path:
    """A database of twenty late kernels and a collective, as msprof documents its tables."""
    path.parent.mkdir(parents=True, exist_ok=True)
    base = BASE * 1000
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE STRING_IDS (id INTEGER, value TEXT)")
        texts = ["MatMul", "AI_CORE", "launch", "MatMul_Tiling", "hcom_allReduce_", "EVENT_WAIT", "Notify_Wait"]
        database.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", list(enumerate(texts)))
        columns = "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, "
        database.execute(f"CREATE TABLE TASK ({columns} taskType INTEGER, streamId INTEGER)")
        database.execute("CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER, taskType INTEGER)")
        for i in range(20):
            at = base + i * 100_000
            database.execute("INSERT INTO TASK VALUES (?, ?, 0, ?, ?, 1, 2)", (at + 80_000, at + 90_000, i + 1, i + 1))
            database.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (0, ?, 1)", (i + 1,))
        database.execute("INSERT INTO TASK VALUES (?, ?, 0, 77, 77, 5, 3)", (base, base + 10_000_000))
        database.execute("INSERT INTO TASK VALUES (?, ?, 0, 88, 88, 1, 3)", (base, base + 10_000_000))
        database.execute("CREATE TABLE COMMUNICATION_TASK_INFO (name INTEGER, globalTaskId INTEGER)")
        database.execute("INSERT INTO COMMUNICATION_TASK_INFO VALUES (6, 88)")
        if with_optional:
            calls = (
                "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER"
            )
            database.execute(f"CREATE TABLE CANN_API ({calls})")
            database.execute("CREATE TABLE ENUM_API_TYPE (id INTEGER, name TEXT)")
            database.executemany("INSERT INTO ENUM_API_TYPE VALUES (?, ?)", [(10000, "node"), (20000, "acl")])
            for i in range(20):
                at = base + i * 100_000
                rows = [
                    (at + 30_000, at + 50_000, 20000, 5, 4294967295, 3),
                    (at + 70_000, at + 75_000, 10000, 5, i + 1, 2),
                ]
                database.executemany("INSERT INTO CANN_API VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.execute("CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER)")
            database.execute("INSERT INTO COMMUNICATION_OP VALUES (4, ?, ?)", (base + 2_000_000, base + 2_500_000))
        database.commit()
    return path


def test_a_database_gives_the_causes_that_the_timeline_gives(tmp_path: Path) -> None:
    diagnosis = diagnose(read(write_database(tmp_path / "PROF_1" / f"msprof_{STAMP}.db").parent))
    assert diagnosis.figures["computing_us"] == 200
    assert diagnosis.figures["communication_us"] == 500
    assert diagnosis.causes["host_late.tiling"] == 19 * 20_000
    assert diagnosis.causes["host_late.launch"] == 19 * 5_000


def test_a_database_may_lack_tables_of_other_versions(tmp_path: Path) -> None:
    path = write_database(tmp_path / "ascend_pytorch_profiler_3.db", with_optional=False)
    rank = read(path)
    assert rank.label == "rank 3"
    assert len(rank.devices[0].work) == 20


def test_a_damaged_database_is_an_error(tmp_path: Path) -> None:
    path = write_database(tmp_path / "msprof_1.db")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(AscendSchedError, match="damaged database"):
        read(path)


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE people (name TEXT)")
        database.commit()
    with pytest.raises(AscendSchedError, match="without device tasks"):
        read(path)


def test_a_device_without_tasks_is_no_evidence(tmp_path: Path) -> None:
    events = [named(HARDWARE, "Ascend Hardware"), *task(0, 10, 1, "EVENT_WAIT_SQE", name="EVENT_WAIT")]
    assert diagnose(read(write(tmp_path / "t.json", events))).verdict == "insufficient_evidence"
