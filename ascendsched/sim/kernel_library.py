"""Kernel times predicted from kernels that were measured elsewhere.

A coarse model of time by work serves every kernel: a constant, and rates for products, other arithmetic and memory.
Measured kernels of the same operator and implementation that do about as much work then say by what factor it is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ascendsched.errors import AscendSchedError
from ascendsched.sim.work import PRODUCTS, elements, work_of
from ascendsched.tasks import Task

Floats = NDArray[np.float64]

NEIGHBOURS = 5
# One doubling of work between two kernels say as much as nothing about a third one.
REACH = 1.0


@dataclass(frozen=True)
class Measured:
    """A kernel that was measured."""

    task: Task
    ns: float


def non_negative_fit(matrix: Floats, target: Floats) -> Floats:
    """Least squares whose coefficients are not negative: columns that would be are left out, one after the other."""
    active = list(range(matrix.shape[1]))
    while active:
        found, *_ = np.linalg.lstsq(matrix[:, active], target, rcond=None)
        if (found >= 0).all():
            break
        active.pop(int(found.argmin()))
    coefficients = np.zeros(matrix.shape[1])
    if active:
        coefficients[active] = found
    return coefficients


class KernelLibrary:
    """Predicts kernels from measured ones.

    Parameters
    ----------
    measured : iterable of Measured
        At least as many as the coarse model has figures.

    Attributes
    ----------
    rates : array
        Of the coarse model in ns: constant, per operation of a product, per other operation, per byte.
    """

    def __init__(self, measured: Iterable[Measured]) -> None:
        kernels = [m for m in measured if m.ns > 0]
        if len(kernels) < 4:
            raise AscendSchedError(f"[simulate] {len(kernels)} measured kernels; a library needs 4 or more")
        features = np.array([_features(m.task) for m in kernels])
        times = np.array([m.ns for m in kernels])
        # Relative errors count, and kernels of any size alike.
        self.rates = non_negative_fit(features / times[:, None], np.ones(len(times)))
        factors = np.log(times / np.maximum(features @ self.rates, 1.0))
        places = np.array([_place(m.task) for m in kernels])
        self._entries: dict[object, tuple[Floats, Floats]] = {}
        keys = [_keys(m.task) for m in kernels]
        for level in range(len(keys[0])):
            for key in {row[level] for row in keys}:
                rows = [i for i, row in enumerate(keys) if row[level] == key]
                self._entries[(level, key)] = (places[rows], factors[rows])

    def ns(self, task: Task) -> float:
        """The predicted time of a kernel."""
        features = _features(task)
        coarse = max(float(features @ self.rates), 1.0)
        place = _place(task)
        for level, key in enumerate(_keys(task)):
            if (level, key) not in self._entries:
                continue
            places, factors = self._entries[(level, key)]
            distance = np.abs(places - place).max(axis=1)
            nearest = np.argsort(distance, kind="stable")[:NEIGHBOURS]
            weights = 1 / (0.05 + distance[nearest]) ** 2
            if level + 1 < len(_keys(task)) and distance[nearest[0]] > REACH * (level + 1):
                continue
            return float(coarse * np.exp(_weighted_median(factors[nearest], weights)))
        return coarse


def _weighted_median(values: Floats, weights: Floats) -> float:
    """Where half of the weight lies on either side, between values: one kernel that was disturbed changes little."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(weights.sum() / 2, reached, values[order]))


def _features(task: Task) -> Floats:
    work = work_of(task)
    return np.array([1.0, work.matrix, work.vector, work.bytes])


def _place(task: Task) -> Floats:
    """Where a kernel lies among others, in doublings: work, sizes of result and constants, length of its sums."""
    work, constants = work_of(task), sum(elements(i) for i in task.inputs if i is not None and i.is_constant)
    result = elements(task.outputs[0]) if task.outputs else 0
    sums = work.matrix / max(1, result)
    place: Floats = np.log2(np.array([work.matrix, work.vector, work.bytes, result, constants, sums]) + 1)
    return place


def _keys(task: Task) -> Sequence[object]:
    """What makes kernels alike, from the closest to the loosest."""
    ops = task.parts or (task.op,)
    main = next((op for op in ops if op in PRODUCTS), ops[0])
    kind = "MatMul" if main == "Gemm" else main
    # A fused kernel does most of its work in its product, which is a kernel of its own elsewhere.
    inner = task.implementation.removeprefix("fused (").rstrip(")").split(", ")
    implementation = next((name for name in inner if name != "vector"), inner[0])
    return ((task.op, task.parts, task.implementation), (kind, implementation), (kind,), ())
