"""Ranks over mpi4py, as `mpiexec` starts them.

MPI's blocking calls know no deadline, so every call here is a non-blocking one that is asked until it is done. Whoever
waits in vain calls the roll: it tells all others where it stands, whoever waits too does the same at once, and who is
not heard of is the one that stopped. Unless mpiexec is told to leave the others alone (`-disable-auto-cleanup`, of Open
MPI `--enable-recovery`), it ends all of them itself when one dies.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

import mpi4py
import numpy as np

mpi4py.rc.initialize = False  # it may wait for ever for a rank that does not come: `_initialize` has a deadline
mpi4py.rc.finalize = False  # finalising waits for every rank: only a job that is whole may do it

from mpi4py import MPI  # noqa: E402

from ascendsched.errors import DeviceError, WaitTimeoutError  # noqa: E402
from ascendsched.ranks.group import Array, Group  # noqa: E402

OPS = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}
SPIN_S, NAP_S = 0.002, 0.000_05
ROLL_TAG, ROLL_BYTES = 1, 128
# How long the roll is called. Who waits answers in much less.
ASK_S = 1.0


class MpiGroup(Group):
    """Collectives of MPI.COMM_WORLD."""

    def __init__(self, timeout_s: float, clock: Callable[[], int]) -> None:
        _initialize(timeout_s)
        self._world = MPI.COMM_WORLD
        self._world.Set_errhandler(MPI.ERRORS_RETURN)
        super().__init__(self._world.Get_rank(), self._world.Get_size(), timeout_s, clock)
        self._step = 0
        self._roll: Any = None
        self._called: list[Any] = []  # keeps what was sent alive
        # The agreement runs beside the model's collectives, so in a communicator of its own.
        self._beside = self._guard("joining", self._duplicate)
        self._roll = self._guard("joining", self._duplicate)

    def advance(self, step: int) -> None:
        """Kept for the roll: MPI has no store in which others could look it up."""
        self._step = step

    def close(self) -> None:
        """Ends MPI once all ranks are here to do so; a broken job is left as it is."""
        if self.failure is None and not MPI.Is_finalized():
            self._guard("leaving", lambda: self._await(self._world.Ibarrier()))
            MPI.Finalize()

    def _duplicate(self) -> Any:
        copy, request = self._world.Idup()
        self._await(request)
        return copy

    def _all_reduce(self, array: Array, op: str) -> Array:
        result = np.empty_like(array)
        self._await(self._world.Iallreduce(array, result, OPS[op]))
        return result

    def _all_gather(self, array: Array) -> list[Array]:
        result = np.empty((self.size, *array.shape), array.dtype)
        self._await(self._world.Iallgather(array, result))
        return list(result)

    def _start_min(self, array: Array) -> Callable[[], Array]:
        result = np.empty_like(array)
        request = self._beside.Iallreduce(array, result, MPI.MIN)

        def wait() -> Array:
            self._await(request)
            return result

        return wait

    def _exchange(self, peer: int, array: Array, is_first: bool) -> Array:
        result = np.empty_like(array)
        if is_first:
            self._await(self._world.Isend(array, peer))
        self._await(self._world.Irecv(result, peer))
        if not is_first:
            self._await(self._world.Isend(array, peer))
        return result

    def _await(self, request: Any) -> None:
        begin = time.monotonic()
        while not request.Test():
            spent = time.monotonic() - begin
            is_called = spent > SPIN_S and self._roll is not None and self._roll.Iprobe(MPI.ANY_SOURCE, ROLL_TAG)
            if is_called or spent > self.timeout_s:
                raise WaitTimeoutError(
                    f"[ranks] {self.doing} on rank {self.rank} of {self.size} waited {spent:.1f} s: "
                    f"{self._suspects()}; look at that rank's own error, then start the job again"
                )
            time.sleep(0 if spent < SPIN_S else NAP_S)

    def _suspects(self) -> str:
        """The ranks that are not heard of when the roll is called, or that stand elsewhere."""
        if self._roll is None:
            return "another rank did not join"
        here = (self._step, self.doing)
        heard = self._call_roll(here)
        absent = sorted(set(range(self.size)) - set(heard) - {self.rank})
        if absent:
            who = f"rank {absent[0]}" if len(absent) == 1 else f"each of ranks {', '.join(map(str, absent))}"
            where = f"there in step {self._step}" if self._step else "there"
            return f"{who} did not come {where}: it died, hangs, or still works"
        for rank, (step, doing) in sorted(heard.items()):
            if (step, doing) != here:
                return (
                    f"rank {rank} gave up at {doing} of step {step}, this rank is at {self.doing} of step {self._step}"
                )
        others = ", ".join(map(str, sorted(heard)))
        return f"this rank came later than the deadline to where the others ({others}) had given up"

    def _call_roll(self, here: tuple[int, str]) -> dict[int, tuple[int, str]]:
        """Tells all others where this rank stands; returns where those are that answer in time."""
        text = f"{here[0]} {here[1]}".encode()[:ROLL_BYTES]
        message = np.frombuffer(text.ljust(ROLL_BYTES), np.uint8).copy()
        heard: dict[int, tuple[int, str]] = {}
        for peer in range(self.size):
            try:
                if peer != self.rank:
                    self._called.append((self._roll.Isend(message, peer, ROLL_TAG), message))
            except MPI.Exception:  # that rank is known to be gone
                continue
        end, status = time.monotonic() + ASK_S, MPI.Status()
        while len(heard) < self.size - 1 and time.monotonic() < end:
            try:
                if not self._roll.Iprobe(MPI.ANY_SOURCE, ROLL_TAG, status):
                    time.sleep(NAP_S)
                    continue
                answer = np.empty(ROLL_BYTES, np.uint8)
                self._roll.Recv(answer, status.Get_source(), ROLL_TAG)
            except MPI.Exception:
                break
            step, _, doing = answer.tobytes().decode(errors="replace").strip().partition(" ")
            heard[status.Get_source()] = (int(step), doing)
        return heard


def _initialize(timeout_s: float) -> None:
    """Initialises MPI, which waits for all ranks and, through mpi4py, would hold the interpreter meanwhile."""
    if MPI.Is_initialized():
        return
    library, given = ctypes.CDLL(MPI.__file__), ctypes.c_int()
    begin = threading.Thread(
        target=lambda: library.MPI_Init_thread(None, None, MPI.THREAD_MULTIPLE, ctypes.byref(given)), daemon=True
    )
    begin.start()
    begin.join(timeout_s)
    if begin.is_alive():
        raise WaitTimeoutError(
            f"[ranks] joining: MPI did not begin within {timeout_s:g} s: a rank did not come; "
            "see that all start at once, or raise timeout_s"
        )
    if not MPI.Is_initialized():
        raise DeviceError("[ranks] joining: MPI cannot be initialised; see what mpiexec printed")
