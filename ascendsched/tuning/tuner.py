"""Tries settings on a model and the shapes that it is used with, and keeps those that make it faster."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np

from ascendsched.arrays import random_array
from ascendsched.errors import AscendSchedError, GraphError, PlanError
from ascendsched.executable import Executable, compile
from ascendsched.options import Options, default_threads
from ascendsched.profile.verdict import Verdict
from ascendsched.profile.whatif_text import format_us
from ascendsched.tuning.buckets import Buckets
from ascendsched.tuning.evidence import choice_of, evidence_of
from ascendsched.tuning.race import Feeds, Race, Timing, race
from ascendsched.tuning.settings import MODES, Settings
from ascendsched.tuning.shapes import Shapes, check_shapes, read_shapes

MIN_GAIN = 0.03  # of the time that a setting must save, beyond doubt, to be kept
MAX_FEEDS = 200  # shapes that are tried
MAX_FEED_BYTES = 1 << 30  # of all inputs together
TRIALS = 8  # among which the budget is divided
PROFILED_RUNS = 20
CACHE_FACTOR = 4  # by which a cache that overflows is enlarged

Show = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """One setting that was tried: its time over that of the settings before, and whether it is kept."""

    what: str
    ratio: float
    low: float
    high: float
    is_kept: bool

    def __str__(self) -> str:
        took = f"{self.ratio:.2f} of the time ({self.low:.2f} to {self.high:.2f})"
        return f"{'kept' if self.is_kept else 'not kept'}: {self.what}: {took}"


@dataclass(frozen=True)
class Tuning:
    """What `tune` found.

    Attributes
    ----------
    settings : Settings
        Mode, threads and options for `compile`; ``settings.save(path)`` writes them.
    before, after : Timing
        Latencies with the settings that were given and with those found, measured turn by turn; one object where
        these are the same.
    ratio, low, high : float
        Time after over time before, with its 95 % confidence interval; 1 where the settings stayed as they were.
    verdict : str
        What bounds the model with the settings that were given.
    trials : tuple of Trial
        What was tried, in order.
    choice : str
        The predicted cost of each way of scheduling, from the counters of the runs.
    """

    settings: Settings
    before: Timing
    after: Timing
    ratio: float
    low: float
    high: float
    verdict: str
    trials: tuple[Trial, ...]
    choice: str

    def text(self) -> str:
        """Verdict, trials, and before against after."""
        lines = [f"verdict: {self.verdict}", *map(str, self.trials), self.choice.rstrip()]
        if self.before is self.after:
            lines += [_line("as given", self.before), "nothing is better beyond doubt: the settings stay as they are"]
        else:
            lines += [_line("before", self.before), _line("after", self.after)]
            lines.append(f"after / before {self.ratio:.2f}, between {self.low:.2f} and {self.high:.2f} (95 %)")
        return "\n".join(lines) + "\n"


def _line(name: str, timing: Timing) -> str:
    p50, p99 = (format_us(1e3 * ms) for ms in (timing.p50_ms, timing.p99_ms))
    return f"{name:<9} p50 {p50:>10}   p99 {p99:>10}   {timing.runs} runs"


def tune(
    model: Any,
    shapes: str | os.PathLike[str] | Sequence[Mapping[str, Sequence[int]]],
    *,
    device: str = "cpu",
    threads: int | None = None,
    options: Options | None = None,
    buckets: Buckets | None = None,
    symbol: str | None = None,
    forbid: Collection[str] = (),
    budget_s: float = 30.0,
    progress: Show | None = None,
) -> Tuning:
    """Finds settings that make a model faster on the shapes that it is used with.

    Parameters
    ----------
    model, device, threads, options
        As for `compile`; `threads` is also the most that is tried.
    shapes
        A file, see `ascendsched.tuning.shapes.read_shapes`, or shapes by input name, one entry a run.
    buckets
        Buckets that may be used; without, nothing is padded.
    symbol
        The dimension that the lengths of a trace are for, where it is not clear.
    forbid
        Modes that are not to be chosen: "host", "sink", "auto".
    budget_s
        Seconds, about; compiling and one run of every shape come on top where they take longer.
    progress
        Told what is being done.

    Raises
    ------
    GraphError
        Where shapes do not fit the model, or it refuses the random inputs of all of them.
    """
    _check(forbid, budget_s)
    show = progress or (lambda message: None)
    base = Settings("auto", check_or_default(threads), options or Options())
    start = time.perf_counter()
    show("compiling")
    bench = _Bench(model, device, budget_s / TRIALS)
    first = bench.compile(base)
    if first.has_virtual_time:
        raise PlanError(f"[tune] runs on '{device}' take no time that could be compared; tune on the device itself")
    wanted = read_shapes(shapes, first.inputs, symbol) if isinstance(shapes, (str, os.PathLike)) else None
    if wanted is None:
        wanted = check_shapes(shapes, first.inputs)  # type: ignore[arg-type]  # no path
    bench.feeds = make_feeds(first, wanted, budget_s / TRIALS)
    show("profiling")
    verdict = _profile(first, bench.feeds)
    best = base
    trials: list[Trial] = []
    for what, candidate in _candidates(base, verdict.verdict, buckets, bench, forbid):
        if trials and time.perf_counter() - start > budget_s * (1 - 1 / TRIALS):
            break
        show(f"trying {what}")
        trial, settings = bench.attempt(what, best, candidate)
        best = settings
        trials.append(trial)
    if best.mode in forbid:
        best = replace(best, mode=next(mode for mode in MODES if mode not in forbid))
    show("comparing before and after")
    final = bench.race(base, best)
    if best == base:  # whatever differs between two equal ones is chance
        final = Race(final.first, final.first, 1.0, 1.0, 1.0)
    is_static = not first.plan.dynamic_reasons
    evidence = evidence_of(first.stats(), is_static, base.options.schedule_cache_bytes, base.threads or 1)
    about = {
        "verdict": verdict.sentence,
        "trials": list(map(str, trials)),
        "before": asdict(final.first),
        "after": asdict(final.second),
        "ratio": final.ratio,
    }
    settings = replace(best, about=about)
    choice = choice_of(evidence, base.mode).text()
    return Tuning(
        settings, final.first, final.second, final.ratio, final.low, final.high, verdict.sentence, tuple(trials), choice
    )


def _check(forbid: Collection[str], budget_s: float) -> None:
    if not isinstance(budget_s, (int, float)) or not 0 < budget_s < 1e6:
        raise PlanError(f"[tune] budget_s: {budget_s!r}; expected seconds above 0")
    if isinstance(forbid, str) or not set(forbid) < set(MODES):
        raise PlanError(f"[tune] forbid: {forbid!r}; expected one or two of {', '.join(MODES)}")


def check_or_default(threads: int | None) -> int:
    """The threads that are given, or those that `compile` would take."""
    from ascendsched.options import check_threads

    return default_threads() if threads is None else check_threads(threads)


class _Bench:
    """The model, its inputs, and how long a race may take."""

    def __init__(self, model: Any, device: str, budget_s: float) -> None:
        self._model, self._device, self._budget_s = model, device, budget_s
        self.feeds: list[Feeds] = []

    def compile(self, settings: Settings) -> Executable:
        """An executable that has not run."""
        return compile(self._model, self._device, settings.mode, settings.threads, settings.options)

    def race(self, first: Settings, second: Settings) -> Race:
        """Both from the start, on the same inputs, turn by turn."""
        return race(self.compile(first).run, self.compile(second).run, self.feeds, self._budget_s)

    def attempt(self, what: str, best: Settings, change: Callable[[Settings], Settings]) -> tuple[Trial, Settings]:
        """One setting on top of the best so far; kept where it saves time beyond doubt."""
        candidate = change(best)
        found = self.race(best, candidate)
        is_kept = found.ratio < 1 - MIN_GAIN and found.high < 1
        return Trial(what, found.ratio, found.low, found.high, is_kept), candidate if is_kept else best


def make_feeds(exe: Executable, shapes: Sequence[Shapes], budget_s: float) -> list[Feeds]:
    """Seeded random inputs of the shapes, evenly chosen where there are too many; those that the model refuses go.

    Each is run once; when the time is up, those made so far have to do.

    Raises
    ------
    GraphError, AscendSchedError
        What the model says to the first of them, where it refuses all.
    """
    random = np.random.default_rng(0)
    step = max(1, len(shapes) / MAX_FEEDS)
    feeds: list[Feeds] = []
    problem: AscendSchedError | None = None
    total = 0
    end = time.perf_counter() + budget_s
    for i in range(min(len(shapes), MAX_FEEDS)):
        shape = shapes[int(i * step)]
        elements = sum(int(np.prod(dims, dtype=np.float64)) for dims in shape.values())
        if total + elements * 8 > MAX_FEED_BYTES:
            problem = problem or GraphError(f"[tune] inputs of shapes {shape} take too much memory to try")
            continue
        feed = {info.name: random_array(random, info.dtype, shape[info.name]) for info in exe.inputs}
        try:
            exe.run(feed)
        except AscendSchedError as error:
            problem = problem or error
            continue
        total += elements * 8
        feeds.append(feed)
        if time.perf_counter() > end:
            break
    if not feeds:
        raise problem or GraphError("[tune] there are no shapes to tune for")
    return feeds


def _profile(exe: Executable, feeds: Sequence[Feeds]) -> Verdict:
    with exe.profile() as profile:
        for feed in islice(cycle(feeds), PROFILED_RUNS):
            exe.run_async(feed).wait()
    return profile.verdict


_Change = Callable[[Settings], Settings]


def _candidates(
    base: Settings, verdict: str, buckets: Buckets | None, bench: _Bench, forbid: Collection[str]
) -> Iterator[tuple[str, _Change]]:
    """What to try, the most promising first: threads where kernels decide, else the ways of scheduling."""
    if buckets is not None:  # somebody took the trouble to declare them
        yield "buckets", partial(_with_options, buckets=buckets)
    most = base.threads or 1
    threads = [(f"threads={n}", partial(replace, threads=n)) for n in sorted({1, most // 2} - {0, most})]
    if verdict == "device_bound":
        yield from threads
    for mode in ("sink", "host"):
        if mode not in forbid:
            yield f"mode={mode}", partial(replace, mode=mode)
    for name in ("schedule_cache_bytes", "tiling_cache_bytes"):
        if _overflows(bench, base, name):
            larger = getattr(base.options, name) * CACHE_FACTOR
            yield f"{name}={larger}", partial(_with_options, **{name: larger})
    if most > 1:
        yield "pipeline_workers=0", partial(_with_options, pipeline_workers=0)
    if verdict != "device_bound":
        yield from threads


def _with_options(settings: Settings, **changes: Any) -> Settings:
    return replace(settings, options=replace(settings.options, **changes))


def _overflows(bench: _Bench, settings: Settings, name: str) -> bool:
    """Whether the cache had to evict entries in one pass over the inputs."""
    exe = bench.compile(settings)
    for feed in bench.feeds:
        exe.run(feed)
    counter = "schedule_evictions" if name == "schedule_cache_bytes" else "tiling_evictions"
    return exe.stats()[counter] > 0
