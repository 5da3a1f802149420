"""Ranks over mpi4py, as `mpiexec` starts them.

MPI's blocking calls know no deadline, so every call here is a non-blocking one that is asked until it is done. A rank
that dies is mpiexec's affair, which ends all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mpi4py
import numpy as np

mpi4py.rc.finalize = False  # finalising waits for every rank: only a job that is whole may do it

from mpi4py import MPI  # noqa: E402

from ascendsched.errors import WaitTimeoutError  # noqa: E402
from ascendsched.ranks.group import Array, Group  # noqa: E402

OPS = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}
SPIN_S, NAP_S = 0.002, 0.000_05


class MpiGroup(Group):
    """Collectives of MPI.COMM_WORLD."""

    def __init__(self, timeout_s: float, clock: Callable[[], int]) -> None:
        self._world = MPI.COMM_WORLD
        super().__init__(self._world.Get_rank(), self._world.Get_size(), timeout_s, clock)
        # The agreement runs beside the model's collectives, so in a communicator of its own.
        self._beside = self._world.Dup()

    def advance(self, step: int) -> None:
        """Nobody is told: MPI has no store."""

    def close(self) -> None:
        """Ends MPI where all ranks are well; a broken job is left as it is."""
        if self.failure is None and not MPI.Is_finalized():
            MPI.Finalize()

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
            if spent > self.timeout_s:
                raise WaitTimeoutError(
                    f"[ranks] rank {self.rank} of {self.size} waited {spent:.1f} s: {self._suspects()}; "
                    "look at the other ranks' errors, then start the job again"
                )
            time.sleep(0 if spent < SPIN_S else NAP_S)
