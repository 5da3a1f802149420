"""What does each stage of host mode cost a task, when everything it needs is cached?

A chain of operators on the null device, whose kernels do nothing, so that only the host is timed. "launch": a signature
that came back. "memo hit": the same with schedules off, so that each node is found unchanged. "new shape": every shape
new to the nodes, their tilings cached. "tiling off": the same with every tiling made again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
from command import main
from harness import Effort, Figures, Subject, Table, compare
from models import sequence_model

import ascendsched as asc

TASKS = 1000
WIDTH = 16


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table of all cases and one of the differences."""
    model = sequence_model(["n", WIDTH], ["n", WIDTH], [("Tanh", {}, {})] * TASKS)
    fixed = np.zeros((4, WIDTH), np.float32)
    # Two sizes in turn: no node is ever found unchanged, and both tilings are known.
    turns = [np.zeros((n, WIDTH), np.float32) for n in (3, 4)]

    def compiled(**options: int) -> asc.Executable:
        return asc.compile(model, device="null", mode="host", threads=1, options=asc.Options(fuse=False, **options))

    def alternate(executable: asc.Executable) -> Callable[[], object]:
        return lambda: [executable(x) for x in turns][1]

    replayed, unchanged = compiled(), compiled(schedule_cache_bytes=0)
    shared, remade = compiled(schedule_cache_bytes=0), compiled(schedule_cache_bytes=0, tiling_cache_bytes=0)
    subjects = [
        Subject("launch", lambda: replayed(fixed), TASKS),
        Subject("memo hit and launch", lambda: unchanged(fixed), TASKS),
        Subject("new shape, tiling found", alternate(shared), 2 * TASKS),
        Subject("new shape, tiling made", alternate(remade), 2 * TASKS),
    ]
    table = compare(f"chain of {TASKS} tasks, null device", "task", subjects, np.zeros((4, WIDTH)), effort)
    yield table
    costs = Figures("of which", "task", [])
    costs.headings = ("ns a task, best", "median")
    best = {s.label: 1e3 * min(s.times_us) for s in subjects}
    middle = {s.label: 1e3 * s.median_us for s in subjects}
    for label, of, minus in (
        ("launch", "launch", None),
        ("memo hit", "memo hit and launch", "launch"),
        ("infer_shape, key, look-up, placing", "new shape, tiling found", "launch"),
        ("making an empty tiling", "new shape, tiling made", "new shape, tiling found"),
    ):
        costs.rows.append((label, [d[of] - (d[minus] if minus else 0.0) for d in (best, middle)]))
    yield costs


if __name__ == "__main__":
    sys.exit(main(__doc__, {"stages": measure}))
