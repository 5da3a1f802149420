"""Pads the inputs of a run up to a bucket and cuts its results back."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched.arrays import normalize, numpy_dtype
from ascendsched.errors import GraphError, OutOfMemoryError, PlanError
from ascendsched.packed import STRING, is_kind
from ascendsched.tuning.buckets import Buckets
from ascendsched.tuning.learner import SizeLearner
from ascendsched.tuning.partition import size_for

if TYPE_CHECKING:
    from ascendsched.tensor_info import TensorInfo

Array = np.ndarray[Any, Any]
Value = Array | list[Array] | None  # tensors, sequences, optionals
Arrays = dict[str, Array]
HALF = ("float16", "bfloat16")
MAX_REFUSED = 8  # sizes given up; then none is padded any more


@dataclass(frozen=True)
class Padded:
    """Inputs of a padded run."""

    feeds: dict[str, Any]
    length: int
    size: int
    is_check: bool  # the run is to be repeated without padding


class Padding:
    """Buckets at work for one executable. Thread-safe."""

    def __init__(self, buckets: Buckets, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        self.buckets = buckets
        _check_names(buckets.axis, "axis", inputs, "input")
        _check_names(buckets.slice, "slice", outputs, "output")
        self._types = {info.name: info.dtype for info in inputs if info.name in buckets.axis}
        self._fill = {name: _fill_value(name, info_type, buckets) for name, info_type in self._types.items()}
        self._tolerances = {info.name: _tolerance(buckets, info.dtype) for info in outputs}
        self._learner = SizeLearner(buckets.max_count) if buckets.max_count else None
        self._lock = threading.Lock()
        self._padded: dict[int, int] = {}  # runs by size, since it passed a check; until then each is one
        self._refused: dict[int, str] = {}  # why a size is given up
        self._counts = dict.fromkeys(("bucket_runs", "exact_runs", "checks", "given_positions", "padded_positions"), 0)

    @property
    def sizes(self) -> list[int]:
        """The sizes of now, ascending, without those given up."""
        with self._lock:
            return [size for size in self._sizes() if self._is_on(size)]

    def _is_on(self, size: int) -> bool:
        return size not in self._refused and len(self._refused) < MAX_REFUSED

    def _sizes(self) -> Sequence[int]:
        return self.buckets.sizes if self._learner is None else self._learner.sizes

    def pad(self, feeds: Mapping[str, Any]) -> Padded | None:
        """The inputs of a padded run; None where the run is to be as given.

        Raises
        ------
        GraphError
            Where inputs that are padded have different lengths, or are no arrays of the model's types.
        """
        arrays = {name: normalize(name, self._types[name], feeds[name]) for name in self.buckets.axis if name in feeds}
        length = self._length(arrays)
        if length is None or len(arrays) < len(self.buckets.axis):
            return None  # the run itself complains
        with self._lock:
            if self._learner is not None:
                self._learner.observe(length)
            size = size_for(self._sizes(), length)
            fits = size is not None and self._is_on(size) and self._bytes(arrays, size) <= self.buckets.max_bytes
            self._counts["bucket_runs" if fits else "exact_runs"] += 1
            self._counts["given_positions"] += length
            if size is None or not fits:
                return None
            self._counts["padded_positions"] += size - length
            is_check = size > length and self._is_check(size)
        padded = {name: self._padded_array(name, array, size) for name, array in arrays.items()}
        return Padded({**feeds, **padded}, length, size, is_check)

    def _length(self, arrays: Arrays) -> int | None:
        lengths = {}
        for name, array in arrays.items():
            axis = self.buckets.axis[name]
            if axis >= array.ndim:
                return None  # another rank than the model's
            lengths[name] = array.shape[axis]
        if len(set(lengths.values())) > 1:
            raise GraphError(f"[buckets] padded inputs have the lengths {lengths}; pass the same length in all of them")
        length = next(iter(lengths.values()), 0)
        return length if length > 0 else None

    def _bytes(self, arrays: Arrays, size: int) -> int:
        return sum(a.nbytes // a.shape[self.buckets.axis[name]] * size for name, a in arrays.items())

    def _is_check(self, size: int) -> bool:
        """Whether a run is to be checked: all until one of the size has passed, also those that begin before it has."""
        every = self.buckets.check_every
        if not every:
            return False
        before = self._padded.get(size)
        if before is not None and before + 1 < every:
            self._padded[size] = before + 1
            return False
        self._counts["checks"] += 1
        return True

    def _pass(self, size: int) -> None:
        with self._lock:
            if size not in self._refused:
                self._padded[size] = 0
            if len(self._padded) > 4096:  # sizes that were learned and left long ago
                del self._padded[next(iter(self._padded))]

    def _padded_array(self, name: str, array: Array, size: int) -> Array:
        axis = self.buckets.axis[name]
        length = array.shape[axis]
        if length == size:
            return array
        shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
        try:
            padded = np.empty(shape, numpy_dtype(self._types[name]))
        except MemoryError as error:
            raise OutOfMemoryError(f"[buckets] input '{name}': {error}; lower max_bytes or sizes") from None
        before = (slice(None),) * axis
        padded[before + (slice(length),)] = array  # noqa: RUF005  # an index may not hold a star in Python 3.10
        padded[before + (slice(length, None),)] = self._fill[name]  # noqa: RUF005
        return padded

    def cut(self, results: Arrays, padded: Padded) -> Arrays:
        """The results of a padded run as those of the length that was given.

        Raises
        ------
        GraphError
            Where a result does not have the padded length where it is to be cut.
        """
        cut = dict(results)
        for name, axis in self.buckets.slice.items():
            array = results[name]
            if axis >= array.ndim or array.shape[axis] != padded.size:
                raise GraphError(
                    f"[buckets] result '{name}' has shape {array.shape}, in axis {axis} not {padded.size}; see slice"
                )
            if padded.length != padded.size:
                cut[name] = np.ascontiguousarray(array[(slice(None),) * axis + (slice(padded.length),)])
        return cut

    def compare(self, exact: Arrays, padded: Arrays, of: Padded) -> None:
        """Give the size up, with a warning, where the cut results of a padded run are not those without padding."""
        for name, wanted in exact.items():
            if difference := _difference(wanted, padded[name], self._tolerances[name]):
                return self.refuse(of.size, f"result '{name}' of length {of.length} {difference}")
        self._pass(of.size)
        return None

    def refuse(self, size: int, reason: str) -> None:
        """Give a size up, loudly; the others are checked again at their next run."""
        with self._lock:
            if size in self._refused:
                return
            self._refused[size] = reason
            self._padded.clear()
        text = f"[buckets] size {size} is switched off: {reason}; its runs are exact from now on, check pad and slice"
        warnings.warn(text, RuntimeWarning, stacklevel=4)

    def stats(self) -> dict[str, int]:
        """Counters since compilation."""
        with self._lock:
            learned = {} if self._learner is None else {"bucket_changes": self._learner.changes}
            off = {"buckets": len(self._sizes()), "buckets_off": len(self._refused)}
            return {**self._counts, **off, **learned}

    def explain(self) -> str:
        """The sizes, what they cost, and those given up with their reasons."""
        counts = self.stats()
        share = counts["padded_positions"] / max(1, counts["given_positions"])
        how = "given" if self._learner is None else f"learned, {counts['bucket_changes']} changes"
        lines = [
            f"buckets {', '.join(map(str, self.sizes)) or 'none yet'} ({how}): {counts['bucket_runs']} runs padded by "
            f"{share:.1%} in all, {counts['exact_runs']} not padded, {counts['checks']} checked"
        ]
        with self._lock:
            lines += [f"bucket {size} is off: {reason}" for size, reason in self._refused.items()]
        return "\n".join(lines) + "\n"


def _check_names(axes: Mapping[str, int], what: str, infos: Sequence[TensorInfo], kind: str) -> None:
    shapes = {info.name: info.shape for info in infos}
    kinds = {info.name: info.dtype for info in infos}
    for name, axis in axes.items():
        if name not in shapes:
            raise PlanError(f"[buckets] {what} names '{name}'; the model's {kind}s are {', '.join(shapes) or 'none'}")
        if is_kind(kinds[name]) and (kind == "input" or kinds[name] != STRING):
            what_for = "padded" if kind == "input" else "cut"
            raise PlanError(f"[buckets] {what}: {kind} '{name}' is a {kinds[name]}, which cannot be {what_for}")
        shape = shapes[name]
        if shape is not None and axis >= len(shape):
            raise PlanError(f"[buckets] {what}: axis {axis} of '{name}', which has shape {shape}; give one that it has")
        if kind == "input" and shape is not None and isinstance(shape[axis], int):
            raise PlanError(
                f"[buckets] axis {axis} of '{name}' is always {shape[axis]}; only lengths that vary are padded"
            )


def _fill_value(name: str, dtype: str, buckets: Buckets) -> Array:
    given: float | None = buckets.pad.get(name, 0)
    with np.errstate(all="ignore"):
        try:
            value = np.asarray(given).astype(numpy_dtype(dtype))
        except (OverflowError, ValueError):
            value = np.zeros((), numpy_dtype(dtype))
            given = None
    if value.dtype.kind in "biu" and (given is None or float(value) != given):
        raise PlanError(f"[buckets] pad: {buckets.pad[name]} for '{name}' is no {dtype}; give a value of its type")
    return value


def _tolerance(buckets: Buckets, dtype: str) -> float:
    if buckets.tolerance is not None:
        return buckets.tolerance
    return 1e-2 if dtype in HALF else 1e-4


def _difference(exact: Value, padded: Value, tolerance: float) -> str | None:
    """How two results differ; None where they do not."""
    if exact is None or padded is None:
        return None if exact is padded else "is there in one of the runs only"
    if isinstance(exact, list) or isinstance(padded, list):
        if not (isinstance(exact, list) and isinstance(padded, list) and len(exact) == len(padded)):
            return "has another number of elements with padding"
        found = (_difference(a, b, tolerance) for a, b in zip(exact, padded, strict=True))
        return next((difference for difference in found if difference), None)
    if exact.shape != padded.shape:
        return f"has shape {padded.shape} with padding, {exact.shape} without"
    if exact.dtype.kind in "biuOSUT":
        count = int(np.count_nonzero(exact != padded))
        return f"differs in {count} elements" if count else None
    a, b = exact.astype(np.float64), padded.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "differs in what is not finite"
    worst = float(np.abs(a[finite] - b[finite]).max(initial=0))
    limit = tolerance * float(np.abs(a[finite]).max(initial=0))
    return None if worst <= limit else f"differs by {worst:.2e}, limit {limit:.2e}"
