"""Our own traces, as `Profile.save_trace` writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.profile.importers.builder import RankBuilder
from ascendsched.profile.importers.events import NO_ARGS, Args, Document, interval_of
from ascendsched.profile.spans import KERNEL as KERNEL_STAGE
from ascendsched.profile.spans import SPAN_DTYPE, STAGES, Recording
from ascendsched.profile.timeline import COMMUNICATION, KERNEL, STAGE_NUMBER, Rank
from ascendsched.profile.trace import HOST, SCHEMA, WAITS, stream_of, track_of, worker_name, worker_of
from ascendsched.profile.verdict import COMMUNICATION_OPS

# A recording's stage -> the timeline's. A caller that waits for its result is a synchronising call.
TIMELINE_STAGE = {"submit": "launch", "load": "compile", "wait": "sync"}
MAX_FIELD = 1 << 31
FUSED = "Fused"
MAX_NAME = 60  # of a node that stands for many operators


def is_own(document: Document) -> bool:
    """Whether the file says that it is one of our traces."""
    return isinstance(document.schema, str) and document.schema.startswith(SCHEMA.partition("/")[0] + "/")


def read_own(document: Document, source: str) -> Rank:
    """Reads a trace back: the timeline, and in `extra["recording"]` the recording it was written from.

    Raises
    ------
    AscendSchedError
        Where another version wrote it.
    """
    if document.schema != SCHEMA:
        raise AscendSchedError(f"[diagnose] {source}: schema {document.schema!r}, this version reads {SCHEMA!r}")
    nodes: dict[tuple[str, str], int] = {}
    host: list[Any] = []
    device: list[Any] = []
    dropped = document.malformed
    for event in document.events:
        if event.ph != "X":
            continue
        interval, args = interval_of(event), event.args or NO_ARGS
        run, sequence = _field(args.run), _field(args.sequence)
        if interval is None or event.cat not in STAGES or run is None or sequence is None or interval[0] < 0:
            dropped += 1
            continue
        stage = STAGES.index(event.cat)
        worker = stream_of(event.tid) if stage == KERNEL_STAGE else worker_of(event.tid)
        row = (*interval, run, _node(args, nodes), sequence, stage, worker, [0, 0])
        (device if stage == KERNEL_STAGE else host).append(row)
    return rank_of(_recording(document.other, host, device, list(nodes)), source, dropped)


def rank_of(recording: Recording, source: str, dropped: int = 0) -> Rank:
    """The timeline of a recording: its runs are the steps, and the recording itself is in `extra["recording"]`."""
    builder = RankBuilder(source, "ascendsched")
    builder.dropped = dropped
    builder.recorded |= {"infer_shape", "tiling", "alloc", "launch", "sync", "compile", "queue_full", "framework"}
    device, host = recording.device, recording.host
    entries = (device.start, device.end, device.run, device.sequence, device.node, device.worker)
    for start, end, run, sequence, node, stream in zip(*(c.tolist() for c in entries), strict=True):
        op = recording.node_op(node) or "kernel"
        kind = COMMUNICATION if op.rpartition("::")[2] in COMMUNICATION_OPS else KERNEL
        name = builder.name(_kernel_name(recording, node, op))
        builder.entries.append((start, end, kind, 0, stream, name, builder.key((run, sequence))))
    spans = (host.start, host.end, host.run, host.sequence, host.stage, host.worker)
    for start, end, run, sequence, number, worker in zip(*(c.tolist() for c in spans), strict=True):
        stage = STAGES[number]
        track = WAITS if stage == "wait" else track_of(worker)
        builder.thread_names[track] = {HOST: "host", WAITS: "waits"}.get(track) or worker_name(worker)
        thread, name = builder.thread(track), builder.name(stage)
        if stage in {"launch", "submit"}:
            key = builder.key((run, sequence))
            builder.launches.append((start, end, thread, name, key, stage == "submit"))
        builder.spans.append((start, end, thread, STAGE_NUMBER[TIMELINE_STAGE.get(stage, stage)], name, -1))
    for run, start, end in zip(*(c.tolist() for c in recording.run_windows()), strict=True):
        builder.steps[run] = (start, end)
    builder.extra["recording"] = recording
    return builder.build()


def _kernel_name(recording: Recording, node: int, op: str) -> str:
    """What work is called: its operator, or where that says nothing, the operators that run as one task."""
    name = recording.node_name(node) if op == FUSED else ""
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME // 2 - 1]}…{name[-MAX_NAME // 2 :]}"
    return name or op


def _field(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < MAX_FIELD else None


def _node(args: Args, numbers: dict[tuple[str, str], int]) -> int:
    """Number of a span's node, by its name and operator; -1 for a span of a whole run."""
    if args.node is None:
        return -1
    name = (str(args.node), args.op if isinstance(args.op, str) else "")
    return numbers.setdefault(name, len(numbers))


def _recording(other: Any, host: list[Any], device: list[Any], nodes: list[tuple[str, str]]) -> Recording:
    facts: dict[str, Any] = other if isinstance(other, dict) else {}
    lost = facts.get("lost")
    # A log is in order of ends, a trace in order of starts; clocks that jumped are in the trace's notes.
    for rows in host, device:
        rows.sort(key=lambda row: row[1])
    log = {
        "host": np.array(host, dtype=SPAN_DTYPE),
        "device": np.array(device, dtype=SPAN_DTYPE),
        "lost": lost if isinstance(lost, int) and lost > 0 else 0,
        "inline": facts.get("inline") is True,
        "device_name": str(facts.get("device", "device")),
        "nodes": nodes,
    }
    recording = Recording.from_log(log)
    given = facts.get("notes")
    notes = [str(note) for note in given] if isinstance(given, list) else []
    return replace(recording, notes=tuple(dict.fromkeys([*notes, *recording.notes])))
