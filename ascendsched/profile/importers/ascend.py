"""Timelines of Ascend devices: `trace_view.json` of the Ascend PyTorch Profiler and `msprof_*.json` of msprof."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ascendsched.profile.importers.builder import RankBuilder
from ascendsched.profile.importers.events import NO_ARGS, Event, interval_of, parse_ns
from ascendsched.profile.importers.stages import is_graph_launch, stage_of_call
from ascendsched.profile.importers.tasks import kind_of_task
from ascendsched.profile.timeline import COMMUNICATION, KERNEL, STAGE_NUMBER

TRACE_FILE = "trace_view.json"
HARDWARE = "Ascend Hardware"
COLLECTIVES = ("HCCL", "Communication")
CANN = "CANN"
NO_MODEL = 4294967295  # of tasks that were launched one by one
DEVICE_LABEL = re.compile(r"NPU\s*(\d{1,6})")

PYTHON_CATEGORIES = {
    "cpu_op": STAGE_NUMBER["framework"],
    "user_annotation": STAGE_NUMBER["annotation"],
    "python_function": STAGE_NUMBER["python"],
    "enqueue": STAGE_NUMBER["framework"],
    "dequeue": STAGE_NUMBER["framework"],
}
# What CANN's own spans tell once they are collected.
CANN_STAGES = frozenset({"infer_shape", "tiling", "alloc", "launch", "compile", "sync"})


@dataclass
class _Processes:
    """What the metadata says of processes and threads."""

    names: dict[Any, str] = field(default_factory=dict)
    labels: dict[Any, str] = field(default_factory=dict)
    groups: set[tuple[Any, Any]] = field(default_factory=set)  # rows that hold whole collectives, not their parts

    def device_of(self, pid: Any) -> int:
        found = DEVICE_LABEL.search(self.labels.get(pid, ""))
        return int(found.group(1)) if found else 0


@dataclass
class _Flows:
    """Arrows from host to device: where each begins, and which arrow ends at a device row and time."""

    begins: dict[str, tuple[int, Any]] = field(default_factory=dict)  # id -> time, thread
    ends: dict[tuple[Any, Any, int], str] = field(default_factory=dict)


def is_ascend(events: list[Event]) -> bool:
    """Whether the metadata names a process of Ascend's exports."""
    known = {HARDWARE, CANN, "HCCL", "Overlap Analysis"}
    return any(e.ph == "M" and e.name == "process_name" and _text(e, "name") in known for e in events)


def add_events(builder: RankBuilder, events: list[Event]) -> None:
    """Adds a profile's events to the builder."""
    processes = _read_metadata(builder, events)
    flows, async_flows = _read_flows(events, "HostToDevice"), _read_flows(events, "async_npu")
    if not flows.begins:
        _connect_calls(flows, events, processes)
    cann_calls: dict[tuple[Any, int], tuple[int, str]] = {}
    used: set[str] = set()
    for event in events:
        if event.ph != "X":
            continue
        process = processes.names.get(event.pid, "")
        is_device = process == HARDWARE or (event.pid, event.tid) in processes.groups
        is_host = process == CANN or event.cat in PYTHON_CATEGORIES
        if not is_device and not is_host:
            continue
        interval = interval_of(event)
        if interval is None or event.name is None:
            builder.dropped += 1
            continue
        if is_device:
            _add_task(builder, event, interval, process, processes, (flows, async_flows), used)
        else:
            _add_span(builder, event, interval, process, cann_calls)
    for flow in flows, async_flows:
        prefix = "" if flow is flows else "async:"
        _add_launches(builder, flow, prefix, cann_calls, used)


def _text(event: Event, key: str) -> str:
    value = getattr(event.args, key, None)
    return value if isinstance(value, str) else ""


def _read_metadata(builder: RankBuilder, events: list[Event]) -> _Processes:
    found = _Processes()
    rows: list[tuple[Any, Any, str]] = []
    for event in events:
        if event.ph != "M":
            continue
        if event.name == "process_name":
            found.names[event.pid] = _text(event, "name")
        elif event.name == "process_labels":
            found.labels[event.pid] = _text(event, "labels")
        elif event.name == "thread_name":
            rows.append((event.pid, event.tid, _text(event, "name")))
    for pid, tid, name in rows:
        process = found.names.get(pid, "")
        if process in COLLECTIVES and name.rstrip().endswith("Communication"):
            found.groups.add((pid, tid))
        elif process in {"Python", CANN}:
            builder.thread_names[tid] = name
    return found


