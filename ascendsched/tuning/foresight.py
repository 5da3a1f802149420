"""When foreseen shapes are resolved ahead: the thresholds that the core applies."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ascendsched.native import core as _core


@dataclass(frozen=True)
class Policy:
    """What resolving ahead needs and may cost.

    Attributes
    ----------
    min_confidence : float
        Of the forecast, its share of hits lately; below, resolving would be wasted more often than not.
    min_pause : float
        Between two runs, in times of what resolving a signature takes.
    cpu_share : float
        Of the time since the first run that may go into resolving ahead.
    free_ns : float
        That may be spent before that share is asked for.
    max_outstanding : int
        Schedules made and not used yet.
    patience : int
        Runs after which a schedule that nobody used is counted as wasted.
    """

    min_confidence: float = 0.5
    min_pause: float = 1.0
    cpu_share: float = 0.25
    free_ns: float = 50e6
    max_outstanding: int = 8
    patience: int = 64


POLICY = Policy()


def foresee(core: _core.Executable) -> None:
    """Let an executable foresee the shapes of its runs from now on; before its first one."""
    _core.foresee(core, **asdict(POLICY))
