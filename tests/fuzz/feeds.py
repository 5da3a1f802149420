"""Feeds for executables: ones that fit, and mutations that mostly do not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from ascendsched.packed import STRING, inner, is_kind, is_optional, is_sequence
from ascendsched.tensor_info import TensorInfo

WORDS = ["a", "b", "", "ab ba", "é", "1.5", "-7", "nan", "\x00", "a" * 99]
HUGE = [2**31, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**40)]


def numpy_type(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def fitting(r: random.Random, inputs: list[TensorInfo], is_wild: bool = False) -> dict[str, np.ndarray]:
    """Arrays of the declared types and shapes; equal symbols have equal values. Wild ones hold odd values."""
    symbols: dict[str | None, int] = {}
    feeds: dict[str, Any] = {}
    for info in inputs:
        if is_kind(info.dtype):
            feeds[info.name] = _packed(r, info.dtype, is_wild)
            continue
        shape = info.shape if info.shape is not None else tuple([None] * r.choice([0, 1, 2, 3]))
        dims = []
        for d in shape:
            if isinstance(d, int):
                dims.append(d if d < 4096 else 2)
            elif d is None:
                dims.append(r.choice([0, 1, 2, 3, 4] if is_wild else [1, 2, 3]))
            else:
                dims.append(symbols.setdefault(d, r.choice([0, 1, 2, 3, 5, 40] if is_wild else [1, 2, 3, 3, 17])))
        if np.prod(dims, dtype=float) > 1e6:
            dims = [min(d, 2) for d in dims]
        feeds[info.name] = _values(r, numpy_type(info.dtype), dims, is_wild)
    return feeds


def _packed(r: random.Random, kind: str, is_wild: bool) -> Any:
    """A value of a kind: text, a list of arrays, or None."""
    if kind == STRING:
        dims = [r.choice([0, 1, 2, 3] if is_wild else [2, 3]) for _ in range(r.choice([0, 1, 2, 2, 3]))]
        texts = np.empty(int(np.prod(dims)), object)
        texts[:] = [r.choice(WORDS) for _ in texts]
        return texts.reshape(dims)
    if is_optional(kind):
        return None if r.random() < 0.4 else _packed(r, inner(kind), is_wild)
    if is_sequence(kind):
        return [_packed(r, inner(kind), is_wild) for _ in range(r.choice([0, 1, 3] if is_wild else [1, 2, 4]))]
    return _values(r, numpy_type(kind), [r.choice([0, 1, 2]) for _ in range(r.choice([0, 1, 2]))], is_wild)


def _values(r: random.Random, dtype: np.dtype[Any], dims: list[int], is_wild: bool) -> np.ndarray:
    rng = np.random.default_rng(r.randrange(2**32))
    if dtype.kind == "b":
        return rng.integers(0, 2, dims).astype(bool)
    if dtype.kind in "iu":
        array = rng.integers(0 if dtype.kind == "u" else -1, 4, dims).astype(dtype)
        special = [v for v in HUGE if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max] + [100, 0]
    else:
        array = rng.standard_normal(dims).astype(dtype)
        special = [np.nan, np.inf, -np.inf, 3e38, 1e-40, -0.0]
    array = np.asarray(array)
    if is_wild and array.size:
        for _ in range(r.choice([0, 1, 3])):
            with np.errstate(all="ignore"):
                array.flat[r.randrange(array.size)] = r.choice(special)
    return array


class Subclass(np.ndarray):
    """An ndarray that is not exactly one."""


class DlpackLiar:
    """Claims to be on another device, or fails on export."""

    def __init__(self, array: np.ndarray, device: Any, error: Exception | None) -> None:
        self.array, self.device, self.error = array, device, error

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__(**kwargs)


class ArrayLiar:
    """Its __array__ returns or raises something odd."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Overriding:
    """Attributes that raise when looked at."""

    @property
    def dtype(self) -> Any:
        raise RuntimeError("no dtype today")

    def __len__(self) -> int:
        return -1  # noqa: PLE0303

    def __getitem__(self, index: Any) -> Any:
        raise KeyError(index)


