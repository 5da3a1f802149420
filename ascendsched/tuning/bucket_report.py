"""What buckets would do for the prompts of a trace: offline with hindsight, learned online, and powers of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ascendsched.tuning.learner import SizeLearner
from ascendsched.tuning.partition import best_sizes, padding_of, size_for


@dataclass(frozen=True)
class BucketRow:
    """One way to choose sizes.

    Attributes
    ----------
    sizes : list of int
        At the end of the trace.
    padding : float
        Padded positions over given ones.
    shapes : int
        Different lengths that ran, each a schedule to resolve.
    changes : int
        How often the sizes changed.
    """

    name: str
    sizes: list[int]
    padding: float
    shapes: int
    changes: int = 0


def compare_buckets(lengths: Sequence[int], max_count: int) -> list[BucketRow]:
    """The best sizes for `lengths` with hindsight, those learned while they come, powers of two, and no padding."""
    histogram = Counter(lengths)
    best = best_sizes(histogram, max_count)
    powers = sorted({1 << (length - 1).bit_length() for length in histogram})
    return [
        BucketRow("offline, optimal", best, padding_of(histogram, best), len(best)),
        _learned(lengths, max_count),
        BucketRow("powers of two", powers, padding_of(histogram, powers), len(powers)),
        BucketRow("none", [], 0.0, len(histogram)),
    ]


def _learned(lengths: Sequence[int], max_count: int) -> BucketRow:
    """Each length is counted first and then padded, as an executable does it."""
    learner, used, added = SizeLearner(max_count), set(), 0
    for length in lengths:
        learner.observe(length)
        size = size_for(learner.sizes, length) or length
        used.add(size)
        added += size - length
    return BucketRow("online, learned", learner.sizes, added / sum(lengths), len(used), learner.changes)
