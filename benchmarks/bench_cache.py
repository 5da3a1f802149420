"""What do the caches keep, and what does a look-up cost?

Hit ratios on prompt lengths of public traces (`traces.py`), exact and rounded up to 64 tokens, of the cache that
tilings and schedules use and of other policies at the same number of entries; then the time that tiling takes in a
decoder over the trace's prompts, with the tiling cache on and off, with primitives that are JIT-compiled and without.
And what the schedule caches keep more of where forecasts say what is coming: sequences with a period and without, and
decode steps (batch, context) of the traces.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np
import policies
from command import main
from harness import Effort, Figures, Table
from sequences import traces as request_traces
from traces import ceil_to, prompt_lengths

import ascendsched as asc
from ascendsched.demo.models import decoder
from ascendsched.native import core
from ascendsched.tuning.batching import decode_steps
from ascendsched.tuning.foresight import POLICY

ENTRIES = (16, 64, 256)
BOUND_ENTRIES = 64  # with as many, this cache is to be within 2 points of the best policy
VALUE_BYTES = 400
FORESEEN_ENTRIES = (8, 16, 64)
OFF = 2.0  # a confidence that no forecast has
LOOK_UPS = 8000


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table of hit ratios and one of tiling time."""
    traces = prompt_lengths()
    if not traces:
        yield Figures("hit ratio on traces", "look-up", [], notes=["no traces: set LLM_TRACES to their folder"])
        return
    yield _hit_ratios(traces)
    yield _foreseen(traces)
    yield _tiling_time(traces["azure code"] if "azure code" in traces else next(iter(traces.values())), effort)


def _hit_ratios(traces: dict[str, list[int]]) -> Table:
    table = Figures("hits, percent", "look-up", [])
    worst = -100.0
    table.headings = ("entries", "this cache", "LRU", "SIEVE", "S3-FIFO 1/10", "below the best", "ns a look-up")
    for name, lengths in traces.items():
        for label, keys in ((name, lengths), (f"{name}, ceil 64", ceil_to(lengths, 64))):
            for entries in ENTRIES:
                hits, ns = core.measure_cache(np.array(keys, np.uint64), entries, VALUE_BYTES)
                others = [policy(keys, entries) for policy in (policies.lru, policies.sieve, policies.s3_fifo)]
                percent = [100 * h / len(keys) for h in (hits, *others)]
                below = max(percent[1:]) - percent[0]
                table.rows.append((label, [entries, *percent, below, ns]))
                if entries == BOUND_ENTRIES:
                    worst = max(worst, below)
    table.notes.append(
        f"with {BOUND_ENTRIES} entries at most {worst:.1f} points below the best, on any trace; 2 may be"
    )
    return table


def _foreseen(prompts: dict[str, list[int]]) -> Table:
    table = Figures("hits, percent, without forecasts and with them", "look-up", [])
    table.headings = tuple(f"{entries} {which}" for entries in FORESEEN_ENTRIES for which in ("entries", "foreseen"))
    chance = random.Random(0)  # noqa: S311
    sets = [[[n] for n in range(12)], [[100 + n] for n in range(12)]]
    sequences: dict[str, list[list[int]]] = {f"period of {n}": [[i % n] for i in range(4000)] for n in (12, 100)}
    for times in (1, 2, 5):
        sequences[f"two sets of 12, {times} times in turn"] = (sets[0] * times + sets[1] * times) * (150 // times)
    sequences["two sets of 12, at random"] = [chance.choice(sets[i // 60 % 2]) for i in range(3600)]
    sequences["some come back, one grows"] = [[1, i] if i % 3 else [7, chance.randrange(6)] for i in range(3000)]
    sequences |= {f"prompts, {name}": [[n] for n in lengths[:LOOK_UPS]] for name, lengths in prompts.items()}
    for name, requests in request_traces():
        steps = list(islice((step for step, _ in decode_steps(requests)), LOOK_UPS))
        sequences[f"decode, {name}"] = [[batch, context] for batch, context in steps]
        sequences[f"decode, {name}, ceil 64"] = [[batch, -(-context // 64)] for batch, context in steps]
    for name, sequence in sequences.items():
        row = [
            100 * core.measure_retention(sequence, entries, confidence) / len(sequence)
            for entries in FORESEEN_ENTRIES
            for confidence in (OFF, POLICY.min_confidence)
        ]
        table.rows.append((name, row))
    return table


def _tiling_time(lengths: list[int], effort: Effort) -> Table:
    """Prompts of a sixteenth of the trace's lengths through a small decoder, each new to the nodes, as they come."""
    table = Figures("decoder over the trace's prompts", "prompt", [])
    table.headings = ("tiling, us a prompt", "tilings made", "tilings found")
    model = decoder()
    shapes = [1 + n // 16 for n in lengths[: 60 if effort.is_quick else 400]]
    past = [i.name for i in model.graph.input if i.name != "input_ids"]
    empty = np.zeros((1, 2, 0, 16), np.float32)
    for jit in (True, False):
        spent = []
        for cache_bytes in (0, 32 << 20):
            options = asc.Options(tiling_cache_bytes=cache_bytes, schedule_cache_bytes=0, onednn=jit)
            executable = asc.compile(model, mode="host", threads=1, options=options)
            with executable.profile(256 << 20) as profile:
                for n in shapes:
                    executable.run({"input_ids": np.ones((1, n), np.int64)} | dict.fromkeys(past, empty))
            stats = executable.stats()
            spent.append(profile.verdict.stages.get("tiling", 0) / 1e3 / len(shapes))
            label = f"{'with' if jit else 'without'} JIT, cache {'on' if cache_bytes else 'off'}"
            made = stats["tiling_misses"] + stats["tiling_bypasses"]
            table.rows.append((label, [spent[-1], made, stats["tiling_hits"]]))
        table.notes.append(
            f"{'with' if jit else 'without'} JIT: the cache saves {100 - 100 * spent[1] / spent[0]:.0f} %"
        )
    return table


if __name__ == "__main__":
    sys.exit(main(__doc__, {"cache": measure}))
