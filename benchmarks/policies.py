"""Eviction policies in a few lines each, to be compared on traces: hits of a cache that holds `size` keys."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence


def lru(keys: Sequence[int], size: int) -> int:
    """Least recently used."""
    kept: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for key in keys:
        if key in kept:
            hits += 1
            kept.move_to_end(key)
            continue
        if len(kept) == size:
            kept.popitem(last=False)
        kept[key] = None
    return hits


def sieve(keys: Sequence[int], size: int) -> int:
    """SIEVE (NSDI'24): first in first out, but what was asked for again is passed over once by a moving hand."""
    order: list[int] = []
    asked: dict[int, bool] = {}
    hand = hits = 0
    for key in keys:
        if key in asked:
            hits += 1
            asked[key] = True
            continue
        while len(order) == size:
            hand %= len(order)
            if asked[order[hand]]:
                asked[order[hand]] = False
                hand += 1
            else:
                del asked[order.pop(hand)]
        order.append(key)
        asked[key] = False
    return hits


def s3_fifo(keys: Sequence[int], size: int) -> int:
    """S3-FIFO (SOSP'23) as published: a small queue of a tenth, a main queue, and a memory of dropped keys."""
    small: deque[int] = deque()
    main: deque[int] = deque()
    ghosts: OrderedDict[int, None] = OrderedDict()
    uses: dict[int, int] = {}
    hits = 0
    for key in keys:
        if key in uses:
            hits += 1
            uses[key] = min(3, uses[key] + 1)
            continue
        while len(uses) >= size:
            if len(small) >= max(1, size // 10) or not main:
                old = small.popleft()
                if uses[old] > 1:
                    main.append(old)
                    uses[old] = 0
                else:
                    del uses[old]
                    ghosts[old] = None
                    if len(ghosts) > size:
                        ghosts.popitem(last=False)
            else:
                old = main.popleft()
                if uses[old]:
                    uses[old] -= 1
                    main.append(old)
                else:
                    del uses[old]
        (main if key in ghosts else small).append(key)
        ghosts.pop(key, None)
        uses[key] = 0
    return hits
