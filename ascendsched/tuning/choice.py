"""Which way of scheduling costs least: a pure function of what was measured."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

STAY_GAIN = 0.10  # of its cost that another way must save before a working one is left
MAX_TILING = 4.0  # times what loading takes that making the tilings of a new signature may take
HAND_OVER_NS = 3000.0  # between two stages of a pipeline, per batch of nodes

SINK = "sink"
HOST_SERIAL = "host, serial"
HOST_PIPELINED = "host, pipelined"
SHAPE_SINK = "sink per shape"
BUCKET_SINK = "sink per bucket"
SEGMENT_MIX = "mix per segment"
#: The ways, and the `mode` of `compile` that leads to each.
WAYS = {
    SINK: "sink",
    HOST_SERIAL: "host",
    HOST_PIPELINED: "host",
    SHAPE_SINK: "auto",
    BUCKET_SINK: "auto",
    SEGMENT_MIX: "auto",
}


@dataclass(frozen=True)
class Evidence:
    """What is known of a model and its runs; times in ns per run, None where nothing was measured.

    Attributes
    ----------
    is_static : bool
        Whether all shapes are known before the first run.
    segments : int
        Parts between sync points and control flow, each with schedules of its own.
    runs : int
        Runs seen, over which loading is spread.
    first_ns, repeat_ns : float, optional
        Node by node, with a signature that is new, and with one that came before. Kernels that execute on the caller's
        thread are in it.
    sunk_ns : float, optional
        From a loaded schedule.
    load_ns : float, optional
        To resolve and load one.
    device_ns : float, optional
        Kernels alone.
    new_share : float
        Of the runs, those with a signature that is new, from 0 to 1.
    schedules : int
        Different signatures among the runs.
    schedule_bytes : float
        Of one loaded schedule.
    budget_bytes : int
        Bound of the schedule cache.
    cpus : int
        CPUs that host stages may use; 1: no pipeline.
    is_inline : bool
        Whether runs execute on the caller's thread, where nothing overlaps.
    bucket_count : int
        Sizes of declared buckets; 0: none declared.
    bucket_padding : float
        Padded positions over given ones.
    """

    is_static: bool
    segments: int = 1
    runs: int = 0
    first_ns: float | None = None
    repeat_ns: float | None = None
    sunk_ns: float | None = None
    load_ns: float | None = None
    device_ns: float | None = None
    new_share: float = 0.0
    schedules: int = 1
    schedule_bytes: float = 0.0
    budget_bytes: int = 64 << 20
    cpus: int = 1
    is_inline: bool = True
    bucket_count: int = 0
    bucket_padding: float = 0.0


@dataclass(frozen=True)
class Alternative:
    """A way and what a run would cost in it; None: it cannot be had, or nothing is known."""

    way: str
    cost_ns: float | None
    why: str


@dataclass(frozen=True)
class Choice:
    """The chosen way, all alternatives from cheap to dear, and the reason."""

    way: str
    alternatives: tuple[Alternative, ...]
    reason: str

    @property
    def mode(self) -> str:
        """The `mode` of `compile` that leads to the way."""
        return WAYS[self.way]

    def text(self) -> str:
        """A table."""
        lines = [f"chosen: {self.way}: {self.reason}"]
        for a in self.alternatives:
            cost = "-" if a.cost_ns is None else f"{a.cost_ns / 1e3:,.1f} us"
            lines.append(f"  {'*' if a.way == self.way else ' '} {a.way:<16} {cost:>14}  {a.why}")
        return "\n".join(lines) + "\n"


def choose(evidence: Evidence, current: str | None = None, forbidden: Collection[str] = ()) -> Choice:
    """The way with the lowest predicted cost of a run.

    Parameters
    ----------
    evidence
        What is known. With nothing measured, static models sink, and dynamic ones begin node by node and sink the
        signatures that come back.
    current
        The way of now, which is left only for one that is cheaper by a tenth.
    forbidden
        Ways that are not to be chosen; node by node and serial is always possible.
    """
    found = [_forbid(a) if a.way in forbidden else a for a in _alternatives(evidence)]
    found.sort(key=lambda a: (a.cost_ns is None, a.cost_ns or 0.0))
    best = found[0]
    if best.cost_ns is None:
        way, reason = _unmeasured(evidence, forbidden)
        return Choice(way, tuple(found), reason)
    now = next((a for a in found if a.way == current), None)
    if now is not None and now.cost_ns is not None and now is not best:
        if best.cost_ns > now.cost_ns * (1 - STAY_GAIN):
            return Choice(
                now.way, tuple(found), f"{best.way} would save less than {STAY_GAIN:.0%}, too little to change"
            )
        return Choice(best.way, tuple(found), f"saves {1 - best.cost_ns / now.cost_ns:.0%} of {now.way}")
    return Choice(best.way, tuple(found), best.why)


def _forbid(alternative: Alternative) -> Alternative:
    return Alternative(alternative.way, None, "forbidden")


def _unmeasured(e: Evidence, forbidden: Collection[str]) -> tuple[str, str]:
    wanted = SINK if e.is_static else SEGMENT_MIX if e.segments > 1 else SHAPE_SINK
    why = "all shapes are static" if e.is_static else "nothing is measured yet: node by node at first, then by evidence"
    return (HOST_SERIAL, "what else there is was forbidden") if wanted in forbidden else (wanted, why)


def _alternatives(e: Evidence) -> list[Alternative]:
    return [_sink(e), _host_serial(e), _host_pipelined(e), _per_shape(e), _per_bucket(e), _per_segment(e)]


def _sunk(e: Evidence) -> float | None:
    """A run from a loaded schedule; unmeasured, what node by node costs: no gain is claimed without evidence."""
    known = (t for t in (e.sunk_ns, e.repeat_ns, e.first_ns) if t is not None)
    return next(known, None)


def _load(e: Evidence) -> float | None:
    return e.load_ns if e.load_ns is not None else e.first_ns


def _fit(e: Evidence) -> float:
    """The share of schedules that the budget holds."""
    needed = e.schedule_bytes * e.schedules
    return 1.0 if needed <= e.budget_bytes else e.budget_bytes / needed


def _host_ns(e: Evidence) -> float | None:
    repeat = e.repeat_ns if e.repeat_ns is not None else e.first_ns
    first = e.first_ns if e.first_ns is not None else e.repeat_ns
    return None if first is None or repeat is None else e.new_share * first + (1 - e.new_share) * repeat


def _sink(e: Evidence) -> Alternative:
    sunk, load = _sunk(e), _load(e)
    if sunk is None or load is None:
        return Alternative(SINK, None, "not measured yet")
    if e.is_static:
        return Alternative(SINK, sunk + load / max(1, e.runs), f"loaded once, spread over {e.runs} runs")
    dropped = (1 - e.new_share) * (1 - _fit(e))
    # Loads are measured where they came, in auto after a run node by node had made the tilings.
    known = e.first_ns is not None and e.repeat_ns is not None
    tilings = max(0.0, (e.first_ns or 0.0) - (e.repeat_ns or 0.0)) if known else 0.0
    tilings = min(tilings, MAX_TILING * load)  # new shapes may just be larger ones
    cost = sunk + e.new_share * (load + tilings) + dropped * load
    return Alternative(SINK, cost, f"every new signature is loaded at once: {e.new_share + dropped:.0%} of the runs")


def _host_serial(e: Evidence) -> Alternative:
    why = f"{e.new_share:.0%} of the runs resolve a new signature" if e.first_ns or e.repeat_ns else "not measured yet"
    return Alternative(HOST_SERIAL, _host_ns(e), why)


def _host_pipelined(e: Evidence) -> Alternative:
    if e.cpus < 2:
        return Alternative(HOST_PIPELINED, None, "needs a second CPU")
    if e.is_inline:
        return Alternative(HOST_PIPELINED, None, "runs on the caller's thread do not overlap")
    host = _host_ns(e)
    if host is None:
        return Alternative(HOST_PIPELINED, None, "not measured yet")
    # Three stages of which the longest is about half of the whole, and never faster than the device.
    cost = max(host / 2 + 2 * HAND_OVER_NS, e.device_ns or 0.0)
    return Alternative(HOST_PIPELINED, cost, "host stages overlap, with two hand-overs")


def _per_shape(e: Evidence) -> Alternative:
    if e.is_static:
        return Alternative(SHAPE_SINK, None, "there is one signature only")
    if e.segments > 1:
        return Alternative(SHAPE_SINK, None, "the plan has several segments")
    return Alternative(SHAPE_SINK, _shape_cost(e), f"{e.new_share:.0%} node by node, {_fit(e):.0%} of the rest fits")


def _shape_cost(e: Evidence) -> float | None:
    """New signatures run node by node; those that come back are loaded once, and kept while they fit."""
    sunk, load = _sunk(e), _load(e)
    host = e.first_ns if e.first_ns is not None else e.repeat_ns
    repeat = e.repeat_ns if e.repeat_ns is not None else host
    if sunk is None or load is None or host is None or repeat is None:
        return None
    back = 1 - e.new_share
    # Loading waits until runs node by node have cost as much, so that it is paid at most twice.
    loads = min(back, e.schedules / max(1, e.runs)) * 2 * load if back else 0.0
    return e.new_share * host + back * (_fit(e) * min(sunk, repeat) + (1 - _fit(e)) * repeat) + loads


def _per_bucket(e: Evidence) -> Alternative:
    if not e.bucket_count:
        return Alternative(BUCKET_SINK, None, "no buckets are declared; asc.Buckets says what may be padded")
    sunk, load = _sunk(e), _load(e)
    if sunk is None or load is None:
        return Alternative(BUCKET_SINK, None, "not measured yet")
    device = e.device_ns if e.device_ns is not None else sunk
    cost = sunk + device * e.bucket_padding + e.bucket_count * load / max(1, e.runs)
    return Alternative(BUCKET_SINK, cost, f"{e.bucket_count} schedules, {e.bucket_padding:.0%} padding")


def _per_segment(e: Evidence) -> Alternative:
    if e.is_static or e.segments < 2:
        return Alternative(SEGMENT_MIX, None, "the plan has one segment")
    return Alternative(SEGMENT_MIX, _shape_cost(e), f"{e.segments} segments, each sunk when its signature comes back")
