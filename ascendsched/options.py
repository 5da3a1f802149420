"""Settings of `ascendsched.compile`."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace

from ascendsched.errors import PlanError

_PREFIX = "ASCENDSCHED_"


@dataclass(frozen=True)
class Options:
    """Settings of an executable. An argument of `compile` wins over `Options`, `Options` over an environment variable
    ``ASCENDSCHED_<NAME>``, that over the default.

    Parameters
    ----------
    tiling_cache_bytes
        Bound of the tiling cache; 0 turns it off.
    schedule_cache_bytes
        Bound of the cache of loaded schedules, per segment; 0 turns it off, so that sink mode loads at every run.
    memory_limit_bytes
        Bound of the device memory that the executable may use; 0: no bound.
    memo
        Whether nodes remember their last inputs, so that only what changed is resolved again.
    onednn
        Whether kernels may use oneDNN.
    """

    tiling_cache_bytes: int = 32 << 20
    schedule_cache_bytes: int = 64 << 20
    memory_limit_bytes: int = 0
    memo: bool = True
    onednn: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = bool if isinstance(field.default, bool) else int
            if not isinstance(value, kind) or value < 0:
                raise PlanError(
                    f"[options] {field.name}: {value!r}; expected {'a bool' if kind is bool else '0 or more bytes'}"
                )


def from_environment() -> Options:
    """The defaults, changed by ``ASCENDSCHED_*`` variables.

    Raises
    ------
    PlanError
        Where a variable does not hold a whole number.
    """
    changes: dict[str, int | bool] = {}
    for field in fields(Options):
        text = os.environ.get(_PREFIX + field.name.upper())
        if text is None:
            continue
        try:
            number = int(text)
        except ValueError as e:
            raise PlanError(f"[options] {_PREFIX}{field.name.upper()}={text!r}; set it to a whole number") from e
        changes[field.name] = bool(number) if isinstance(field.default, bool) else number
    return replace(Options(), **changes)  # type: ignore[arg-type]


def default_threads() -> int:
    """CPUs that this process may use: affinity and cgroup quota, or ``ASCENDSCHED_THREADS``."""
    text = os.environ.get(_PREFIX + "THREADS")
    if text is not None:
        return check_threads(text)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, _quota() or allowed))


def check_threads(value: object) -> int:
    """`value` as a number of threads, at least 1.

    Raises
    ------
    PlanError
        For anything else.
    """
    try:
        threads = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        threads = 0
    if not 1 <= threads <= 1024:
        raise PlanError(f"[options] threads: {value!r}; expected 1 to 1024")
    return int(threads)


def _quota() -> int | None:
    """Whole CPUs of the cgroup's quota; None where there is none."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as f:
            quota, period = f.read().split()[:2]
        return None if quota == "max" else max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None
