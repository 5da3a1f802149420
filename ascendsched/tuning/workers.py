"""How many workers make tilings: a pure function of what they did lately."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ascendsched.tuning.event import Event

MIN_RUNS = 16  # pipelined ones in a window; with fewer, nothing is known
MANY_MISSES = 1.0  # per pipelined run, from which workers have tilings to make
FEW_MISSES = 0.1  # below, they have none
BUSY = 0.9  # of the CPUs in use, from which another thread takes its CPU from somebody
FREE = 0.75  # below, there is room for one more
GAIN = 0.03  # of the time of a new signature's run that another worker must save
REST = 16  # windows after growing in vain


@dataclass(frozen=True)
class WorkerState:
    """Workers, and what became of the last one that was added."""

    count: int
    first_ns_before: float | None = None  # of a new signature's run before it was added; None: judged, or not added
    rest: int = 0  # windows in which none is added


@dataclass(frozen=True)
class WorkerWindow:
    """What happened since the last decision.

    Attributes
    ----------
    pipelined : int
        Runs that used workers.
    hits, misses : int
        Look-ups of tilings.
    first_ns : float, optional
        Of a run with a new signature, node by node; None where there was none.
    cpu_share : float
        CPU time of the process over that of all CPUs it may use, from 0 to 1.
    """

    pipelined: int
    hits: int
    misses: int
    first_ns: float | None
    cpu_share: float

    @property
    def misses_a_run(self) -> float:
        """Tilings made; nodes that remember theirs do not look for one."""
        return self.misses / max(1, self.pipelined)

    def text(self) -> str:
        """Why."""
        looked = max(1, self.hits + self.misses)
        return (
            f"{self.misses_a_run:.2f} tilings made a run, {self.hits / looked:.0%} of those looked for were there, "
            f"{self.cpu_share:.0%} of the CPUs in use"
        )


def decide_workers(state: WorkerState, window: WorkerWindow, most: int) -> tuple[WorkerState, Event | None]:
    """The next number of workers, from 1 to `most`.

    One more where tilings are missing and CPUs are free, kept only if new signatures then run faster; one less where
    none are missing, or the CPUs are all in use.
    """
    if window.pipelined < MIN_RUNS:
        return state, None
    if state.first_ns_before is not None and window.first_ns is not None:
        if window.first_ns > state.first_ns_before * (1 - GAIN):
            before, now = state.first_ns_before / 1e3, window.first_ns / 1e3
            return _changed(state, -1, most, f"one more saved nothing: {before:.0f} us a new signature, {now:.0f} now")
        state = replace(state, first_ns_before=None)
    state = replace(state, rest=max(0, state.rest - 1))
    if window.cpu_share > BUSY or window.misses_a_run < FEW_MISSES:
        return _changed(state, -1, most, window.text())
    is_worth_it = window.misses_a_run > MANY_MISSES and window.cpu_share < FREE and window.first_ns is not None
    if is_worth_it and not state.rest:
        return _changed(replace(state, first_ns_before=window.first_ns), 1, most, window.text())
    return state, None


def _changed(state: WorkerState, step: int, most: int, why: str) -> tuple[WorkerState, Event | None]:
    count = min(max(1, state.count + step), most)
    if step < 0:
        state = replace(state, first_ns_before=None, rest=REST)
    if count == state.count:
        return replace(state, first_ns_before=None), None
    return replace(state, count=count), Event("workers", state.count, count, why)
