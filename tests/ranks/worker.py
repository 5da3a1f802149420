"""One rank of a test's job: runs the scenario named on its command line and prints one line of JSON."""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

import ascendsched as asc
from ascendsched import ranks
from ascendsched.ranks.agreement import Agreement, Choice
from ascendsched.ranks.decoder import build_shard, make_feeds, shard_feeds
from ascendsched.ranks.operators import step_input
from ascendsched.sim.decoder import DecoderSize, build

SIZE = DecoderSize(layers=2, width=32, heads=4, feed_forward=48, vocabulary=64)
STEPS = 5


def small(width: int = 4):
    g = asc.Graph("small")
    x, step = g.input("x", "float32", (width,)), step_input(g)
    total = ranks.all_reduce(g, g.op("Mul", x, x), step, name="total")
    g.output(ranks.all_gather(g, g.op("Add", total, x), step, name="all"), "y")
    return g


def feeds(rank: int, width: int = 4):
    return {"x": np.full(width, rank + 1, np.float32)}


def collectives(group):
    job, found = ranks.Job(group, small(), threads=1), []
    for mode in ("host", "sink", "host"):
        found.append(job.run(feeds(group.rank), Choice(mode))["y"].tolist())
    return {"y": found, "max": group.all_reduce(np.array([group.rank]), "max").tolist()}


def decoder(group):
    _, shapes = build(SIZE, 1, 1, 6)
    whole = make_feeds(SIZE, shapes, seed=7)
    graph, _ = build_shard(SIZE, 1, 1, 6, group.size)
    job = ranks.Job(group, graph, threads=1)
    mine = shard_feeds(whole, group.rank, group.size)
    found = [job.run(mine, Choice(mode)) for mode in ("sink", "host")]
    graph, _ = build_shard(SIZE, 1, 1, 6, 1)
    alone = asc.compile(graph, threads=1).run(whole)
    error = 0.0
    for results in found:
        for name, value in alone.items():
            heads = np.split(value, group.size, axis=1)[group.rank] if name != "next" else value
            error = max(error, float(np.abs(heads - results[name]).max()))
    return {"error": error, "next": [results["next"].tolist() for results in found], "alone": alone["next"].tolist()}


def agreement(group):
    agreed, seen = Agreement(group), []
    for step in range(STEPS):
        wants_host = step == 2 and group.rank == 1
        agreed.propose(Choice("host" if wants_host else "sink", 64 * (group.rank + step)))
        choice = agreed.next()
        seen.append([choice.mode, choice.bucket])
    return {"seen": seen}


def skew(group):
    job = ranks.Job(group, small(), threads=1)
    for _ in range(STEPS):
        if group.rank == 1:
            wait_until(time.monotonic() + 0.02)  # the fault: this rank is late
        job.run(feeds(group.rank))
    report = ranks.measure_skew(group)
    return {"late": report.late_rank, "share": report.late_share, "offsets": report.offsets_ns, "text": str(report)}


def wait_until(deadline: float) -> None:
    """The injected fault itself: a rank that really is late. Sleeps in small steps; nothing is timed by them."""
    while time.monotonic() < deadline:
        time.sleep(0.001)


def dies(group):
    job = ranks.Job(group, small(), threads=1)
    for step in range(STEPS):
        if group.rank == 1 and step == 2:
            os._exit(9)
        job.run(feeds(group.rank))


def hangs(group):
    job = ranks.Job(group, small(), threads=1)
    for step in range(STEPS):
        if group.rank == 1 and step == 2:
            wait_until(time.monotonic() + 3 * group.timeout_s)
        job.run(feeds(group.rank))


def stranger(group):
    width = 5 if group.rank == 1 else 4
    ranks.Job(group, small(width), threads=1)


def parts_ways(group):
    if group.rank == 1:
        group.start_min(np.zeros(3, np.int64))()
    group.all_reduce(np.zeros(3), name="here")


def nothing(group):
    return {}


SCENARIOS = {f.__name__: f for f in (collectives, decoder, agreement, skew, dies, hangs, stranger, parts_ways)}
SCENARIOS |= {"absent": nothing, "late": nothing}
SHIFT_NS = 5_000_000_000  # rank 1's clock runs ahead by this


def main() -> None:
    timeout_s = float(sys.argv[1])
    is_second = os.environ.get("RANK", os.environ.get("PMI_RANK")) == "1"
    shift = SHIFT_NS if is_second else 0
    if is_second and sys.argv[2:] == ["late"]:
        wait_until(time.monotonic() + 3 * timeout_s)
    try:
        group = ranks.join(timeout_s, clock=lambda: time.monotonic_ns() + shift)
        for name in sys.argv[2:]:
            group.arrivals.clear()
            result = SCENARIOS[name](group) or {}
            show({"scenario": name, "rank": group.rank, **result})
    except asc.AscendSchedError as error:
        show({"error_class": type(error).__name__, "message": str(error)})
        os._exit(3)  # a broken job: there is nothing to be torn down together
    group.close()


def show(result) -> None:
    os.write(1, json.dumps(result).encode() + b"\n")  # whole lines, where launchers share one pipe


main()
