"""Chrome trace JSON of a recording, for Perfetto (ui.perfetto.dev) or chrome://tracing.

Format: "Trace Event Format" of the Chromium project; times are microseconds with three decimals, so nanoseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ascendsched.profile.spans import LAUNCHING, STAGES, Recording, Spans
from ascendsched.whole_files import write_whole

SCHEMA = "ascendsched.trace/1"

PROCESS = 1
HOST, WAITS, DEVICE = 1, 2, 3
WORKERS = 10  # and on: threads of host mode's pipeline
STREAMS = 300  # and on: streams of the device beside the first
WAIT = STAGES.index("wait")


def trace_events(recording: Recording) -> Iterator[dict[str, Any]]:
    """Metadata, one complete event per span, and a flow arrow from each launch to the first kernel that it started."""
    yield from _metadata(recording)
    host = recording.host
    # Waits may be another thread's: on a track of their own they cannot cross the host's nesting.
    for worker in _workers(recording):
        yield from _complete(recording, host.take((host.stage != WAIT) & (host.worker == worker)), track_of(worker))
    yield from _complete(recording, host.take(host.stage == WAIT), WAITS)
    for stream in _streams(recording):
        yield from _complete(recording, recording.device.take(recording.device.worker == stream), stream_track(stream))
    yield from _flows(recording)


def write_trace(recording: Recording, path: str | os.PathLike[str], verdict: Mapping[str, Any] | None = None) -> str:
    """Writes the trace and returns its path. The file appears whole or not at all.

    Parameters
    ----------
    recording : Recording
        The spans.
    path : path
        The file to write or to replace.
    verdict : mapping, optional
        Plain data kept beside the events.

    Raises
    ------
    WriteError
        Where the file cannot be written.
    """
    document = {
        "schema": SCHEMA,
        "displayTimeUnit": "ns",
        "otherData": {
            "device": recording.device_name,
            "inline": recording.inline,
            "lost": recording.lost,
            "notes": list(recording.notes),
            "verdict": verdict,
        },
        "traceEvents": list(trace_events(recording)),
    }
    # dumps, not dump: only dumps uses the encoder that is written in C.
    return write_whole(path, json.dumps(document, separators=(",", ":")), "profile")


def _workers(recording: Recording) -> list[int]:
    return [0, *sorted(set(recording.host.worker.tolist()) - {0})]


def _streams(recording: Recording) -> list[int]:
    return [0, *sorted(set(recording.device.worker.tolist()) - {0})]


def stream_track(stream: int) -> int:
    """Number of the track that shows what a stream of the device executes."""
    return STREAMS + stream if stream else DEVICE


def track_of(worker: int) -> int:
    """Number of the track that shows a worker's spans; waits have a track of their own."""
    return WORKERS + worker if worker else HOST


def stream_of(track: object) -> int:
    """Number of the stream whose kernels lie on a track; 0 for the first one's, and for tracks of the host."""
    return track - STREAMS if isinstance(track, int) and STREAMS < track < STREAMS + 256 else 0


def worker_of(track: object) -> int:
    """Number of the worker whose spans lie on a track; 0 for the tracks that every trace has."""
    return track - WORKERS if isinstance(track, int) and WORKERS < track < WORKERS + 256 else 0


def worker_name(worker: int) -> str:
    """What a worker of host mode's pipeline does."""
    return {1: "memory worker", 2: "launch worker"}.get(worker, f"normal worker {worker - 2}")


def _metadata(recording: Recording) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": "ascendsched"}}
    names = {HOST: "host", WAITS: "waits", DEVICE: f"device: {recording.device_name}"}
    names |= {track_of(worker): worker_name(worker) for worker in _workers(recording)[1:]}
    names |= {stream_track(s): f"device: {recording.device_name}, stream {s}" for s in _streams(recording)[1:]}
    for track, name in names.items():
        yield {"ph": "M", "name": "thread_name", "pid": PROCESS, "tid": track, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": PROCESS, "tid": track, "args": {"sort_index": track}}


def _complete(recording: Recording, spans: Spans, track: int) -> Iterator[dict[str, Any]]:
    columns = (spans.start, spans.end, spans.run, spans.node, spans.sequence, spans.stage)
    for start, end, run, node, sequence, number in zip(*(c.tolist() for c in columns), strict=True):
        stage = STAGES[number]
        args: dict[str, Any] = {"run": run, "sequence": sequence}
        if node >= 0:
            args |= {"node": recording.node_name(node) or node, "op": recording.node_op(node)}
        yield {
            "ph": "X",
            "name": (recording.node_op(node) or stage) if track == DEVICE or track >= STREAMS else stage,
            "cat": stage,
            "pid": PROCESS,
            "tid": track,
            "ts": start / 1e3,
            "dur": (end - start) / 1e3,
            "args": args,
        }


def _flows(recording: Recording) -> Iterator[dict[str, Any]]:
    launches = recording.host.take(np.isin(recording.host.stage, LAUNCHING))
    keys, first = np.unique(recording.device.entry_keys(), return_index=True)
    starts = dict(zip(keys.tolist(), recording.device.start[first].tolist(), strict=True))
    columns = (launches.entry_keys(), launches.start, launches.worker)
    for number, (key, start, worker) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if key not in starts:
            continue
        arrow = {"name": "launch", "cat": "flow", "id": number, "pid": PROCESS}
        yield {"ph": "s", "tid": track_of(worker), "ts": start / 1e3, **arrow}
        yield {"ph": "f", "bp": "e", "tid": DEVICE, "ts": starts[key] / 1e3, **arrow}
