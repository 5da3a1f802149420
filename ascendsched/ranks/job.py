"""A model that several ranks run together, step by step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

import ascendsched as asc
from ascendsched.errors import DeviceError
from ascendsched.ranks import operators
from ascendsched.ranks.agreement import MODES, Agreement, Choice
from ascendsched.ranks.group import Group

Array = np.ndarray[Any, Any]


class Job:
    """One rank's part of a model, in host and in sink mode, with the choice between them agreed one step ahead.

    Every rank passes a graph of the same structure: the plans are compared when the job is made, and a rank with
    another model ends it on all of them.

    Parameters
    ----------
    group : Group
        From `join`.
    graph : Graph
        With collectives from `ranks.all_reduce` and `all_gather`.
    """

    def __init__(self, group: Group, graph: asc.Graph, device: str = "cpu", threads: int | None = None) -> None:
        self.group = group
        self.executables = {mode: asc.compile(graph, device=device, mode=mode, threads=threads) for mode in MODES}
        self.agreement = Agreement(group)
        self.step = 0
        self.takes_step = any(info.name == operators.STEP for info in self.executables["host"].inputs)
        operators.use(group)
        self._check_peers()

    def run(self, feeds: Mapping[str, Any], following: Choice | None = None) -> dict[str, Array]:
        """Runs one step in the mode that was agreed on; the next one's is agreed on meanwhile.

        Parameters
        ----------
        feeds : mapping
            This rank's inputs.
        following : Choice, optional
            What this rank needs at the next step; as now where left out.

        Raises
        ------
        DeviceError, WaitTimeoutError
            Where another rank failed, within the group's deadline.
        """
        if self.group.failure is not None:
            raise self.group.failure
        choice = self.agreement.current
        self.step += 1
        self.group.advance(self.step)
        self.agreement.propose(following or choice)
        given = {**feeds, operators.STEP: np.array(self.step, np.int64)} if self.takes_step else dict(feeds)
        try:
            results = self.executables[choice.mode].run(given)
        except asc.AscendSchedError:
            if self.group.failure is not None:  # the core reports it as the operator's; its cause is the job's
                raise self.group.failure from None
            raise
        self.agreement.next()
        return results

    def _check_peers(self) -> None:
        """Raises on every rank where the plans differ."""
        text = self.executables["host"].plan.text()
        mine = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
        others = [found.tobytes() for found in self.group.all_gather(mine)]
        common = max(others, key=lambda found: (others.count(found), found == others[0]))
        strangers = [rank for rank, found in enumerate(others) if found != common]
        if strangers:
            self.group.failure = DeviceError(
                f"[ranks] ranks {strangers} of {self.group.size} have another model than the rest; "
                "start all with the same model, version and sharding"
            )
            raise self.group.failure
