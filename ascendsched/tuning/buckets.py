"""What users declare of buckets: which axes may be padded, with what, and where results are cut."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ascendsched.errors import PlanError

MAX_COUNT = 1024
MAX_SIZE = 1 << 40


@dataclass(frozen=True)
class Buckets:
    """Lengths that vary are padded up to a few sizes, so that few schedules serve them all.

    Whether padding changes what is cut from the results is for the model to say: sampled runs are repeated without
    padding, and a size whose results differ is given up, with a warning.

    Parameters
    ----------
    axis
        The axis of each input that is padded; these inputs have the same length there.
    sizes
        The lengths to pad to. A length above all of them runs as it is.
    max_count
        Instead of `sizes`: learn at most so many from the lengths that come.
    pad
        The value that each input is padded with; default 0.
    slice
        The axis of each result that is cut back to the length that was given.
    max_bytes
        Bound of the padded copies of one run; a run that needs more is not padded.
    check_every
        Of the padded runs of each size, the first and then one in so many also runs without padding, and its results
        are compared and returned. 0: never.
    tolerance
        Largest difference, relative to the largest result, that is rounding; default: 1e-4, or 1e-2 for half precision.
        Whole numbers are compared exactly.
    """

    axis: Mapping[str, int]
    sizes: Sequence[int] = ()
    max_count: int | None = None
    pad: Mapping[str, float] = field(default_factory=dict)
    slice: Mapping[str, int] = field(default_factory=dict)
    max_bytes: int = 256 << 20
    check_every: int = 256
    tolerance: float | None = None

    def __post_init__(self) -> None:
        _check_axes("axis", self.axis)
        _check_axes("slice", self.slice)
        if not self.axis:
            raise PlanError("[buckets] axis names no input; give one such as {'input_ids': 1}")
        if not isinstance(self.pad, Mapping) or not all(_is_number(value) for value in self.pad.values()):
            raise PlanError(f"[buckets] pad: {self.pad!r}; expected numbers by name such as {{'input_ids': 0}}")
        if unknown := sorted(set(map(str, self.pad)) - set(self.axis)):
            raise PlanError(f"[buckets] pad names {unknown}, of which axis says nothing; name their axes too")
        object.__setattr__(self, "sizes", _checked_sizes(self.sizes))
        if bool(self.sizes) == (self.max_count is not None):
            raise PlanError("[buckets] give either sizes or max_count")
        if self.max_count is not None and not (_is_whole(self.max_count) and 1 <= self.max_count <= MAX_COUNT):
            raise PlanError(f"[buckets] max_count: {self.max_count!r}; expected 1 to {MAX_COUNT}")
        for name in ("max_bytes", "check_every"):
            if not _is_whole(getattr(self, name)) or not 0 <= getattr(self, name) < 1 << 63:
                raise PlanError(f"[buckets] {name}: {getattr(self, name)!r}; expected 0 or more")
        if self.tolerance is not None and not (_is_number(self.tolerance) and 0 <= self.tolerance < math.inf):
            raise PlanError(f"[buckets] tolerance: {self.tolerance!r}; expected 0 or more")
        for name in ("axis", "pad", "slice"):  # the caller's dictionaries may change later
            object.__setattr__(self, name, dict(getattr(self, name)))


def _checked_sizes(sizes: object) -> tuple[int, ...]:
    given = tuple(sizes) if isinstance(sizes, Sequence) and not isinstance(sizes, str) else (None,)
    if len(given) > MAX_COUNT or not all(_is_whole(size) and 1 <= size <= MAX_SIZE for size in given):
        raise PlanError(f"[buckets] sizes: {str(sizes)[:80]}; expected up to {MAX_COUNT} whole numbers above 0")
    return tuple(sorted(set(given)))


def _check_axes(what: str, axes: object) -> None:
    if isinstance(axes, Mapping) and all(isinstance(k, str) and _is_whole(v) for k, v in axes.items()):
        if all(0 <= value < 8 for value in axes.values()):
            return
        raise PlanError(f"[buckets] {what}: {dict(axes)}; axes are 0 to 7")
    raise PlanError(f"[buckets] {what}: {str(axes)[:80]}; expected axes by name such as {{'input_ids': 1}}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
