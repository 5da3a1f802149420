"""Simple predictors of the next signature, a tuple of whole numbers; each is right for one kind of sequence."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from typing import Protocol

Signature = tuple[int, ...]

WINDOW = 256  # signatures, or steps between them, that a predictor remembers
MAX_CONTEXTS = 1024  # of one Markov table


class Predictor(Protocol):
    """Sees every signature once, in order; foresees the next one, or nothing."""

    @property
    def name(self) -> str:
        """How statistics call it."""
        ...

    def observe(self, signature: Signature) -> None:
        """The signature that came."""
        ...

    def predict(self) -> Signature | None:
        """The signature that comes next, by this predictor's rule."""
        ...


def step_between(before: Signature, after: Signature) -> Signature:
    """What was added in each dimension."""
    return tuple(b - a for a, b in zip(before, after, strict=True))


def step_from(signature: Signature, step: Signature) -> Signature | None:
    """Where a step leads; None below zero."""
    there = tuple(a + b for a, b in zip(signature, step, strict=True))
    return there if all(dim >= 0 for dim in there) else None


class Last:
    """What came last comes again."""

    name = "last"

    def __init__(self) -> None:
        self._last: Signature | None = None

    def observe(self, signature: Signature) -> None:
        self._last = signature

    def predict(self) -> Signature | None:
        return self._last


class Periodic:
    """What came one period ago comes again, once a whole period has been kept.

    The period is the distance to the last signature like the one that broke the period before.
    """

    name = "periodic"

    def __init__(self) -> None:
        self._seen: deque[Signature] = deque(maxlen=WINDOW)
        self._count = 0
        self._where: dict[Signature, int] = {}  # where a signature came last, in the order of last use
        self._period = 0
        self._kept = 0

    def observe(self, signature: Signature) -> None:
        before = self._where.pop(signature, None)
        if self._period and self._seen[-self._period] == signature:
            self._kept += 1
        else:
            distance = 0 if before is None else self._count - before
            self._period = distance if distance <= len(self._seen) else 0
            self._kept = 1
        self._where[signature] = self._count
        if len(self._where) > WINDOW:
            del self._where[next(iter(self._where))]
        self._seen.append(signature)
        self._count += 1

    def predict(self) -> Signature | None:
        return self._seen[-self._period] if self._period and self._kept >= self._period else None


class Frequent:
    """What came most often lately comes again."""

    name = "frequency"

    def __init__(self) -> None:
        self._seen: deque[Signature] = deque()
        self._counts: Counter[Signature] = Counter()
        self._best: Signature | None = None

    def observe(self, signature: Signature) -> None:
        self._seen.append(signature)
        self._counts[signature] += 1
        if len(self._seen) > WINDOW:
            old = self._seen.popleft()
            self._counts[old] -= 1
            if not self._counts[old]:
                del self._counts[old]
            if old == self._best:
                self._best = max(self._counts, key=self._counts.__getitem__)
        if self._best is None or self._counts[signature] > self._counts[self._best]:
            self._best = signature

    def predict(self) -> Signature | None:
        return self._best


class Markov:
    """What followed most often on the last `order` signatures follows again."""

    def __init__(self, order: int) -> None:
        self.name = f"markov {order}"
        self._recent: deque[Signature] = deque(maxlen=order)
        self._table: dict[Hashable, Counter[Signature]] = {}

    def observe(self, signature: Signature) -> None:
        if len(self._recent) == self._recent.maxlen:
            context = tuple(self._recent)
            followers = self._table.pop(context, None) or Counter()
            followers[signature] += 1
            if len(followers) > WINDOW:
                del followers[min(followers, key=followers.__getitem__)]
            self._table[context] = followers  # in the order of use
            if len(self._table) > MAX_CONTEXTS:
                del self._table[next(iter(self._table))]
        self._recent.append(signature)

    def predict(self) -> Signature | None:
        followers = self._table.get(tuple(self._recent))
        return max(followers, key=followers.__getitem__) if followers else None


class Steps:
    """Foresees the step to the next signature by another predictor: "last" makes it the stride rule."""

    def __init__(self, name: str, inner: Predictor) -> None:
        self.name = name
        self._inner = inner
        self._last: Signature | None = None

    def observe(self, signature: Signature) -> None:
        if self._last is not None and len(self._last) == len(signature):
            self._inner.observe(step_between(self._last, signature))
        self._last = signature

    def predict(self) -> Signature | None:
        step = self._inner.predict()
        if self._last is None or step is None or len(step) != len(self._last):
            return None
        return step_from(self._last, step)


def all_predictors() -> list[Predictor]:
    """One of each kind."""
    return [
        Last(),
        Steps("stride", Last()),
        Steps("usual step", Frequent()),
        Periodic(),
        Steps("periodic steps", Periodic()),
        Frequent(),
        Markov(1),
        Markov(2),
        Markov(3),
        Steps("markov 2 of steps", Markov(2)),
    ]
