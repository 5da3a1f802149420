"""What does recording cost per task?

A chain of 300 tiny operators, one task each, run with and without a profile being recorded; starting and reading the
recording is not timed. onnxruntime's profiler, which cannot be switched while a session lives, is a session of its own.

How to read it: the note below the table is the CPU time that recording adds to a task. A profile tells little about
tasks that are not much longer than that.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from command import main
from harness import PEER, Array, Effort, Subject, Table, compare, onnx_reference
from models import sequence_model

import ascendsched as asc
from ascendsched.demo.peers import create_session, has_onnxruntime
from ascendsched.profile import Profile

TASKS = 300
SHAPE = (16, 16)
OFF, ON = "recording off", "recording on"


class Recorder:
    """Keeps the last recording of an executable."""

    def __init__(self, executable: asc.Executable, call: Callable[[], object]) -> None:
        self._executable, self._call = executable, call
        self.profile = Profile()

    @contextmanager
    def record(self) -> Iterator[None]:
        """Records what is run inside the block."""
        with self._executable.profile() as self.profile:
            self._call()  # not timed: clearing the recorder has pushed everything else out of the CPU's caches
            yield


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table of all modes."""
    bias = np.linspace(-0.01, 0.01, SHAPE[1])
    model = sequence_model(SHAPE, SHAPE, [("Add", {"bias": bias}, {})] * TASKS)
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    recorders: dict[str, Recorder] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        subjects = [*_ours(model, x, recorders), *_peers(model, x, Path(folder) / "trace", ends)]
        title = f"chain of {TASKS} operators"
        table = compare(title, "task", subjects, onnx_reference(model, x), effort)
    for off in (s for s in subjects if s.label.endswith(OFF)):
        name = off.label.removesuffix(f", {OFF}")
        added_ns = 1e3 * (table.subject(f"{name}, {ON}").cpu_us - off.cpu_us)
        table.notes.append(f"{name}: recording adds {added_ns:,.0f} ns a task{_spans(recorders.get(name))}")
    yield table


def _ours(model: Any, x: Array, recorders: dict[str, Recorder]) -> Iterator[Subject]:
    for mode in ("host", "sink"):
        executable = asc.compile(model, mode=mode, threads=1, options=asc.Options(fuse=False))
        call = partial(executable, x)
        recorders[mode] = Recorder(executable, call)
        yield Subject(f"{mode}, {OFF}", call, TASKS)
        yield Subject(f"{mode}, {ON}", call, TASKS, around=recorders[mode].record)


def _peers(model: Any, x: Array, trace: Path, ends: ExitStack) -> Iterator[Subject]:
    if not has_onnxruntime():
        return
    session = create_session(model.SerializeToString(), 1)
    yield Subject(f"{PEER}, {OFF}", partial(session.run, None, {"x": x}), TASKS, is_peer=True)
    options = session.get_session_options()
    options.enable_profiling = True
    options.profile_file_prefix = str(trace)
    profiled = type(session)(model.SerializeToString(), options, providers=session.get_providers())
    ends.callback(profiled.end_profiling)
    yield Subject(f"{PEER}, {ON}", partial(profiled.run, None, {"x": x}), TASKS, is_peer=True)


def _spans(recorder: Recorder | None) -> str:
    """How many spans a task has, and whether some did not fit."""
    if recorder is None:
        return ""
    recording = recorder.profile.recording
    runs = len(recording.run_windows()[0])
    spans = (len(recording.host) + len(recording.device)) / max(1, runs * TASKS)
    lost = f", {recording.lost} lost, so that the cost is understated" if recording.lost else ""
    return f" ({spans:.1f} spans each{lost})"


if __name__ == "__main__":
    sys.exit(main(__doc__, {"profile": measure}))
