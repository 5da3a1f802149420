"""Times calls in turn, so that the machine's mood is the same for all."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_BLOCK_NS = 10_000_000
_MAX_CALLS = 200
_CALIBRATIONS = 3
_PAUSE_S = 0.003  # runtimes with threads spin a while after a run; the next one shall have the CPUs


def time_in_turn(calls: Sequence[Callable[[], object]], rounds: int, threads: int) -> list[list[int]]:
    """Nanoseconds of single calls, for each of `calls`.

    Every round gives each of them one block of calls, after one that is not timed; nobody always follows the same.

    Parameters
    ----------
    calls
        What to time.
    rounds
        Number of blocks.
    threads
        With more than one, a pause precedes each block.
    """
    times: list[list[int]] = [[] for _ in calls]
    if not calls:
        return times
    with _no_garbage_collection():
        turns = [(call, _calls_per_block(call), own) for call, own in zip(calls, times, strict=True)]
        for _ in range(rounds):
            for call, count, own in turns:
                if threads > 1:
                    time.sleep(_PAUSE_S)
                call()
                for _ in range(count):
                    begin = time.perf_counter_ns()
                    call()
                    own.append(time.perf_counter_ns() - begin)
            turns.append(turns.pop(0))
    return times


def percentile(times: Sequence[int], share: float) -> float:
    """The time that a share of the calls does not exceed, in milliseconds."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6


def _calls_per_block(call: Callable[[], object]) -> int:
    best = _BLOCK_NS
    for _ in range(_CALIBRATIONS):
        begin = time.perf_counter_ns()
        call()
        best = min(best, max(1, time.perf_counter_ns() - begin))
    return min(_MAX_CALLS, _BLOCK_NS // best)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
