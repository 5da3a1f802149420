"""The virtual clock: hosts resolve and launch, devices execute, ranks meet in collectives.

Every time is a whole number of nanoseconds, one per rank in an array, so that one rank and ten thousand run the same
code. No clock, thread or global random state is read: equal arguments give equal results, bit by bit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ascendsched.errors import AscendSchedError
from ascendsched.profile.spans import STAGES, Ints, Recording, Spans
from ascendsched.sim.cost_profile import CostProfile
from ascendsched.sim.workload import Workload

MEMORY_WORKER, LAUNCH_WORKER, FIRST_NORMAL_WORKER = 1, 2, 3
MAX_WORKERS = 14
MAX_RANKS = 100_000
DRAWS = 1 << 16  # how finely jitter is told apart
MAX_ENTRIES = 2_000_000_000  # tasks x ranks x steps
NO_STEP = -1


@dataclass(frozen=True)
class Mode:
    """How the host feeds the device.

    Attributes
    ----------
    name : str
        As the command line has it.
    is_sink : bool
        One submit per run, instead of one launch per task.
    has_cache : bool
        Tilings of shapes seen before are found, not made.
    workers : int
        Threads that make tilings, with one more each for memory and launches; 0: one thread does all.
    """

    name: str
    is_sink: bool = False
    has_cache: bool = True
    workers: int = 0


MODES = {
    "host-uncached": Mode("host-uncached", has_cache=False),
    "host": Mode("host"),
    "host-pipelined": Mode("host-pipelined", workers=1),
    "sink": Mode("sink", is_sink=True),
}


@dataclass(frozen=True)
class Simulation:
    """What a simulation found; times in ns, by (step, rank).

    Attributes
    ----------
    step_ns : array
        Length of each step.
    host_ns, device_ns : array
        Time in which the host's threads worked, waiting excluded, and in which the device did.
    recording : Recording or None
        Of rank 0, where asked for.
    """

    step_ns: Ints
    host_ns: Ints
    device_ns: Ints
    recording: Recording | None = field(default=None, repr=False)


def simulate(
    workload: Workload,
    profile: CostProfile,
    mode: Mode,
    *,
    steps: int = 3,
    ranks: int = 1,
    seed: int | None = None,
    records: bool = False,
) -> Simulation:
    """Runs a workload `steps` times on every rank; a step ends when its host knows that its device is done.

    Parameters
    ----------
    seed : int, optional
        Host stages vary by the profile's jitter; without it each takes its median.
    records : bool
        Keep the spans of rank 0.

    Raises
    ------
    AscendSchedError
        For a workload without tasks, or more work than a simulation is for.
    """
    if not len(workload):
        raise AscendSchedError("[simulate] the model has no tasks; give one that computes something")
    if not 1 <= ranks <= MAX_RANKS or not steps >= 1 or steps * ranks * len(workload) > MAX_ENTRIES:
        raise AscendSchedError(
            f"[simulate] {ranks} ranks x {steps} steps x {len(workload)} tasks; "
            f"give 1 to {MAX_RANKS} ranks and at most {MAX_ENTRIES} entries"
        )
    if not 0 <= mode.workers <= MAX_WORKERS:
        raise AscendSchedError(f"[simulate] {mode.workers} workers; give 0 to {MAX_WORKERS}")
    return _Engine(workload, profile, mode, ranks, seed, records).run(steps)


class _Engine:
    def __init__(
        self, workload: Workload, profile: CostProfile, mode: Mode, ranks: int, seed: int | None, records: bool
    ) -> None:
        self.workload, self.profile, self.mode, self.ranks = workload, profile, mode, ranks
        self.random = None if seed is None else np.random.Generator(np.random.Philox(seed))
        self.factors = np.interp((np.arange(DRAWS) + 0.5) / DRAWS, *np.array(profile.jitter).T)
        self.tables: dict[str, Ints] = {}
        self.rows: list[tuple[int, ...]] | None = [] if records else None
        workers = FIRST_NORMAL_WORKER + mode.workers
        self.clock = np.zeros((workers, ranks), np.int64)  # by worker: when it is free
        self.device = np.zeros(ranks, np.int64)  # when the stream is free
        self.host_ns = np.zeros(ranks, np.int64)
        self.device_ns = np.zeros(ranks, np.int64)
        self.step = self.sequence = 0
        self.depth = int(profile.costs["queue_depth"])
        self.queue: deque[Ints] = deque(maxlen=self.depth)  # when what the stream holds started

    def run(self, steps: int) -> Simulation:
        table: list[tuple[Ints, Ints, Ints]] = []
        for _ in range(steps):
            begin, host, device = self.clock[0].copy(), self.host_ns.copy(), self.device_ns.copy()
            self.step += 1
            self._work(0, "framework", self._cost("run_us"))
            if self.mode.is_sink:
                self._run_chain()
            else:
                self._run_tasks()
            self._finish()
            table.append((self.clock[0] - begin, self.host_ns - host, self.device_ns - device))
        columns = [np.array(column) for column in zip(*table, strict=True)]
        return Simulation(columns[0], columns[1], columns[2], self._recording())

    # --- the host ---------------------------------------------------------------------------------------------------

    def _cost(self, name: str) -> Ints:
        """The time of one host stage on each rank."""
        ns = self.profile.ns(name)
        if self.random is None or ns == 0:
            return np.full(self.ranks, ns, np.int64)
        if name not in self.tables:
            self.tables[name] = np.rint(ns * self.factors).astype(np.int64)
        taken: Ints = self.tables[name][self.random.integers(0, DRAWS, self.ranks, np.uint16)]
        return taken

    def _work(self, worker: int, stage: str, cost: Ints, node: int = NO_STEP) -> None:
        start = self.clock[worker]
        end = start + cost
        self.host_ns += cost
        self._record(start, end, stage, node, worker)
        self.clock[worker] = end

    def _run_tasks(self) -> None:
        begin = self.clock[0].copy()
        np.maximum(self.clock, begin, out=self.clock)
        is_bounded = len(self.workload) > self.depth
        self.queue.clear()  # the step before has ended
        for i in range(len(self.workload)):
            self.sequence += 1
            launcher = self._resolve(i) if not self.workload.is_collective[i] else self._hand_over(0, LAUNCH_WORKER)
            if i >= self.depth:
                self._await(launcher, self.queue[0], "queue_full")
            self._work(launcher, "launch", self._cost("launch_us"), i)
            started = self._execute(i, self.clock[launcher], "queued_gap_us")
            if is_bounded:
                self.queue.append(started)
        self.clock[0] = self.clock.max(axis=0)

    def _resolve(self, i: int) -> int:
        """The stages of a task before its launch; returns the worker that launches."""
        is_made = self.workload.needs_tiling[i] or not self.mode.has_cache
        self._work(0, "framework", self._cost("framework_us"), i)
        self._work(0, "infer_shape", self._cost("infer_shape_us"), i)
        worker = self._hand_over(0, FIRST_NORMAL_WORKER + i % max(1, self.mode.workers))
        self._work(worker, "tiling", self._cost("tiling_us" if is_made else "tiling_hit_us"), i)
        placer = self._hand_over(worker, MEMORY_WORKER)
        self._work(placer, "alloc", self._cost("alloc_us"), i)
        return self._hand_over(placer, LAUNCH_WORKER)

    def _hand_over(self, giver: int, taker: int) -> int:
        """The worker that goes on with a task; without a pipeline the same one."""
        if not self.mode.workers:
            return 0
        there = self.clock[giver] + self.profile.ns("handover_us")
        np.maximum(self.clock[taker], there, out=self.clock[taker])
        return taker

    def _run_chain(self) -> None:
        self.sequence += 1
        self._work(0, "submit", self._cost("submit_us"))
        for i in range(len(self.workload)):
            self._execute(i, self.clock[0], "chain_gap_us")

    def _finish(self) -> None:
        self._await(0, self.device, "wait")
        self._work(0, "sync", self._cost("sync_us"))

    def _await(self, worker: int, time: Ints, stage: str) -> None:
        start = self.clock[worker]
        end = np.maximum(start, time)
        if self.rows is not None and end[0] > start[0]:
            self._record(start, end, stage, NO_STEP, worker)
        self.clock[worker] = end

    # --- the device -------------------------------------------------------------------------------------------------

    def _execute(self, i: int, launched: Ints, gap: str) -> Ints:
        """Executes a task after what is queued; returns when it started."""
        queued = self.device + self.profile.ns(gap)
        start = np.where(launched <= self.device, queued, np.maximum(queued, launched + self.profile.ns("latency_us")))
        if self.workload.is_collective[i]:
            meeting = start.max()
            self._record(
                np.full(self.ranks, meeting), np.full(self.ranks, meeting + self.workload.kernel_ns[i]), "kernel", i, 0
            )
            self.device = np.full(self.ranks, meeting + self.workload.kernel_ns[i])
        else:
            self.device = start + self.workload.kernel_ns[i]
            self._record(start, self.device, "kernel", i, 0)
        self.device_ns += self.workload.kernel_ns[i]
        return start

    # --- records ----------------------------------------------------------------------------------------------------

    def _record(self, start: Ints, end: Ints, stage: str, node: int, worker: int) -> None:
        if self.rows is not None:
            number = STAGES.index(stage)
            self.rows.append((int(start[0]), int(end[0]), self.step, node, self.sequence, number, worker))

    def _recording(self) -> Recording | None:
        if self.rows is None:
            return None
        table = np.array(self.rows, np.int64)
        table = table[np.argsort(table[:, 0], kind="stable")]
        is_kernel = table[:, 5] == STAGES.index("kernel")
        host, device = (Spans(*(column.copy() for column in part.T)) for part in (table[~is_kernel], table[is_kernel]))
        return Recording(host, device, self.workload.nodes, f"simulated {self.profile.name}")
