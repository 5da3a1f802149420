"""Settings of `ascendsched.compile`."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from ascendsched.errors import PlanError
from ascendsched.tuning.buckets import Buckets

_PREFIX = "ASCENDSCHED_"
MAX_THREADS = 1024
ISAS = ("base", "v3", "v4")
MAX_WORKERS = 14  # threads that make tilings


@cache
def default_memory_limit() -> int:
    """Four fifths of the memory of the machine, or of the cgroup where that is less, in bytes; 0 where unknown."""
    known = [limit for limit in (_machine_bytes(), *_cgroup_bytes()) if limit > 0]
    return min(known) // 5 * 4 if known else 0


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def _cgroup_bytes() -> list[int]:
    """Memory limits of this process's cgroup and those around it, versions 2 and 1."""
    root = Path("/sys/fs/cgroup")
    files = [root / "memory.max", root / "memory" / "memory.limit_in_bytes"]
    try:
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            own = Path(path.lstrip("/"))
            if controllers == "":
                files += [root / part / "memory.max" for part in (own, *own.parents)]
            elif "memory" in controllers.split(","):
                files += [root / "memory" / part / "memory.limit_in_bytes" for part in (own, *own.parents)]
    except (OSError, ValueError):
        pass
    limits = []
    for file in files:
        try:
            limits.append(int(file.read_text(encoding="ascii")))
        except (OSError, ValueError):  # "max", or no such file
            continue
    return limits


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
        Bound of the device memory that the executable may use, and of the results of one run; default: four fifths of
        what the machine or the cgroup has (`default_memory_limit`). 0: no bound; a model that asks for more than there
        is may then be ended by the operating system instead of by an `OutOfMemoryError`.
    memo
        Whether nodes remember their last inputs, so that only what changed is resolved again.
    fuse
        Whether operators become one task where nobody else reads what is between them, and loops compute ahead what
        they know before they run; `Executable.explain` lists both.
    onednn
        Whether kernels may use oneDNN.
    pipeline_workers
        Threads of host mode that make tilings ahead of the device, with one that places memory and one that launches:
        1 to 14. With 1, and no more than two threads in all, the one that launches places memory too. 0: all on the
        launching thread. -1: pipelined where measured costs say that it is faster (`Executable.explain`). Runs that
        execute on the caller's thread are never pipelined.
    streams
        Most streams that a run may use for branches that do not depend on one another: 1 to 16; never more than the
        device has (the CPU: `threads`). None: as many as the device has, where an estimate says that it pays
        (`Executable.explain`). More than 1: for all independent branches, whether it pays or not. 1: off.
    predict
        Whether the shapes of the next run are foreseen, and resolved on a thread of its own between runs.
    buckets
        How lengths that vary are padded up to a few; has no environment variable.
    """

    tiling_cache_bytes: int = 32 << 20
    schedule_cache_bytes: int = 64 << 20
    memory_limit_bytes: int = field(default_factory=default_memory_limit)
    memo: bool = True
    fuse: bool = True
    onednn: bool = True
    pipeline_workers: int = -1
    streams: int | None = None
    predict: bool = False
    buckets: Buckets | None = field(default=None, metadata={"is_variable": False})

    def __post_init__(self) -> None:
        workers = self.pipeline_workers
        if not isinstance(workers, int) or isinstance(workers, bool) or not -1 <= workers <= MAX_WORKERS:
            raise PlanError(f"[options] pipeline_workers: {workers!r}; expected -1 (automatic) to {MAX_WORKERS}")
        streams = self.streams
        if streams is not None and (
            not isinstance(streams, int) or isinstance(streams, bool) or not 1 <= streams <= 16
        ):
            raise PlanError(f"[options] streams: {streams!r}; expected None (automatic) or 1 to 16")
        if self.buckets is not None and not isinstance(self.buckets, Buckets):
            raise PlanError(f"[options] buckets: {type(self.buckets).__name__}; expected ascendsched.Buckets(...)")
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool) or not 0 <= value < 1 << 63:
                expected = "a bool" if kind is bool else "0 or more bytes"
                raise PlanError(f"[options] {name}: {value!r}; expected {expected}")


_KINDS = {
    setting.name: bool if isinstance(setting.default, bool) else int
    for setting in fields(Options)
    if setting.name not in ("pipeline_workers", "streams", "buckets")
}
_VARIABLES = {
    setting.name: _PREFIX + setting.name.upper()
    for setting in fields(Options)
    if setting.metadata.get("is_variable", True)
}


def options_from(values: Mapping[str, Any]) -> Options:
    """Options from what ``dataclasses.asdict`` made of them; names that this version does not know are left out.

    Raises
    ------
    PlanError, TypeError
        For values that are none of ours.
    """
    known = {setting.name for setting in fields(Options)}
    settings = {name: value for name, value in values.items() if name in known}
    if settings.get("buckets") is not None:
        settings["buckets"] = Buckets(**settings["buckets"])
    return Options(**settings)


def from_environment() -> Options:
    """The defaults, changed by ``ASCENDSCHED_*`` variables.

    Raises
    ------
    PlanError
        Where a variable does not hold a whole number.
    """
    changes: dict[str, int | bool] = {}
    for name, variable in _VARIABLES.items():
        text = os.environ.get(variable)
        if text is None:
            continue
        try:
            number = int(text)
        except ValueError as e:
            raise PlanError(f"[options] {variable}={text!r}; set it to a whole number") from e
        changes[name] = bool(number) if _KINDS.get(name) is bool else number
    return Options(**changes) if changes else _defaults()  # type: ignore[arg-type]


@cache
def _defaults() -> Options:
    return Options()


def default_threads() -> int:
    """CPUs that this process may use: affinity and cgroup quota, or ``ASCENDSCHED_THREADS``."""
    variable = _PREFIX + "THREADS"
    text = os.environ.get(variable)
    if text is not None:
        if not text.strip().isdecimal() or not 1 <= int(text) <= MAX_THREADS:
            raise PlanError(f"[options] {variable}={text!r}; set it to 1 to {MAX_THREADS}, or unset it")
        return int(text)
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
        threads = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        threads = 0
    if isinstance(value, bool) or not 1 <= threads <= MAX_THREADS:
        raise PlanError(f"[options] threads: {value!r}; expected 1 to {MAX_THREADS}")
    return threads


def check_isa() -> None:
    """Refuses an instruction set that there is not, which would limit nothing.

    Raises
    ------
    PlanError
        Names the variable.
    """
    isa = os.environ.get(_PREFIX + "ISA") or ISAS[0]
    if isa not in ISAS:
        raise PlanError(f"[options] {_PREFIX}ISA={isa!r}; set it to one of {', '.join(ISAS)}, or unset it")


def _quota() -> int | None:
    """Whole CPUs of the cgroup's quota; None where there is none."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as f:
            quota, period = f.read().split()[:2]
        return None if quota == "max" else max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None
