"""How far results are from a reference, and how far they may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Of the largest number in the reference, at least of 1. Integers are exact, but quantised ones may round the other way.
TOLERANCES = {"float64": 1e-3, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2, "int8": 1.0, "uint8": 1.0}


@dataclass(frozen=True)
class Difference:
    """The largest difference of any result from its reference.

    Attributes
    ----------
    max_error : float
        Absolute; infinite where shapes, names or types differ or one has a NaN or an infinity that the other lacks.
    where : str
        The result with the largest error in proportion to what it may have.
    is_wrong : bool
        Whether it is more than rounding explains.
    """

    max_error: float
    where: str
    is_wrong: bool


def compare(results: Mapping[str, NDArray[Any]], reference: Mapping[str, NDArray[Any]]) -> Difference:
    """The worst result."""
    worst, excess, where = 0.0, -1.0, ""
    for name, expected in reference.items():
        error, allowed = _error(results.get(name), expected)
        worst = max(worst, error)
        share = error / allowed if allowed else (np.inf if error else 0.0)
        if share > excess:
            excess, where = share, name
    return Difference(worst, where, excess > 1)


def _error(result: Any, expected: Any) -> tuple[float, float]:
    """The largest error, and the largest allowed one."""
    if expected is None or isinstance(expected, list):
        if type(result) is not type(expected) or len(result or []) != len(expected or []):
            return np.inf, 1.0
        pairs = [_error(*pair) for pair in zip(result or [], expected or [], strict=True)]
        return max(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else pair[0], default=(0.0, 0.0))
    if expected.dtype.kind in "OU":
        return 0.0 if np.array_equal(result, expected) else np.inf, 1.0
    if not isinstance(result, np.ndarray) or result.shape != expected.shape or result.dtype.name != expected.dtype.name:
        return np.inf, 1.0
    tolerance = TOLERANCES.get(expected.dtype.name, 0.0)
    if not expected.size:
        return 0.0, tolerance
    if expected.dtype.kind in "iu" and expected.dtype.itemsize == 8:  # float64 does not hold them all
        equal = bool(np.array_equal(result, expected))
        return 0.0 if equal else float(np.abs(result.astype(object) - expected.astype(object)).max()), tolerance
    a, b = result.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        errors = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    errors = np.where(np.isnan(errors), np.inf, errors)
    if expected.dtype.kind in "iub":
        return float(errors.max()), tolerance
    finite = np.abs(b[np.isfinite(b)])
    return float(errors.max()), tolerance * max(1.0, float(finite.max()) if finite.size else 1.0)
