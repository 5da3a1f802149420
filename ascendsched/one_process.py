"""What lives in one process only."""

from __future__ import annotations

from typing import Any, NoReturn

from ascendsched.errors import UnsupportedError


class OneProcess:
    """Base of objects with threads and memory of the core: they are neither copied nor pickled, but shared."""

    __slots__ = ()
    _instead = "share it among threads, and make it anew in other processes"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuses `copy`, `pickle` and whoever sends objects to other processes."""
        name = type(self).__name__
        raise UnsupportedError(f"[pickle] {name}: it cannot be copied or pickled; {self._instead}")
