"""The scheduler's own cache and ring, for benchmarks and for authors of plug-ins, and what the tiling caches count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ascendsched import plugins
from ascendsched.native import core as _core


class Cache:
    """A cache from keys to objects, bounded in bytes, with the eviction that tilings and schedules use (S3-FIFO).

    Not for several threads at once beyond what the GIL orders.

    Parameters
    ----------
    limit_bytes
        Bound of keys, values and what they cost to keep; 0: nothing is kept.

    Examples
    --------
    >>> cache = Cache(1 << 20)
    >>> cache.put((1, 768, b"f32"), "tiling", bytes=4096)
    True
    >>> cache.get((1, 768, b"f32"))
    'tiling'
    """

    def __init__(self, limit_bytes: int) -> None:
        self._core = _core.Cache(limit_bytes)

    def get(self, key: Sequence[int | bytes]) -> Any:
        """The value kept under the key, or None."""
        return self._core.get(key)

    def put(self, key: Sequence[int | bytes], value: Any, bytes: int) -> bool:
        """Keeps a value under a key that is not there yet; False where it is, or where the value is too large."""
        return self._core.put(key, value, bytes)

    def resize(self, limit_bytes: int) -> None:
        """Changes the bound; evicts at once where it shrinks."""
        self._core.resize(limit_bytes)

    @property
    def counters(self) -> dict[str, int]:
        """`hits`, `misses`, `evictions`, `entries`, `bytes` and `limit_bytes`."""
        return self._core.counters


class Ring:
    """The bounded queue between two threads: one that pushes and one that pops.

    Parameters
    ----------
    capacity
        Elements that fit, 1 to 2**31.
    """

    def __init__(self, capacity: int) -> None:
        self._core = _core.Ring(capacity)

    def push(self, value: Any) -> bool:
        """Appends; False where the ring is full."""
        return self._core.push(value)

    def pop(self) -> Any:
        """The oldest element.

        Raises
        ------
        IndexError
            Where the ring is empty.
        """
        return self._core.pop()

    @property
    def capacity(self) -> int:
        """Elements that fit."""
        return self._core.capacity


def hash_key(key: Sequence[int | bytes]) -> int:
    """The 64-bit hash under which caches look a key of ints and bytes up; they compare keys in full afterwards."""
    return _core.hash_key(key)


def tiling_counters(device: str = "cpu") -> dict[str, dict[str, int]]:
    """What the tiling cache that all executables on a kind of device share has counted, by type of operator.

    Returns
    -------
    dict
        For each type of operator `hits`, `misses`, `bypasses_off` (look-ups of executables that use no cache),
        `bypasses_too_large`, `evictions`, `entries`, `bytes`, and in nanoseconds `made_ns` (spent on making tilings)
        and `saved_ns` (what hits would have cost again).

    Raises
    ------
    DeviceUnavailableError
        For an unknown device.
    """
    plugins.load(device)
    return _core.tilings_by_op(device)
