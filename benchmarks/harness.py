"""What the benchmarks share: checking, interleaved timing, tables, and onnxruntime's fastest call.

A benchmark is a file ``bench_<question>.py`` with a function ``measure(effort)`` that yields a `Table` per case. It
runs alone (``python benchmarks/bench_call.py``) and from ``run.py``, both through `command.main`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as RichTable

import ascendsched as asc

Array = NDArray[Any]
PEER = "onnxruntime"
#: A result that differs more from its reference, relative to the reference's largest value, is wrong: it has no speed.
TOLERANCE = 1e-3
CALIBRATIONS = 3


class WrongResultError(RuntimeError):
    """A subject computed something else than its reference."""


@dataclass(frozen=True)
class Effort:
    """How much is measured: samples per subject, and how long each is at least."""

    samples: int
    sample_ns: int

    @property
    def is_quick(self) -> bool:
        """Whether benchmarks should take smaller cases."""
        return self == QUICK


# Many short samples rather than few long ones: on a busy machine, some then pass undisturbed.
FULL = Effort(samples=30, sample_ns=2_000_000)
QUICK = Effort(samples=7, sample_ns=500_000)


@dataclass
class Subject:
    """One way to do the work.

    Attributes
    ----------
    label : str
        How it is called in the table.
    call : callable
        The timed work.
    units : int
        How many units a call does; times are per unit.
    result : callable, optional
        Does the work once and returns the array that is checked; default: `call`, and its first result.
    around : callable
        Returns a context that is entered and left around every sample, not timed.
    is_peer : bool
        Whether it is onnxruntime, to which the others are compared.
    """

    label: str
    call: Callable[[], object]
    units: int = 1
    result: Callable[[], object] | None = None
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    is_peer: bool = False
    times_us: list[float] = field(default_factory=list)
    cpu_times_us: list[float] = field(default_factory=list)

    @property
    def median_us(self) -> float:
        """Median microseconds per unit."""
        return median(self.times_us)

    @property
    def cpu_us(self) -> float:
        """Median CPU time of all threads per unit: what others run on a busy machine is not in it."""
        return median(self.cpu_times_us)

    def check(self, reference: Array) -> None:
        """Does the work once and compares.

        Raises
        ------
        WrongResultError
            Where it differs from the reference, in shape or by more than the tolerance.
        """
        result = _first((self.result or self.call)())
        if result.shape != reference.shape:
            raise WrongResultError(f"[{self.label}] shape {result.shape}, the reference has {reference.shape}")
        error = float(np.abs(result.astype(np.float64) - reference).max())
        limit = TOLERANCE * max(1.0, float(np.abs(reference).max()))
        # Written so that a NaN fails too.
        if not error <= limit:
            raise WrongResultError(f"[{self.label}] error {error:.2e} against the reference is above {limit:.2e}")

    def time_calls(self, calls: int) -> tuple[int, int]:
        """Nanoseconds that so many calls take together, and their CPU time."""
        call = self.call
        with self.around():
            cpu_begin = time.process_time_ns()
            begin = time.perf_counter_ns()
            for _ in repeat(None, calls):
                call()
            end = time.perf_counter_ns()
            return end - begin, time.process_time_ns() - cpu_begin

    def calibrate(self, sample_ns: int) -> int:
        """How many calls take `sample_ns`; the best of some tries, since others may run in between."""
        calls = 1
        while (spent := min(self.time_calls(calls)[0] for _ in range(CALIBRATIONS))) < sample_ns / 4:
            calls *= 2
        return max(1, round(calls * sample_ns / spent))

    def take_sample(self, calls: int) -> None:
        """Times so many calls and keeps the times per unit."""
        wall_ns, cpu_ns = self.time_calls(calls)
        self.times_us.append(wall_ns / 1e3 / (calls * self.units))
        self.cpu_times_us.append(cpu_ns / 1e3 / (calls * self.units))


@dataclass
class Table:
    """What one comparison measured.

    Attributes
    ----------
    title, unit : str
        The case, and what one unit is.
    rate : str
        How units per second are called in a further column; "": no such column.
    notes : list of str
        Shown below the table.
    """

    title: str
    unit: str
    subjects: list[Subject]
    rate: str = ""
    notes: list[str] = field(default_factory=list)

    def ratios(self, subject: Subject) -> tuple[float, float] | None:
        """Its median time and CPU time, each divided by the best of onnxruntime's rows; None without onnxruntime."""
        peers = [peer for peer in self.subjects if peer.is_peer]
        if not peers:
            return None
        return subject.median_us / min(p.median_us for p in peers), subject.cpu_us / min(p.cpu_us for p in peers)

    def subject(self, label: str) -> Subject:
        """The subject of that label."""
        return next(s for s in self.subjects if s.label == label)

    def show(self, console: Console) -> None:
        """Prints it."""
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(self.title, min_width=34)
        rate = [self.rate] if self.rate else []
        for heading in (f"us/{self.unit}: min", "median", "max", "CPU", *rate, f"/ {PEER}", "CPU"):
            table.add_column(heading, justify="right", no_wrap=True)
        for subject in self.subjects:
            times = (min(subject.times_us), subject.median_us, max(subject.times_us), subject.cpu_us)
            per_second = [f"{1e6 / subject.median_us:,.0f}"] if self.rate else []
            ratios = self.ratios(subject)
            shown = [f"{ratio:.2f}" for ratio in ratios] if ratios else ["-", "-"]
            table.add_row(subject.label, *(_digits(t) for t in times), *per_second, *shown)
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}")
        console.print()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        rows = [
            {
                "label": s.label,
                "us": {"min": min(s.times_us), "median": s.median_us, "max": max(s.times_us), "cpu": s.cpu_us},
                "samples": len(s.times_us),
                "ratio_to_onnxruntime": dict(zip(("median", "cpu"), ratios, strict=True)) if ratios else None,
            }
            for s, ratios in ((s, self.ratios(s)) for s in self.subjects)
        ]
        return {"title": self.title, "unit": self.unit, "rows": rows, "notes": self.notes}


