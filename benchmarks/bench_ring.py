"""What does handing an element from one thread to another cost? Ours beside Python's own queues."""

from __future__ import annotations

import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter_ns

from command import main
from harness import Effort, Figures, Table

from ascendsched.native import core


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table."""
    count = 200_000 if effort.is_quick else 2_000_000
    table = Figures("one thread to another", "element", [])
    table.headings = ("ns: min", "median", "max")
    for batch in (1, 32):
        _add(table, f"ring, popped by {batch}", lambda b=batch: core.measure_ring(1024, count, b), effort)
    _add(table, "queue.SimpleQueue", lambda: _python_queue(queue.SimpleQueue(), count // 20), effort)
    _add(table, "queue.Queue", lambda: _python_queue(queue.Queue(1024), count // 20), effort)
    table.notes.append("both sides spin and yield; every element is checked on arrival")
    yield table


def _add(table: Figures, label: str, run: Callable[[], float], effort: Effort) -> None:
    times = sorted(run() for _ in range(effort.samples))
    table.rows.append((label, [times[0], median(times), times[-1]]))


def _python_queue(q: queue.SimpleQueue[int] | queue.Queue[int], count: int) -> float:
    out: deque[int] = deque(maxlen=1)
    total = [0]

    def consume() -> None:
        for _ in range(count):
            out.append(q.get())
            total[0] += out[0]

    consumer = threading.Thread(target=consume)
    begin = perf_counter_ns()
    consumer.start()
    for i in range(count):
        q.put(i)
    consumer.join()
    if total[0] != count * (count - 1) // 2:
        raise RuntimeError("elements were lost")
    return (perf_counter_ns() - begin) / count


if __name__ == "__main__":
    sys.exit(main(__doc__, {"ring": measure}))
