"""What the back end compiled in this process, and what it left to torch."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

_MAX_REASONS = 1000

_lock = threading.Lock()
_counts: Counter[str] = Counter()
_fallbacks: Counter[str] = Counter()


def count(name: str, by: int = 1) -> None:
    """Adds to a counter."""
    with _lock:
        _counts[name] += by


def count_fallback(reason: str) -> None:
    """Counts a node that torch runs."""
    with _lock:
        known = reason in _fallbacks or len(_fallbacks) < _MAX_REASONS
        _fallbacks[reason if known else "other reasons"] += 1


def stats() -> dict[str, Any]:
    """Counters of this process.

    Returns
    -------
    dict
        ``graphs``: FX graphs that torch handed over; ``subgraphs``: what was compiled of them; ``nodes`` and
        ``fallback_nodes``: nodes that we run and that torch runs; ``fallbacks``: number of nodes by reason;
        ``updates``: results that go to arguments; ``updates_in_place``: those of them that are computed where the
        argument lies, without a copy.
    """
    with _lock:
        names = ("graphs", "subgraphs", "nodes", "fallback_nodes", "updates", "updates_in_place")
        return {name: _counts[name] for name in names} | {"fallbacks": dict(_fallbacks.most_common())}


def reset() -> None:
    """Sets all counters to zero."""
    with _lock:
        _counts.clear()
        _fallbacks.clear()
