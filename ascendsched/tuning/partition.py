"""The best bucket sizes for a histogram of lengths: an optimal partition by dynamic programming."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence


def best_sizes(histogram: Mapping[int, int], max_count: int) -> list[int]:
    """At most `max_count` sizes, ascending, that pad the lengths of `histogram` least; the last is the largest length.

    Sizes are lengths of the histogram: a size between two lengths would pad more than the lower one. With lengths
    v_1 < v_2 < … and C_j the count of all up to v_j, the least padded total of the first j lengths in k buckets is
    P_k(j) = min over i < j of P_{k-1}(i) + v_j (C_j - C_i). For one j the candidates are lines in v_j with falling
    slopes -C_i, and v_j grows with j, so that each layer is one pass over their lower envelope: O(n k) in all.
    """
    lengths = sorted(length for length, count in histogram.items() if count > 0)
    if len(lengths) <= max_count:
        return lengths
    sums = [0]
    for length in lengths:
        sums.append(sums[-1] + histogram[length])
    padded: list[int | None] = [0] + [None] * len(lengths)
    choices: list[list[int]] = []
    for _ in range(max_count):
        padded, chosen = _add_bucket(lengths, sums, padded)
        choices.append(chosen)
    sizes, end = [], len(lengths)
    for chosen in reversed(choices):
        sizes.append(lengths[end - 1])
        end = chosen[end]
    return sizes[::-1]


def _add_bucket(
    lengths: Sequence[int], sums: Sequence[int], before: Sequence[int | None]
) -> tuple[list[int | None], list[int]]:
    """The least padded totals with one bucket more, and where that bucket begins."""
    padded: list[int | None] = [None] * len(before)
    chosen = [0] * len(before)
    envelope: list[tuple[int, int, int]] = []  # slope, intercept, index
    first = 0
    for j in range(1, len(before)):
        intercept = before[j - 1]
        if intercept is not None:
            line = (-sums[j - 1], intercept, j - 1)
            while len(envelope) - first >= 2 and _is_hidden(envelope[-2], envelope[-1], line):
                envelope.pop()
            envelope.append(line)
        if not envelope:
            continue
        x = lengths[j - 1]
        while first + 1 < len(envelope) and _at(envelope[first + 1], x) <= _at(envelope[first], x):
            first += 1
        padded[j] = _at(envelope[first], x) + x * sums[j]
        chosen[j] = envelope[first][2]
    return padded, chosen


def _at(line: tuple[int, int, int], x: int) -> int:
    return line[0] * x + line[1]


def _is_hidden(a: tuple[int, int, int], b: tuple[int, int, int], c: tuple[int, int, int]) -> bool:
    """Whether `b` is nowhere below both of its neighbours; slopes fall from `a` to `c`."""
    return (c[1] - a[1]) * (a[0] - b[0]) <= (b[1] - a[1]) * (a[0] - c[0])


def size_for(sizes: Sequence[int], length: int) -> int | None:
    """The smallest of the ascending `sizes` that holds `length`; None where none does."""
    i = bisect_left(sizes, length)
    return sizes[i] if i < len(sizes) else None


def padding_of(histogram: Mapping[int, int], sizes: Sequence[int]) -> float:
    """Padded positions over given ones; lengths beyond the last size are not padded."""
    given = sum(length * count for length, count in histogram.items())
    added = sum(((size_for(sizes, length) or length) - length) * count for length, count in histogram.items())
    return added / given if given else 0.0