def _swapped(a: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "V":
        raise TypeError("types beside NumPy's own have one order of bytes")
    return a.astype(a.dtype.newbyteorder())


def _exported(a: np.ndarray) -> Any:
    a.__dlpack__()  # NumPy does not export every type
    return DlpackLiar(a, (1, 0), None)


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def _misaligned(a: np.ndarray) -> np.ndarray:
    raw = np.zeros(a.nbytes + 1, np.uint8)
    b = np.ndarray(a.shape, a.dtype, raw[1:].data) if a.size else a.copy()
    b[...] = a
    return b


def _strided(a: np.ndarray) -> np.ndarray:
    return np.stack([a, a], axis=-1)[..., 0]


def _masked(a: np.ndarray) -> np.ndarray:
    return np.ma.masked_array(a, mask=np.zeros(a.shape, bool))


# Same values in another layout or class: NumPy users expect these to work.
SAME: list[Callable[[np.ndarray], Any]] = [
    lambda a: np.asarray(a, order="F"), _strided, _swapped, _read_only, _misaligned, lambda a: a.view(Subclass),
    _masked,
    lambda a: a[::-1].copy()[::-1] if a.ndim else a, _exported, ArrayLiar,
    lambda a: a.copy(),
]  # fmt: skip

# Anything may come of these but a crash, a hang or an error of another class.
OTHER: list[Callable[[np.ndarray], Any]] = [
    lambda a: None, lambda a: "text", lambda a: b"bytes", lambda a: object(), lambda a: {}, lambda a: {1: a},
    lambda a: [], lambda a: [[1], [1, 2]], lambda a: [None], lambda a: 10**400, lambda a: float("nan"),
    lambda a: 1 + 2j,
    lambda a: a.astype(object), lambda a: a.astype("S3"), lambda a: a.astype("U3"), lambda a: np.array("x", object),
    lambda a: np.zeros(a.shape, "M8[s]"), lambda a: np.zeros(a.shape, [("a", "f4"), ("b", "i8")]),
    lambda a: np.zeros(a.shape, np.complex64), lambda a: np.zeros(a.shape, np.longdouble),
    lambda a: a.astype(np.float64), lambda a: a.astype(np.int8), lambda a: a.astype(np.uint16), lambda a: a > 0,
    lambda a: a[None], lambda a: a[..., None], lambda a: a.reshape(-1), lambda a: a.sum(), lambda a: a[..., :0],
    lambda a: np.zeros((1,) * 9, a.dtype), lambda a: np.zeros((1,) * 32, a.dtype),
    lambda a: np.broadcast_to(np.zeros(1, a.dtype), (2**40,)),
    lambda a: np.broadcast_to(a.dtype.type(1), (2**20, 2**20)),
    lambda a: np.zeros((0, 2**62), a.dtype), lambda a: np.zeros((2**31, 0, 2**31), a.dtype),
    lambda a: DlpackLiar(a, (2, 0), None), lambda a: DlpackLiar(a, None, None), lambda a: DlpackLiar(a, ("x", 0), None),
    lambda a: DlpackLiar(a, (), None), lambda a: DlpackLiar(a, (1, 0), BufferError("no")),
    lambda a: DlpackLiar(a, (1, 0), OSError("odd")), lambda a: DlpackLiar(a, (1, 0), KeyError("odd")),
    lambda a: DlpackLiar(a, (1 << 70, 0), None), lambda a: ArrayLiar(RuntimeError("no")), lambda a: ArrayLiar("text"),
    lambda a: ArrayLiar(None), lambda a: Overriding(), lambda a: type, lambda a: iter([1]), lambda a: a.tolist(),
    memoryview, lambda a: np.ma.masked_array(a, mask=np.ones(a.shape, bool)), lambda a: np.recarray((2,), "f4"),
    lambda a: np.nan * a.astype(float), lambda a: np.array([]), lambda a: np.str_("1"), lambda a: np.float32(1),
    lambda a: True, lambda a: -1, lambda a: range(3), lambda a: np.full(a.shape, np.inf).astype(a.dtype, copy=False)
    if a.dtype.kind == "f" else a[:0] if a.ndim else a,
]  # fmt: skip


def mutated(r: random.Random, feeds: dict[str, np.ndarray]) -> tuple[dict[Any, Any], bool]:
    """Feeds with changes, and whether they still hold the same values."""
    changed: dict[Any, Any] = dict(feeds)
    names = list(feeds)
    kind = r.random()
    if kind < 0.1 or not names:
        what = r.randrange(4)
        if what == 0 and names:
            del changed[r.choice(names)]
        elif what == 1:
            changed[r.choice(["surplus", "", "\x00", "\ud800", 1, None, (1, 2), b"x"])] = np.zeros(2)
        elif what == 2 and names:
            changed[1] = changed.pop(r.choice(names))
        else:
            changed = {}
        return changed, False
    is_same = kind < 0.35
    for name in r.sample(names, k=r.randrange(1, len(names) + 1)):
        is_text = not isinstance(feeds[name], np.ndarray) or feeds[name].dtype.kind == "O"
        if is_text and is_same:  # there are no layouts of text or lists
            continue
        change = r.choice(SAME if is_same else OTHER)
        with np.errstate(all="ignore"):
            try:
                changed[name] = change(feeds[name])
            except (
                ValueError,
                TypeError,
                IndexError,
                AttributeError,
                OverflowError,
                BufferError,
            ):  # this array has no such form
                return changed, False
    return changed, is_same
