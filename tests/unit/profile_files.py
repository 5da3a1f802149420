"""Small profiles in the form of their tools, written to files, for the tests of importers. Times are microseconds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BASE = 1_700_000_000_000_000  # a clock in microseconds since 1970: too large for a float to hold nanoseconds

Event = dict[str, Any]


def stamp(us: float) -> Any:
    """A time as the digits that a profiler writes; json.dumps would round it."""
    return Digits(f"{BASE + int(us)}.{round(us % 1 * 1000):03d}")


class Digits(float):
    """A number that prints as its digits."""

    def __new__(cls, text: str) -> Digits:
        made = super().__new__(cls, float(text))
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text


def dumps(document: Any) -> str:
    """JSON with every `Digits` digit by digit."""
    if isinstance(document, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{dumps(value)}" for key, value in document.items()) + "}"
    if isinstance(document, (list, tuple)):
        return "[" + ",".join(map(dumps, document)) + "]"
    return repr(document) if isinstance(document, Digits) else json.dumps(document)


def write(path: Path, document: Any) -> Path:
    """Writes JSON, gzipped where the name says so."""
    data = dumps(document).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# --- Kineto ----------------------------------------------------------------------------------------------------------


def kernel(start: float, length: float, correlation: int | None, **extra: Any) -> Event:
    """A device entry; `cat`, `name`, `device` and `stream` may be given."""
    args: dict[str, Any] = {"device": extra.get("device", 0), "stream": extra.get("stream", 7)}
    if correlation is not None:
        args["correlation"] = correlation
    return {
        "ph": "X",
        "cat": extra.get("cat", "kernel"),
        "name": extra.get("name", "gemm"),
        "pid": 0,
        "tid": extra.get("stream", 7),
        "ts": stamp(start),
        "dur": length,
        "args": args,
    }


def call(start: float, length: float, correlation: int, name: str = "cudaLaunchKernel", tid: int = 1) -> Event:
    """A runtime call of a host thread."""
    return {**span(start, length, name, "cuda_runtime", tid), "args": {"correlation": correlation}}


def span(start: float, length: float, name: str, cat: str = "cpu_op", tid: int = 1) -> Event:
    """A span of a host thread."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": stamp(start), "dur": length, "args": {}}


def kineto(path: Path, events: Sequence[Event], **fields: Any) -> Path:
    """A trace file."""
    return write(path, {"schemaVersion": 1, **fields, "traceEvents": list(events)})


def late_launches(count: int = 20, period: float = 100, length: float = 10) -> list[Event]:
    """A host-bound program: each kernel is launched long after the one before it has ended."""
    events = [span(0, count * period, "step", "user_annotation")]
    for i in range(count):
        events += [span(i * period + 1, 80, "aten::mm"), call(i * period + 70, 5, i + 1)]
        events.append(kernel(i * period + 80, length, i + 1))
    return events


# --- Ascend ----------------------------------------------------------------------------------------------------------

HARDWARE, COLLECTIVES, CANN, PYTHON = 10, 11, 12, 13


def ascend_time(us: float) -> str:
    """Ascend writes times as strings, with a stray tab."""
    return f"{stamp(us)!r}\t"


def named(pid: int, process: str) -> Event:
    """Metadata: the name of a process."""
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": process}}


def row(pid: int, tid: int, name: str) -> Event:
    """Metadata: the name of a row."""
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def task(start: float, length: float, connection: int, task_type: str = "AI_CORE", **extra: Any) -> list[Event]:
    """A device task with the arrow that ends at it."""
    pid, tid = extra.get("pid", HARDWARE), extra.get("stream", 2)
    args = {"Task Type": task_type, "connection_id": connection}
    name = extra.get("name", "MatMul")
    times = {"pid": pid, "tid": tid, "ts": ascend_time(start)}
    arrow = {"ph": "f", "cat": "HostToDevice", "id": str(extra.get("flow", connection)), "name": "HostToDevice"}
    return [{"ph": "X", "name": name, "dur": length, "args": args, **times}, {**arrow, **times, "bp": "e"}]


def ascend_call(start: float, length: float, connection: int, name: str = "Node@launch", **extra: Any) -> list[Event]:
    """A CANN call with the arrow that begins at it; `level0` leaves the call out, as level 0 does."""
    times = {"pid": CANN, "tid": extra.get("tid", 1), "ts": ascend_time(start)}
    arrow = {"ph": "s", "cat": "HostToDevice", "id": str(extra.get("flow", connection)), "name": "HostToDevice"}
    args = {"connection_id": connection, "level": "node"}
    spans = [] if extra.get("level0") else [{"ph": "X", "name": name, "dur": length, "args": args, **times}]
    return [*spans, {**arrow, **times}]


def ascend_trace(level: int = 1, collective: float = 0.0, shift: float = 0.0) -> list[Event]:
    """Twenty late kernels, a wait that is no work, and a collective of the given length at the end."""
    events = [
        named(HARDWARE, "Ascend Hardware"),
        named(COLLECTIVES, "HCCL"),
        row(COLLECTIVES, 0, "Group 0 Communication"),
    ]
    events += [named(PYTHON, "Python"), row(COLLECTIVES, 1, "Plane 0")]
    if level:
        events.append(named(CANN, "CANN"))
    for i in range(20):
        at = i * 100 + shift
        events += [{**span(at, 90, "aten::mm"), "pid": PYTHON, "ts": ascend_time(at)}]
        events += ascend_call(at + 70, 5, i + 1, level0=not level) + task(at + 80, 10, i + 1)
        if level:
            events.append(cann(at + 30, 20, "AscendCL@MatMul_Tiling"))
    events += task(20 * 100 - 5, 400, 900, "EVENT_WAIT_SQE", name="EVENT_WAIT", stream=3)
    if collective:
        begin = 2000 + shift
        flow = 30 << 32 | 4294967295  # the second scheme of flow ids
        events += ascend_call(begin - 10, 2, 30, "Hccl@Launch", flow=flow, level0=not level)
        events += task(begin, collective, 30, pid=COLLECTIVES, stream=0, name="hcom_allReduce__1_0_1", flow=flow)
        plane = {"pid": COLLECTIVES, "tid": 1, "ts": ascend_time(begin), "dur": 9_000}
        events.append({"ph": "X", "name": "Notify_Wait", "args": {}, **plane})
    return events


def cann(start: float, length: float, name: str, tid: int = 1) -> Event:
    """A CANN call without an arrow."""
    return {"ph": "X", "name": name, "pid": CANN, "tid": tid, "ts": ascend_time(start), "dur": length, "args": {}}
