"""How far apart ranks come to their collectives, on clocks that differ, and who is late."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ascendsched.errors import DeviceError
from ascendsched.ranks.group import Group

ROUNDS = 15


@dataclass(frozen=True)
class SkewReport:
    """What `measure_skew` found; the same on every rank.

    Attributes
    ----------
    collectives : int
        How many were compared.
    late_rank : int
        The rank that came last most often.
    late_share : float
        In which share of the collectives.
    median_ns, worst_ns : int
        From the first rank's arrival to the last one's.
    offsets_ns : tuple of int
        Each rank's clock minus rank 0's.
    uncertainty_ns : int
        Half of the fastest exchange: no difference below it means anything.
    """

    collectives: int
    late_rank: int
    late_share: float
    median_ns: int
    worst_ns: int
    offsets_ns: tuple[int, ...]
    uncertainty_ns: int

    def __str__(self) -> str:
        return (
            f"rank {self.late_rank} came last to {100 * self.late_share:.0f} % of {self.collectives} collectives; "
            f"ranks are {self.median_ns / 1e3:.1f} us apart at the median, {self.worst_ns / 1e3:.1f} us at worst "
            f"(clocks known to {self.uncertainty_ns / 1e3:.1f} us)"
        )


def clock_offset(group: Group, rounds: int = ROUNDS) -> tuple[int, int]:
    """This rank's clock minus rank 0's, and half of the fastest exchange, in ns.

    Cristian's method ("Probabilistic clock synchronization", Distributed Computing 3, 1989): of several exchanges, the
    fastest is the one that says most.
    """
    best = (1 << 62, 0)
    for peer in range(1, group.size):
        if group.rank not in {0, peer}:
            continue
        for _ in range(rounds):
            if group.rank == 0:
                group.exchange(peer, np.array([0], np.int64), is_first=False)  # arrives, then the answer leaves
                group.exchange(peer, np.array([group.clock()], np.int64), is_first=True)
                continue
            sent = group.clock()
            group.exchange(0, np.array([sent], np.int64), is_first=True)
            theirs = int(group.exchange(0, np.array([0], np.int64), is_first=False)[0])
            received = group.clock()
            best = min(best, (received - sent, (sent + received) // 2 - theirs))
    return (0, 0) if group.rank == 0 else (best[1], best[0] // 2)


def measure_skew(group: Group) -> SkewReport:
    """Compares when ranks came to the named collectives since they joined. All ranks call it, at the same point.

    Raises
    ------
    DeviceError
        Where there was none, or the ranks met in different ones.
    """
    arrivals = list(group.arrivals)
    offset, uncertainty = clock_offset(group)
    facts = group.all_gather(np.array([len(arrivals), offset, uncertainty], np.int64))
    counts = {int(fact[0]) for fact in facts}
    if len(counts) > 1 or 0 in counts:
        raise DeviceError(f"[ranks] ranks came to {sorted(counts)} collectives; measure where all have run equal steps")
    times = np.array([time for _, time in arrivals], np.int64)
    table = np.array(group.all_gather(times)) - np.array([[int(fact[1])] for fact in facts])
    last = Counter(table.argmax(axis=0).tolist())
    late, times_late = last.most_common(1)[0]
    spread = np.ptp(table, axis=0)
    return SkewReport(
        len(arrivals),
        int(late),
        times_late / len(arrivals),
        int(np.median(spread)),
        int(spread.max()),
        tuple(int(fact[1]) for fact in facts),
        max(int(fact[2]) for fact in facts),
    )
