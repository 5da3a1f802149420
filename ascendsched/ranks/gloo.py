"""Ranks over torch.distributed with gloo, as `torchrun` starts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ascendsched.errors import DeviceError
from ascendsched.ranks.group import Array, Group

OPS = {"sum": dist.ReduceOp.SUM, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}
# How long a survivor asks who stopped.
ASK_S = 2.0


class GlooGroup(Group):
    """Collectives of torch.distributed; progress of each rank is kept in the job's store, to name who stopped."""

    def __init__(
        self, rank: int, size: int, timeout_s: float, environment: Mapping[str, str], clock: Callable[[], int]
    ) -> None:
        super().__init__(rank, size, timeout_s, clock)
        self._store: Any = None
        self._groups: list[Any] = []
        self._guard("joining", lambda: self._join(environment))

    def _join(self, environment: Mapping[str, str]) -> None:
        missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in environment]
        if missing or not environment["MASTER_PORT"].isdigit():
            raise DeviceError("[ranks] MASTER_ADDR or MASTER_PORT is not set or no port; start with torchrun")
        if dist.is_initialized():
            raise DeviceError("[ranks] torch.distributed is initialised already; join before anything else does")
        timeout = timedelta(seconds=self.timeout_s)
        is_served = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun keeps the store itself
        self._store = dist.TCPStore(
            environment["MASTER_ADDR"],
            int(environment["MASTER_PORT"]),
            self.size,
            is_master=self.rank == 0 and not is_served,
            timeout=timeout,
            wait_for_workers=False,
        )
        restarts = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._marks = dist.PrefixStore(f"ascendsched/{restarts}", self._store)
        self._marks.set(f"step/{self.rank}", "0")
        dist.init_process_group("gloo", store=self._marks, rank=self.rank, world_size=self.size, timeout=timeout)
        # The agreement runs beside the model's collectives, so in a group of its own.
        self._groups = [dist.new_group(timeout=timeout, backend="gloo")]

    def advance(self, step: int) -> None:
        self._guard("advance", lambda: self._marks.set(f"step/{self.rank}", str(step)))

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()

    def _all_reduce(self, array: Array, op: str) -> Array:
        tensor = _tensor(array.copy())
        dist.all_reduce(tensor, OPS[op])
        return _array(tensor, array)

    def _all_gather(self, array: Array) -> list[Array]:
        tensor = _tensor(array)
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor)
        return [_array(part, array) for part in parts]

    def _start_min(self, array: Array) -> Callable[[], Array]:
        tensor = _tensor(array.copy())
        work = dist.all_reduce(tensor, dist.ReduceOp.MIN, group=self._groups[0], async_op=True)

        def wait() -> Array:
            work.wait()
            return _array(tensor, array)

        return wait

    def _exchange(self, peer: int, array: Array, is_first: bool) -> Array:
        sent, received = _tensor(array.copy()), torch.empty_like(_tensor(array.copy()))
        if is_first:
            dist.send(sent, peer)
        dist.recv(received, peer)
        if not is_first:
            dist.send(sent, peer)
        return _array(received, array)

    def _suspects(self) -> str:
        """The ranks whose progress is least, from the store."""
        if self._store is None:
            return "the other ranks did not come"
        steps: dict[int, int] = {}
        try:
            self._marks.set_timeout(timedelta(seconds=ASK_S))
            present = [rank for rank in range(self.size) if self._marks.check([f"step/{rank}"])]
            steps = {rank: int(self._marks.get(f"step/{rank}")) for rank in present}
        except (RuntimeError, ValueError):
            return "the job's store is gone, so the rank that keeps it, rank 0 or torchrun's agent, died"
        absent = sorted(set(range(self.size)) - set(steps))
        if absent:
            return f"rank {absent[0]} did not come"
        last = min(steps.values())
        late = [rank for rank in steps if steps[rank] == last and rank != self.rank]
        if len(late) == 1 and last < steps[self.rank]:
            return f"rank {late[0]} stopped at step {last}, this rank is at step {steps[self.rank]}"
        return f"a rank of {late} died, hangs, or is at another collective at step {last}"


def _tensor(array: Array) -> torch.Tensor:
    """A tensor over the bytes of an array; what torch lacks goes as a wider type."""
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise DeviceError(f"[ranks] {array.dtype} cannot be exchanged; cast it to a number of at most 64 bits")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    return torch.from_numpy(np.require(array, requirements="W"))


def _array(tensor: torch.Tensor, like: Array) -> Array:
    return np.asarray(tensor.numpy().astype(like.dtype, copy=False))
