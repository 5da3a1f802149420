"""The processes of a job. A transport implements `Group`, whose every call ends by its deadline."""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from ascendsched.errors import AscendSchedError, DeviceError, DeviceUnavailableError, WaitTimeoutError

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

DEFAULT_TIMEOUT_S = 30.0


class Group(ABC):
    """One process's view of its job. One thread at a time.

    The first failure is final: a peer may be gone, or at another collective than this rank, so every later call
    raises the same error at once.

    Attributes
    ----------
    rank, size : int
        This process and how many there are.
    timeout_s : float
        Deadline of every collective.
    failure : AscendSchedError or None
        What broke the group.
    doing : str
        The call that this rank is in, or was in last.
    arrivals : list
        (name, clock in ns) of this rank at each named collective, for `measure_skew`.
    """

    def __init__(self, rank: int, size: int, timeout_s: float, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.rank, self.size, self.timeout_s, self.clock = rank, size, timeout_s, clock
        self.failure: AscendSchedError | None = None
        self.doing = "joining"
        self.arrivals: list[tuple[str, int]] = []

    def all_reduce(self, array: Array, op: str = "sum", name: str = "") -> Array:
        """The element-wise "sum", "min" or "max" over all ranks; the same bits on each of them."""
        if op not in {"sum", "min", "max"}:
            raise DeviceError(f"[ranks] all_reduce: {op!r} is unknown; use sum, min or max")
        self._arrive(name)
        return self._guard(f"all_reduce {name}".strip(), lambda: self._all_reduce(np.ascontiguousarray(array), op))

    def all_gather(self, array: Array, name: str = "") -> list[Array]:
        """The array of every rank, in their order; shapes and types are equal."""
        self._arrive(name)
        return self._guard(f"all_gather {name}".strip(), lambda: self._all_gather(np.ascontiguousarray(array)))

    def start_min(self, array: Array) -> Callable[[], Array]:
        """Starts an element-wise minimum in the background; the function it returns waits for the result."""
        wait = self._guard("agreement", lambda: self._start_min(np.ascontiguousarray(array)))
        return lambda: self._guard("agreement", wait)

    def exchange(self, peer: int, array: Array, is_first: bool) -> Array:
        """Sends to a peer and receives from it, in this order where `is_first`, else the other way round."""
        return self._guard(f"exchange with rank {peer}", lambda: self._exchange(peer, array, is_first))

    @abstractmethod
    def advance(self, step: int) -> None:
        """Tells the others, as far as the transport can, that this rank has begun a step."""

    @abstractmethod
    def close(self) -> None:
        """Leaves the job; never waits longer than the deadline."""

    @abstractmethod
    def _all_reduce(self, array: Array, op: str) -> Array: ...

    @abstractmethod
    def _all_gather(self, array: Array) -> list[Array]: ...

    @abstractmethod
    def _start_min(self, array: Array) -> Callable[[], Array]: ...

    @abstractmethod
    def _exchange(self, peer: int, array: Array, is_first: bool) -> Array: ...

    def _suspects(self) -> str:
        """Which ranks stopped answering, as far as the transport knows."""
        return "another rank died, hangs, or is at another collective"

    def _arrive(self, name: str) -> None:
        if name:
            self.arrivals.append((name, self.clock()))

    def _guard(self, what: str, call: Callable[[], T]) -> T:
        if self.failure is not None:
            raise self.failure
        self.doing = what
        begin = time.monotonic()
        try:
            return call()
        except AscendSchedError as error:
            self.failure = error
            raise
        except Exception as error:  # the transports raise many kinds, RuntimeError among them
            spent = time.monotonic() - begin
            kind = WaitTimeoutError if spent >= 0.9 * self.timeout_s else DeviceError
            detail = " ".join(str(error).split())[:160]
            self.failure = kind(
                f"[ranks] {what} on rank {self.rank} of {self.size} failed after {spent:.1f} s: {self._suspects()} "
                f"({detail}); look at that rank's own error, then start the job again"
            )
            raise self.failure from error


def check_timeout(timeout_s: float) -> float:
    """Raises `DeviceError` unless it is a time above 0, at most a day."""
    if not math.isfinite(timeout_s) or not 0 < timeout_s <= 86_400:
        raise DeviceError(f"[ranks] timeout_s is {timeout_s}; give seconds above 0, at most 86400")
    return timeout_s


def join(
    timeout_s: float = DEFAULT_TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
    clock: Callable[[], int] = time.monotonic_ns,
) -> Group:
    """Joins the job that `torchrun` or `mpiexec` started this process for.

    Parameters
    ----------
    timeout_s : float
        Deadline of joining and of every collective.
    environment : mapping, optional
        Instead of the process's own.
    clock : callable
        This rank's clock in ns, for skew.

    Raises
    ------
    DeviceUnavailableError
        Where no launcher's variables are set, or the transport is not installed.
    DeviceError, WaitTimeoutError
        Where the other ranks do not come.
    """
    env = os.environ if environment is None else environment
    check_timeout(timeout_s)
    if "RANK" in env and "WORLD_SIZE" in env:
        try:
            from ascendsched.ranks.gloo import GlooGroup
        except ImportError as error:
            raise DeviceUnavailableError(f"[ranks] no torch ({error}); pip install ascendsched[ranks]") from None
        return GlooGroup(*_place(env, "RANK", "WORLD_SIZE"), timeout_s, env, clock)
    if any(name in env for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")):
        try:
            from ascendsched.ranks.mpi import MpiGroup
        except (ImportError, RuntimeError) as error:
            raise DeviceUnavailableError(f"[ranks] no mpi4py ({error}); pip install ascendsched[mpi]") from None
        return MpiGroup(timeout_s, clock)
    raise DeviceUnavailableError("[ranks] this process belongs to no job; start it with torchrun or mpiexec")


def _place(env: Mapping[str, str], rank_name: str, size_name: str) -> tuple[int, int]:
    try:
        rank, size = int(env[rank_name]), int(env[size_name])
    except ValueError:
        rank, size = -1, 0
    if not 0 <= rank < size:
        raise DeviceError(
            f"[ranks] {rank_name}={env[rank_name]!r}, {size_name}={env[size_name]!r}; expected 0 <= rank < size"
        )
    return rank, size
