"""What a comparison found: rows, cases, and the sentence that says whether to change the runtime."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ascendsched.bench.child import Cold
from ascendsched.bench.runtimes import PEER

KEEP = "keep onnxruntime here"
_TIE = 0.02  # differences below are the machine's, not the runtimes'


def format_ms(ms: float) -> str:
    """Milliseconds, of short times with digits enough to tell them apart."""
    return f"{ms:.3f}" if ms >= 0.1 or not ms > 0 else f"{ms:.5f}"


@dataclass
class Row:
    """One way to run the model.

    Attributes
    ----------
    runtime : str
        "onnxruntime", or a mode of ascendsched.
    is_bound : bool
        Whether inputs and results are bound once, instead of handed over in every run.
    max_error : float or None
        Against the reference; None for the reference itself.
    problem : str
        Why it was not timed; "": it was.
    """

    runtime: str
    is_bound: bool
    max_error: float | None = None
    problem: str = ""
    p50_ms: float = math.nan
    p99_ms: float = math.nan
    runs: int = 0
    cold: Cold | None = None

    @property
    def is_peer(self) -> bool:
        """Whether it is onnxruntime."""
        return self.runtime == PEER

    @property
    def label(self) -> str:
        """Its name in tables."""
        name = PEER if self.is_peer else f"ascendsched {self.runtime}"
        return name + (", bound" if self.is_bound else "")


@dataclass
class Case:
    """One set of input shapes.

    Attributes
    ----------
    shapes : str
        As in ``--shapes``.
    notes : list of str
        What was assumed or left out.
    """

    shapes: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def best(self, is_peer: bool) -> Row | None:
        """The fastest row with right results; None where there is none."""
        timed = [row for row in self.rows if row.is_peer == is_peer and not row.problem]
        return min(timed, key=lambda row: row.p50_ms, default=None)

    @property
    def ratio(self) -> float | None:
        """Our best median by onnxruntime's best; infinite where only onnxruntime works, None where it is not there."""
        ours, peer = self.best(False), self.best(True)
        if peer is None:
            return None
        return math.inf if ours is None else ours.p50_ms / peer.p50_ms

    @property
    def verdict(self) -> str:
        """One sentence."""
        ours, peer, ratio = self.best(False), self.best(True), self.ratio
        if ours is None:
            problem = next((row.problem for row in self.rows if not row.is_peer), "no mode was measured")
            return f"{KEEP}: {problem}" if peer else f"nothing runs it: {problem}"
        if peer is None or ratio is None:
            return f"nothing to compare {ours.label} with: {_peer_problem(self.rows)}"
        figures = f"{ours.label} {format_ms(ours.p50_ms)} ms, {peer.label} {format_ms(peer.p50_ms)} ms"
        if ratio > 1 + _TIE:
            return f"{KEEP}: it is {ratio:.2f} times as fast ({figures})"
        if ratio < 1 - _TIE:
            return f"ascendsched is {1 / ratio:.2f} times as fast ({figures})"
        return f"no difference that matters ({figures})"


@dataclass
class Bench:
    """All cases of a model, and the versions of what ran it."""

    model: str
    threads: int
    reference: str
    cases: list[Case]
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def is_wrong(self) -> bool:
        """Whether a way to run the model gave wrong results."""
        return any(row.problem and not row.is_peer for case in self.cases for row in case.rows)

    @property
    def verdict(self) -> str:
        """One sentence for the whole."""
        if len(self.cases) == 1:
            return self.cases[0].verdict
        ratios = [(case, case.ratio) for case in self.cases]
        known = [(case, ratio) for case, ratio in ratios if ratio is not None]
        if not known:
            return self.cases[0].verdict
        lost = [case.shapes for case, ratio in known if ratio > 1 + _TIE]
        won = sum(ratio < 1 - _TIE for _, ratio in known)
        if len(lost) == len(known):
            return f"{KEEP}: it is faster for all {len(known)} sets of shapes"
        finite = [ratio for _, ratio in known if math.isfinite(ratio)]
        mean = math.exp(-sum(map(math.log, finite)) / len(finite))
        text = f"ascendsched is faster for {won} of {len(known)} sets of shapes, {mean:.2f} times as fast on average"
        return f"{text}; {KEEP} for {' and '.join(lost)}" if lost else text


def _peer_problem(rows: list[Row]) -> str:
    return next(
        (row.problem for row in rows if row.is_peer), f"{PEER} is not installed; install it with pip install {PEER}"
    )
