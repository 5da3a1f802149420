"""Ranks choose mode and bucket together, one step ahead, so that they can never choose differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ascendsched.errors import PlanError
from ascendsched.ranks.group import Array, Group

MODES = ("host", "sink")  # by caution: one rank that needs the first makes it everybody's


@dataclass(frozen=True)
class Choice:
    """How a step runs: its mode, and the size to which dynamic axes are padded (0: none)."""

    mode: str = "host"
    bucket: int = 0


class Agreement:
    """Proposals for the next step are reduced while the present one runs.

    All ranks start with the same choice. Within step *n*, each calls `propose` with what it needs at step *n + 1*, runs
    its step, and calls `next`: the most cautious mode that any rank proposed, and the largest bucket.

    Examples
    --------
    >>> agreement = Agreement(group)
    >>> choice = agreement.current
    >>> agreement.propose(Choice("sink", 512))  # returns at once
    >>> run_step(choice)
    >>> choice = agreement.next()
    """

    def __init__(self, group: Group, first: Choice | None = None) -> None:
        self.group = group
        self.current = first or Choice()
        self._pending: Callable[[], Array] | None = None
        self._encode(self.current)  # refuses what is no choice

    @staticmethod
    def _encode(choice: Choice) -> Array:
        if choice.mode not in MODES or not 0 <= choice.bucket < 1 << 62:
            raise PlanError(f"[ranks] {choice} is no choice; use mode host or sink and a bucket of 0 or more")
        # One minimum serves both: the lower mode wins, and of negated buckets the larger one.
        return np.array([MODES.index(choice.mode), -choice.bucket], np.int64)

    def propose(self, choice: Choice) -> None:
        """Starts agreeing on the next step; once per step."""
        if self._pending is not None:
            raise PlanError("[ranks] proposed twice for one step; call next() in between")
        self._pending = self.group.start_min(self._encode(choice))

    def next(self) -> Choice:
        """Waits for the others' proposals, which came while the step ran, and returns the common choice."""
        if self._pending is None:
            raise PlanError("[ranks] nothing was proposed for the next step; call propose() first")
        mode, bucket = self._pending().tolist()
        self._pending = None
        self.current = Choice(MODES[mode], -bucket)
        return self.current
