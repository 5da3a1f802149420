"""A workload: the tasks of one run in order, with the time that each keeps its device busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascendsched.sim.cost_profile import CostProfile
from ascendsched.sim.work import collective_ns, elements, kernel_ns, size_of, work_of
from ascendsched.tasks import Task

Ints = NDArray[np.int64]

#: Nodes whose name ends so leave a partial sum on each rank; an all-reduce follows them.
PARTIAL = ".partial"


@dataclass(frozen=True)
class Workload:
    """Columns by task.

    Attributes
    ----------
    kernel_ns : array
        Time on the device.
    is_collective : array
        Whether all ranks have to be there before it starts.
    needs_tiling : array
        Whether its tiling is made in this run, and not found in the cache.
    nodes : tuple
        (name, operator).
    """

    kernel_ns: Ints
    is_collective: NDArray[np.bool_]
    needs_tiling: NDArray[np.bool_]
    nodes: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.kernel_ns)


def make_workload(
    tasks: Sequence[Task],
    profile: CostProfile,
    float_bytes: int = 4,
    ranks: int = 1,
    missed: frozenset[int] = frozenset(),
) -> Workload:
    """The workload of a plan's tasks on a device.

    Parameters
    ----------
    tasks : sequence of Task
        In the order in which they are launched.
    profile : CostProfile
        Of the device.
    float_bytes : int
        See `work_of`.
    ranks : int
        How many take part in the collectives that follow partial sums.
    missed : frozenset of int
        Numbers of the nodes whose tilings are not in the cache.
    """
    times, collective, tiling, nodes = [], [], [], []
    for task in tasks:
        times.append(kernel_ns(work_of(task, float_bytes), profile))
        collective.append(False)
        tiling.append(task.number in missed)
        nodes.append((task.name, task.op))
        if ranks > 1 and task.name.endswith(PARTIAL) and task.outputs[0] is not None:
            size = elements(task.outputs[0]) * size_of(task.outputs[0].dtype, float_bytes)
            times.append(collective_ns(size, ranks, profile))
            collective.append(True)
            tiling.append(False)
            nodes.append((task.name.removesuffix(PARTIAL) + ".all_reduce", "AllReduce"))
    return Workload(np.array(times, np.int64), np.array(collective, bool), np.array(tiling, bool), tuple(nodes))
