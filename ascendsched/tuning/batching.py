"""Continuous batching, simulated: which (batch, context) the decode steps of a serving engine have, step by step."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ascendsched.tuning.requests import Request

MAX_BATCH = 256
STEP_S = 0.030


class DecodeStep(NamedTuple):
    """Shapes of a decode step: requests in the batch, and the longest context of one of them, in tokens."""

    batch: int
    context: int


def decode_steps(
    requests: Sequence[Request], max_batch: int = MAX_BATCH, step_s: float = STEP_S
) -> Iterator[DecodeStep]:
    """The decode steps that serve `requests`, sorted by arrival, each lasting `step_s`.

    Before every step, requests that have arrived join the batch in order while there is room; each then gets one token
    a step until its answer is complete. The first token of an answer comes from the prompt, so that one of n tokens
    takes n - 1 steps. Where nobody is in the batch, time goes on to the next arrival.
    """
    waiting = 0
    step = 0  # time is step * step_s
    batch = 0
    ends: list[tuple[int, int]] = []  # step after the last one, step in which the context would have been 0
    longest: list[tuple[int, int]] = []  # the latter first, for the longest context; entries may have ended
    while waiting < len(requests) or batch:
        if not batch:
            step = max(step, _step_at(requests[waiting].arrival_s, step_s))
        while waiting < len(requests) and batch < max_batch and requests[waiting].arrival_s <= step * step_s:
            request = requests[waiting]
            waiting += 1
            if request.answer < 2:
                continue
            end, origin = step + request.answer - 1, step - request.prompt
            heapq.heappush(ends, (end, origin))
            heapq.heappush(longest, (origin, end))
            batch += 1
        if batch:
            yield DecodeStep(batch, step - longest[0][0] + 1)
        step += 1
        while ends and ends[0][0] <= step:
            heapq.heappop(ends)
            batch -= 1
        while longest and longest[0][1] <= step:
            heapq.heappop(longest)


def _step_at(time_s: float, step_s: float) -> int:
    """The first step that does not begin before `time_s`."""
    step = int(time_s / step_s)
    while step * step_s < time_s:
        step += 1
    return step
