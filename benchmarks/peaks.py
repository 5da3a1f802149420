"""What this core can do at best: `native/peaks.cc`, compiled for this machine."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from native_library import compile_library

SOURCE = Path(__file__).parent / "native" / "peaks.cc"
READ_UNIT = 512  # bytes
SAMPLE_PRODUCTS = 20_000
SAMPLE_BYTES = 8 << 20


class Peaks:
    """Rates per nanosecond, each the best of all samples so far.

    Attributes
    ----------
    floats, bytes : float
        Operations on float32 and on bytes, two per product that is added; `bytes` is 0 where the CPU has no
        instruction for it.
    """

    def __init__(self) -> None:
        self._library = compile_library(SOURCE, fast_math=False)
        for name in ("peaks_float_products", "peaks_byte_products", "peaks_read"):
            getattr(self._library, name).restype = ctypes.c_double
        self._library.peaks_read.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
        self._reads: dict[int, float] = {}
        self._buffer = np.ones(0, np.uint8)
        self.floats = self.bytes = 0.0

    def note_size(self, size: int) -> None:
        """From now on, `sample` also reads a buffer of that many bytes."""
        size = max(READ_UNIT, -(-size // READ_UNIT) * READ_UNIT)
        self._reads.setdefault(size, 0.0)
        if self._buffer.size < size + READ_UNIT:
            self._buffer = np.ones(size + READ_UNIT, np.uint8)

    def read(self, size: int) -> float:
        """Bytes per nanosecond, where so many are read again and again."""
        return self._reads[max(READ_UNIT, -(-size // READ_UNIT) * READ_UNIT)]

    def sample(self) -> None:
        """Measures everything once more."""
        self.floats = max(self.floats, _rate(self._library.peaks_float_products, SAMPLE_PRODUCTS))
        self.bytes = max(self.bytes, _rate(self._library.peaks_byte_products, SAMPLE_PRODUCTS))
        address = self._buffer.ctypes.data + -self._buffer.ctypes.data % 64
        for size, best in self._reads.items():
            times = max(2, SAMPLE_BYTES // size)
            self._reads[size] = max(best, _rate(self._library.peaks_read, address, size, times))


def _rate(call: Callable[..., float], *arguments: int) -> float:
    begin = time.perf_counter_ns()
    done = call(*arguments)
    return done / (time.perf_counter_ns() - begin)
