"""What do the caches keep, and what does a look-up cost?

Hit ratios on prompt lengths of public traces (`traces.py`), exact and rounded up to 64 tokens, of the cache that tilings
and schedules use and of other policies at the same number of entries; then a decoder over the trace's shapes with the
tiling cache on and off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import perf_counter_ns

import numpy as np
import policies
from command import main
from harness import Effort, Figures, Table
from traces import ceil_to, prompt_lengths

import ascendsched as asc
from ascendsched.demo.models import prefill
from ascendsched.native import core

ENTRIES = (16, 64, 256)
VALUE_BYTES = 400


def measure(effort: Effort) -> Iterator[Table]:
    """Yields one table of hit ratios and one of tiling time."""
    traces = prompt_lengths()
    if not traces:
        yield Figures("hit ratio on traces", "look-up", [], notes=["no traces: set LLM_TRACES to their folder"])
        return
    yield _hit_ratios(traces)
    yield _tiling_time(traces["azure code"] if "azure code" in traces else next(iter(traces.values())), effort)


def _hit_ratios(traces: dict[str, list[int]]) -> Table:
    table = Figures("hits, percent", "look-up", [])
    table.headings = ("entries", "this cache", "LRU", "SIEVE", "S3-FIFO 1/10", "ns a look-up")
    for name, lengths in traces.items():
        for label, keys in ((name, lengths), (f"{name}, ceil 64", ceil_to(lengths, 64))):
            for entries in ENTRIES:
                hits, ns = core.measure_cache(np.array(keys, np.uint64), entries, VALUE_BYTES)
                others = [policy(keys, entries) for policy in (policies.lru, policies.sieve, policies.s3_fifo)]
                percent = [100 * h / len(keys) for h in (hits, *others)]
                table.rows.append((label, [entries, *percent, ns]))
    return table


def _tiling_time(lengths: list[int], effort: Effort) -> Table:
    """A prompt through a small decoder, host mode, each length as it comes: time per prompt without its kernels."""
    table = Figures("decoder on the trace's prompts, null device", "prompt", [])
    table.headings = ("us a prompt", "tilings made", "tilings found")
    model = prefill()
    count = 200 if effort.is_quick else 1000
    shapes = [max(1, n // 16) for n in lengths[:count]]
    for label, cache_bytes in (("tiling cache off", 0), ("tiling cache on", 32 << 20)):
        options = asc.Options(tiling_cache_bytes=cache_bytes, schedule_cache_bytes=0)
        executable = asc.compile(model, device="cpu", mode="host", threads=1, options=options)
        feeds = {n: {"input_ids": np.ones((1, n), np.int64)} for n in set(shapes)}
        with executable.profile(64 << 20) as profile:
            begin = perf_counter_ns()
            for n in shapes:
                executable.run(feeds[n])
            spent = perf_counter_ns() - begin
        stats = executable.stats()
        made = stats["tiling_misses"] + stats["tiling_bypasses"]
        table.rows.append((label, [spent / 1e3 / count, made, stats["tiling_hits"]]))
        tiling_us = profile.verdict.stages.get("tiling", 0) / 1e3 / count
        table.notes.append(f"{label}: tiling takes {tiling_us:,.1f} us a prompt")
    return table


if __name__ == "__main__":
    sys.exit(main(__doc__, {"cache": measure}))
