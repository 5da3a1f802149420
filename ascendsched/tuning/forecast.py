"""Foresees the next signature by a vote of simple predictors, weighted by their success so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ascendsched.tuning.predictors import Predictor, Signature, all_predictors

MEMORY = 0.98  # what a success or failure counts for one observation later
RECENT = 0.9  # the same, for the confidence in the whole
SHARPNESS = 8  # weights are success rates to this power: many poor predictors do not outvote a good one


class Forecast:
    """An ensemble of predictors. Bounded in memory; not thread-safe.

    Attributes
    ----------
    observed, foreseen, right : int
        Signatures seen, those for which there was a prediction, and those that were predicted exactly.
    confidence : float
        The share of predictions that were right lately, from 0 to 1.
    next : tuple of int, optional
        What comes next.
    """

    def __init__(self, predictors: Sequence[Predictor] | None = None) -> None:
        self._predictors = list(predictors) if predictors is not None else all_predictors()
        self._rates = [0.5] * len(self._predictors)
        self._said: list[Signature | None] = [None] * len(self._predictors)
        self.next: Signature | None = None
        self.confidence = 0.0
        self.observed = self.foreseen = self.right = 0

    def observe(self, signature: Signature) -> Signature | None:
        """Judges what was foreseen by what came, and returns what comes next; None: no idea yet."""
        self.observed += 1
        self.foreseen += self.next is not None
        was_right = self.next == signature
        self.right += was_right
        if self.next is not None:
            self.confidence = RECENT * self.confidence + (1 - RECENT) * was_right
        for i, predictor in enumerate(self._predictors):
            if self._said[i] is not None:
                self._rates[i] = MEMORY * self._rates[i] + (1 - MEMORY) * (self._said[i] == signature)
            predictor.observe(signature)
            self._said[i] = predictor.predict()
        self.next = self._vote()
        return self.next

    def rates(self) -> dict[str, float]:
        """The recent success of each predictor, from 0 to 1."""
        return {predictor.name: rate for predictor, rate in zip(self._predictors, self._rates, strict=True)}

    def _vote(self) -> Signature | None:
        votes: dict[Signature, float] = defaultdict(float)
        for said, rate in zip(self._said, self._rates, strict=True):
            if said is not None:
                votes[said] += rate**SHARPNESS
        return max(votes, key=votes.__getitem__) if votes else None