def _read_flows(events: list[Event], category: str) -> _Flows:
    flows = _Flows()
    for event in events:
        if event.cat != category or event.ph not in {"s", "f"} or event.id is None:
            continue
        time = parse_ns(event.ts)
        if time is None:
            continue
        if event.ph == "s":
            flows.begins[str(event.id)] = (time, event.tid)
        else:
            flows.ends[(event.pid, event.tid, time)] = str(event.id)
    return flows


def _connect_calls(flows: _Flows, events: list[Event], processes: _Processes) -> None:
    """Exports without arrows still number the connection of a call and of the task that it launched."""
    for event in events:
        number = (event.args or NO_ARGS).connection
        if event.ph == "X" and number is not None and processes.names.get(event.pid) == CANN:
            time = parse_ns(event.ts)
            if time is not None:
                flows.begins.setdefault(str(number), (time, event.tid))


def _add_task(
    builder: RankBuilder,
    event: Event,
    interval: tuple[int, int],
    process: str,
    processes: _Processes,
    flows: tuple[_Flows, _Flows],
    used: set[str],
) -> None:
    args, name = event.args or NO_ARGS, event.name or ""
    if process == HARDWARE:
        kind = kind_of_task(args.task_type if isinstance(args.task_type, str) else "", name)
    else:
        kind = COMMUNICATION
    place = (event.pid, event.tid, interval[0])
    key = flows[0].ends.get(place)
    if key is None and str(args.connection) in flows[0].begins:
        key = str(args.connection)
    if key is None or key not in flows[0].begins:
        late = flows[1].ends.get(place)
        key = f"async:{late}" if late in flows[1].begins else None
    if key is not None:
        used.add(key)
    stream = event.tid if isinstance(event.tid, int) and abs(event.tid) < 1 << 62 else 0
    if kind == COMMUNICATION:
        stream = -1 - stream  # a row of collectives is no stream: their tasks run on several
    device = processes.device_of(event.pid)
    if key is None and kind == KERNEL and isinstance(args.model, int) and args.model != NO_MODEL:
        builder.model_tasks.append(len(builder.entries))
    builder.entries.append((*interval, kind, device, stream, builder.name(name), builder.key(key)))


def _add_span(
    builder: RankBuilder,
    event: Event,
    interval: tuple[int, int],
    process: str,
    cann_calls: dict[tuple[Any, int], tuple[int, str]],
) -> None:
    name = event.name or ""
    stack = -1
    if process == CANN:
        call = name.rpartition("@")[2]
        stage = STAGE_NUMBER["launch"] if name.startswith("Node@") else stage_of_call(call)
        item = _text(event, "item")
        label = f"{name} {item}" if item and item != "0" else name
        cann_calls[(event.tid, interval[0])] = (interval[1], name)
        builder.recorded |= CANN_STAGES
    else:
        stage, label = PYTHON_CATEGORIES[event.cat or ""], name
        trace = _text(event, "call_stack")
        if trace:
            stack = builder.name(trace)
            builder.extra["has_stacks"] = True
        builder.extra["has_stacks"] = builder.extra.get("has_stacks", False) or event.cat == "python_function"
        builder.step(name, *interval)
    builder.spans.append((*interval, builder.thread(event.tid), stage, builder.name(label), stack))


def _add_launches(
    builder: RankBuilder,
    flows: _Flows,
    prefix: str,
    cann_calls: dict[tuple[Any, int], tuple[int, str]],
    used: set[str],
) -> None:
    for flow, (time, tid) in flows.begins.items():
        key = prefix + flow
        if key not in used:
            continue
        # Without CANN's spans (level 0) the arrow alone says when the launch began; its end is not recorded.
        end, name = cann_calls.get((tid, time), (time, "launch"))
        thread = builder.thread(tid)
        builder.launches.append((time, end, thread, builder.name(name), builder.key(key), is_graph_launch(name)))
        builder.recorded.add("launch")
