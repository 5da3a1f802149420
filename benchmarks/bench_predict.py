"""How often is the exact next shape foreseen, beside the stride rule and the most that shapes alone can tell?

Decode steps (batch, longest context) of public traces (`sequences.traces`), served in several ways: requests that
arrive when they did, in continuous batching of at most 256, or 8, with steps of 30 ms, or of 1.5 ms; served one after
the other as fast as they go, with at most 1 to 256 in the batch; and each request by itself, its prompt a step too,
(tokens, context). A step in which a request comes or goes differs from the one before in a way that depends on when
somebody asks and how long the answer is: nobody who sees shapes alone can foresee it, except by chance.

How to read it: "stride rule" is how often the step before is repeated; "one more" how often the batch stays and the
context grows by one token: the steps before which no request came or went, and the limit; "right" is ours. All in
percent of the steps.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np
from command import main
from grid import Grid
from harness import Effort
from sequences import traces

from ascendsched.native import core
from ascendsched.tuning.batching import decode_steps
from ascendsched.tuning.requests import Request

BATCHES = (1, 8, 32, 64, 256)
FAST_STEP_S = 0.0015
Signature = tuple[int, ...]


def measure(effort: Effort) -> Iterator[Grid]:
    """Yields a table of decode steps, and one of other sequences."""
    limit = 5000 if effort.is_quick else 10**9
    decoding = Grid("decode steps", ["steps", "stride rule", "one more", "right", "us each"])
    others = Grid("other sequences", ["length", "stride rule", "right", "us each"])
    for name, requests in traces():
        for label, steps in _ways(requests):
            decoding.rows.append(_row(f"{name}, {label}", list(islice(steps, limit)), has_limit=True))
        prompts = [(request.prompt,) for request in requests[:limit]]
        others.rows.append(_row(f"prompts, {name}", prompts))
    others.rows.append(_row("alternating", [((1, 90), (8, 30))[i % 2] for i in range(1000)]))
    others.rows.append(_row("alternating, both growing", [((1, i), (8, 500 + i))[i % 2] for i in range(1000)]))
    others.rows.append(_row("period of 13", [(i * 7 % 13, i % 13) for i in range(1000)]))
    others.rows.append(_row("one length", [(4, 8)] * 1000))
    yield decoding
    yield others


def _ways(requests: list[Request]) -> Iterator[tuple[str, Iterator[Signature]]]:
    """Ways of serving the requests: a name, and the steps."""
    yield "as they come", decode_steps(requests)
    yield "as they come, batch 8", decode_steps(requests, 8)
    yield "as they come, fast steps", decode_steps(requests, step_s=FAST_STEP_S)
    saturated = [request._replace(arrival_s=0.0) for request in requests]
    for batch in BATCHES:
        yield f"saturated, batch {batch}", decode_steps(saturated, batch)
    yield "one by one, with prompts", _with_prompts(requests)


def _with_prompts(requests: list[Request]) -> Iterator[Signature]:
    """Of each request its prompt, then its decode steps: (tokens, context before them)."""
    for request in requests:
        yield request.prompt, 0
        for token in range(request.answer - 1):
            yield 1, request.prompt + token


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
