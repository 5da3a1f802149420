"""Resolves the schedules of foreseen shapes on a thread of its own, while the caller does something else."""

from __future__ import annotations

import logging
import queue
import threading
import time
import weakref
from collections import OrderedDict
from typing import Any

from ascendsched.errors import AscendSchedError
from ascendsched.native import core as _core
from ascendsched.tuning.forecast import Forecast
from ascendsched.tuning.predictors import Signature

Shapes = tuple[tuple[int, ...], ...]

_LOG = logging.getLogger("ascendsched")

MIN_CONFIDENCE = 0.5  # of the forecast; below, resolving ahead would be wasted more often than not
MAX_BACKLOG = 64  # runs that the thread may be behind; more are not looked at
MAX_OUTSTANDING = 8  # schedules made and not used yet
PATIENCE = 64  # runs after which a schedule that nobody used is counted as wasted
MAX_KNOWN = 512  # signatures remembered as resolved
CPU_SHARE = 0.25  # of the time since the first run that may go into resolving ahead
FREE_NS = 50_000_000  # which may be spent before that share is asked for
SMOOTHING = 0.8  # of the averages of slack and cost


class Ahead:
    """Watches the runs of an executable and resolves what it foresees, in the caller's pauses.

    `begin` and `end` are called around a run by any thread and only hand over a few numbers; forecasting and resolving
    happen on one thread, which ends with this object. Resolving holds the executable's lock: a run of the same shape
    that comes meanwhile waits for work that it would have to do itself.
    """

    def __init__(self, core: _core.Executable) -> None:
        self._core = core
        self._queue: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
        self._changed = threading.Condition()  # guards the counts of what is handed over
        self._given = self._handled = 0
        self._thread: threading.Thread | None = None
        self._forecast = Forecast()
        self._ranks: tuple[int, ...] = ()
        self._known: OrderedDict[Signature, None] = OrderedDict()
        self._outstanding: OrderedDict[Signature, tuple[int, int]] = OrderedDict()  # run when made, nanoseconds spent
        self._is_possible = True
        self._start_ns = 0
        self._end_ns = 0
        self._slack_ns = 0.0  # between two runs, smoothed
        self._cost_ns = 0.0  # of resolving one signature, smoothed
        names = "ahead_resolved", "ahead_used", "ahead_wasted", "ahead_ns", "ahead_wasted_ns", "ahead_unsure"
        self._counts = dict.fromkeys((*names, "ahead_no_slack", "ahead_unseen"), 0)

    def begin(self) -> None:
        """A run begins."""
        if self._end_ns:
            pause = time.perf_counter_ns() - self._end_ns
            self._slack_ns = SMOOTHING * self._slack_ns + (1 - SMOOTHING) * pause

    def end(self, shapes: list[Any] | None) -> None:
        """A run with these input shapes, each a sequence of dims, has ended; None: they are not known."""
        self._end_ns = time.perf_counter_ns()
        if not self._is_possible or shapes is None:
            return
        with self._changed:
            if self._given - self._handled >= MAX_BACKLOG:
                self._counts["ahead_unseen"] += 1
                return
            self._given += 1
            if self._thread is None:
                self._start_thread()
        self._queue.put(shapes)

    def _start_thread(self) -> None:
        self._start_ns = time.perf_counter_ns()
        thread = threading.Thread(
            target=_serve, args=(weakref.ref(self), self._queue), name="ascendsched-ahead", daemon=True
        )
        weakref.finalize(self, _end_thread, self._queue, thread)
        self._thread = thread
        thread.start()

    def wait_idle(self, timeout_s: float = 60.0) -> bool:
        """Waits until all runs that ended have been looked at; False: the time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: self._handled == self._given, timeout_s)

    def _serve_one(self, shapes: list[Any]) -> None:
        """On the thread: looks at one run, and resolves what comes next where that is sensible."""
        try:
            self._look_at(tuple(tuple(map(int, shape)) for shape in shapes))
        except (AscendSchedError, TypeError, ValueError) as error:  # a shape that the model refuses, or that is none
            _LOG.debug("[predict] not resolved ahead: %s", error)
        finally:
            with self._changed:
                self._handled += 1
                self._changed.notify_all()

    def _look_at(self, shapes: Shapes) -> None:
        ranks = tuple(map(len, shapes))
        if ranks != self._ranks:
            self._ranks, self._forecast = ranks, Forecast()
        signature = tuple(dim for shape in shapes for dim in shape)
        self._settle(signature)
        foreseen = self._forecast.observe(signature)
        if foreseen is not None and self._may_resolve(foreseen):
            self._resolve(foreseen)

    def _settle(self, signature: Signature) -> None:
        """Counts what was resolved ahead as used, or as wasted where it has waited for too long."""
        if self._outstanding.pop(signature, None) is not None:
            self._counts["ahead_used"] += 1
        while self._outstanding:
            oldest = next(iter(self._outstanding))
            made_at, spent_ns = self._outstanding[oldest]
            if self._forecast.observed - made_at < PATIENCE:
                break
            del self._outstanding[oldest]
            self._counts["ahead_wasted"] += 1
            self._counts["ahead_wasted_ns"] += spent_ns

    def _may_resolve(self, foreseen: Signature) -> bool:
        if foreseen in self._known:
            self._known.move_to_end(foreseen)
            return False
        if self._forecast.confidence < MIN_CONFIDENCE or len(self._outstanding) >= MAX_OUTSTANDING:
            self._counts["ahead_unsure"] += 1
            return False
        elapsed_ns = time.perf_counter_ns() - self._start_ns
        is_over = self._counts["ahead_ns"] > FREE_NS + CPU_SHARE * elapsed_ns
        if is_over or (self._cost_ns and self._slack_ns < self._cost_ns):
            self._counts["ahead_no_slack"] += 1
            self._cost_ns *= 0.99  # so that one slow case does not end it for good
            return False
        return True

    def _resolve(self, foreseen: Signature) -> None:
        dims = iter(foreseen)
        start = time.perf_counter_ns()
        made = self._core.resolve_ahead([[next(dims) for _ in range(rank)] for rank in self._ranks])
        spent = time.perf_counter_ns() - start
        if made is None:
            self._is_possible = False
            return
        self._known[foreseen] = None
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        if not made:
            return
        self._cost_ns = SMOOTHING * self._cost_ns + (1 - SMOOTHING) * spent if self._cost_ns else spent
        self._outstanding[foreseen] = (self._forecast.observed, spent)
        self._counts["ahead_resolved"] += 1
        self._counts["ahead_ns"] += spent

    def stats(self) -> dict[str, int]:
        """Counters since compilation; of the forecast since the ranks of the inputs changed last."""
        seen = self._forecast
        counts = {"predict_runs": seen.observed, "predict_foreseen": seen.foreseen, "predict_right": seen.right}
        return {**counts, **self._counts, "ahead_slack_ns": int(self._slack_ns), "ahead_cost_ns": int(self._cost_ns)}

    def explain(self) -> str:
        """How good the forecast is, and what it led to."""
        if not self._is_possible:
            return (
                "prediction is off: nothing can be resolved ahead where contents of inputs, sync points or control\n"
                "flow decide on the schedule, or where the schedule cache is off\n"
            )
        c = self.stats()
        best = ", ".join(f"{name} {rate:.0%}" for name, rate in _best(self._forecast.rates()))
        return (
            f"prediction: {c['predict_right']} of {c['predict_runs']} signatures right, {c['predict_foreseen']} "
            f"foreseen ({best}); {c['ahead_resolved']} resolved ahead in {c['ahead_ns'] / 1e6:.1f} ms, "
            f"{c['ahead_used']} used, {c['ahead_wasted']} wasted; not tried: {c['ahead_no_slack']} without slack, "
            f"{c['ahead_unsure']} unsure\n"
        )


def _best(rates: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(rates.items(), key=lambda item: -item[1])[:3]


def _serve(ahead: weakref.ref[Ahead], work: queue.SimpleQueue[list[Any] | None]) -> None:
    """The thread: holds the object only while it works for it, so that it can go."""
    while (shapes := work.get()) is not None:
        target = ahead()
        if target is None:
            return
        target._serve_one(shapes)
        del target


def _end_thread(work: queue.SimpleQueue[list[Any] | None], thread: threading.Thread) -> None:
    work.put(None)
    if thread is not threading.current_thread():
        thread.join(10)