@dataclass
class Figures(Table):
    """A table of whatever figures a benchmark has, where the others have times.

    Attributes
    ----------
    headings : tuple of str
        Of the columns behind the row's name.
    rows : list of (str, list)
        Name and figures; floats are shown with three digits.
    """

    headings: tuple[str, ...] = ()
    rows: list[tuple[str, list[Any]]] = field(default_factory=list)

    def show(self, console: Console) -> None:
        """Prints it."""
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(self.title, min_width=34)
        for heading in self.headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for name, figures in self.rows:
            table.add_row(name, *(_digits(f) if isinstance(f, float) else f"{f}" for f in figures))
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}")
        console.print()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        rows = [{"label": name} | dict(zip(self.headings, figures, strict=True)) for name, figures in self.rows]
        return {"title": self.title, "unit": self.unit, "rows": rows, "notes": self.notes}


def compare(
    title: str,
    unit: str,
    subjects: Iterable[Subject],
    reference: Array,
    effort: Effort,
    *,
    calls: int | None = None,
    pause_s: float = 0.0,
    rate: str = "",
) -> Table:
    """Checks all subjects, then times them in turn, so that the machine's mood is the same for all.

    Parameters
    ----------
    calls
        Calls per sample; None: as many as take `effort.sample_ns`, found by trying.
    pause_s
        Rest before each sample, then one call that is not timed: threads of the subject before may spin for a while.

    Raises
    ------
    WrongResultError
        Where a subject's result differs from the reference.
    """
    subjects = list(subjects)
    for subject in subjects:
        subject.check(reference)
    with _no_garbage_collection():
        counts = [s.calibrate(effort.sample_ns) if calls is None else calls for s in subjects]
        turns = list(zip(subjects, counts, strict=True))
        for _ in range(effort.samples):
            for subject, count in turns:
                if pause_s:
                    time.sleep(pause_s)
                    subject.call()
                subject.take_sample(count)
            # Nobody always runs after the same subject as the first in line.
            turns.append(turns.pop(0))
    return Table(title, unit, subjects, rate)


def compile_variants(model: Any) -> Iterator[tuple[str, asc.Executable]]:
    """Labels and executables for shapes that vary, on one thread: all resolved anew, with memory, and "auto"."""
    caches_off = asc.Options(tiling_cache_bytes=0, schedule_cache_bytes=0, memo=False)
    yield "host, caches off", asc.compile(model, mode="host", threads=1, options=caches_off)
    yield "host", asc.compile(model, mode="host", threads=1)
    yield "auto", asc.compile(model, mode="auto", threads=1)


def onnx_reference(model: Any, *inputs: Array) -> Array:
    """First output of an onnx.ModelProto by ONNX's own, slow evaluator."""
    from onnx.reference import ReferenceEvaluator

    feeds = dict(zip((i.name for i in model.graph.input), inputs, strict=True))
    outputs: Any = ReferenceEvaluator(model).run(None, feeds)
    return np.asarray(outputs[0], dtype=np.float64)


def bind_session(session: Any, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> Callable[[], object]:
    """onnxruntime's fastest call: input and output arrays bound once, on the same memory in every run."""
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
    return partial(session.run_with_iobinding, binding)


def then(call: Callable[[], object], result: Array) -> Callable[[], Array]:
    """A function that does `call`, which writes `result`, and returns it; the array is cleared before."""

    def run() -> Array:
        result[...] = np.nan
        call()
        return result

    return run


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _first(result: Any) -> Array:
    """The first array of what a run returned: an array, several in order, or by name."""
    if isinstance(result, dict):
        result = list(result.values())
    return np.asarray(result[0] if isinstance(result, (list, tuple)) else result)


def _digits(us: float) -> str:
    """Three or more significant digits."""
    return f"{us:,.0f}" if us >= 1000 else f"{us:.1f}" if us >= 100 else f"{us:.2f}" if us >= 1 else f"{us:.3f}"
