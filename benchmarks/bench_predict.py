"""How often is the exact next shape foreseen, beside the stride rule and the most that shapes alone can tell?

Decode steps (batch, longest context) of public traces (`sequences.traces`), served in several ways: requests that
arrive when they did, in continuous batching of at most 256 with steps of 30 ms; and served one after the other as fast
as they go, with at most 1 to 256 in the batch. A step in which a request comes or goes differs from the one before in
a way that depends on when somebody asks and how long the answer is: nobody who sees shapes alone can foresee it, except
by chance.

How to read it: "stride rule" is how often the step before is repeated; "no event" the share of steps before which no
request came or went, with one more token in each context: the limit; "right" is ours. All in percent of the steps.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
from command import main
from grid import Grid
from harness import Effort
from sequences import traces

from ascendsched.native import core
from ascendsched.tuning.batching import decode_steps
from ascendsched.tuning.requests import Request

BATCHES = (1, 8, 32, 64, 256)
Signature = tuple[int, ...]


def measure(effort: Effort) -> Iterator[Grid]:
    """Yields a table of decode steps, and one of other sequences."""
    limit = 5000 if effort.is_quick else 10**9
    decoding = Grid("decode steps", ["steps", "stride rule", "no event", "right", "us each"])
    others = Grid("other sequences", ["length", "stride rule", "right", "us each"])
    for name, requests in traces():
        for label, served, batch in _ways(requests):
            steps = [tuple(step) for step, _ in zip(decode_steps(served, batch), range(limit), strict=False)]
            decoding.rows.append(_row(f"{name}, {label}", steps, has_limit=True))
        prompts = [(request.prompt,) for request in requests[:limit]]
        others.rows.append(_row(f"prompts, {name}", prompts))
    others.rows.append(_row("alternating", [((1, 90), (8, 30))[i % 2] for i in range(1000)]))
    others.rows.append(_row("alternating, both growing", [((1, i), (8, 500 + i))[i % 2] for i in range(1000)]))
    others.rows.append(_row("period of 13", [(i * 7 % 13, i % 13) for i in range(1000)]))
    others.rows.append(_row("one length", [(4, 8)] * 1000))
    yield decoding
    yield others


def _ways(requests: list[Request]) -> Iterator[tuple[str, list[Request], int]]:
    """Ways of serving the requests: a name, the requests, the largest batch."""
    yield "as they come", requests, 256
    saturated = [request._replace(arrival_s=0.0) for request in requests]
    for batch in BATCHES:
        yield f"saturated, batch {batch}", saturated, batch


def _row(name: str, sequence: list[Signature], has_limit: bool = False) -> list[str]:
    forecast = core.Forecast()
    start = time.perf_counter()
    for signature in sequence:
        forecast.observe(signature)
    each_us = (time.perf_counter() - start) / len(sequence) * 1e6
    array = np.asarray(sequence)
    shares = [np.all(array[2:] == 2 * array[1:-1] - array[:-2], axis=1).sum() / len(sequence)]
    if has_limit:
        shares.append(np.all(array[1:] - array[:-1] == (0, 1), axis=1).sum() / len(sequence))
    shares.append(forecast.right / len(sequence))
    return [name, str(len(sequence)), *(f"{100 * share:.1f}" for share in shares), f"{each_us:.2f}"]


if __name__ == "__main__":
    sys.exit(main(__doc__, {"predict": measure}))
