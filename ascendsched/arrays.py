"""Brings what callers pass into the form that kernels read: C-contiguous, aligned, native byte order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascendsched.element_types import ONNX_TYPES
from ascendsched.errors import AscendSchedError, GraphError, OutOfMemoryError

_DLPACK_CPU = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost


def normalize(name: str, dtype: str, value: Any) -> np.ndarray[Any, Any]:
    """An array of `dtype` that can be used in place; a copy only where the layout demands one.

    Values convert as NumPy users expect (Python numbers and lists to the declared type), but an array of another
    element type is refused: silently rounding a caller's data would be a wrong number.

    Parameters
    ----------
    name
        Name of the input, for messages.
    dtype
        Element type that the model declares.
    value
        Array, anything with DLPack or ``__array__``, a number or nested lists.

    Raises
    ------
    GraphError
        For another element type, ragged lists, masked elements, data on another device, and whatever the caller's
        object raises.
    OutOfMemoryError
        Where a copy does not fit the memory.
    """
    wanted = numpy_dtype(dtype)
    try:
        array = _as_array(name, dtype, wanted, value)
        if array.dtype.newbyteorder("=") != wanted:
            raise GraphError(
                f"[run] input '{name}': expected {dtype}, got {array.dtype}; convert it with astype('{dtype}')"
            )
        return np.require(array.astype(wanted, copy=False, subok=False), requirements=["C", "A"])
    except AscendSchedError:
        raise
    except MemoryError as e:
        raise OutOfMemoryError(f"[run] input '{name}': no memory to copy it: {e}; pass a contiguous array") from e
    except Exception as e:  # what a caller's own class raises while it is looked at
        raise GraphError(
            f"[run] input '{name}': {type(value).__name__} is no usable array: {type(e).__name__}: {e}; "
            "pass a NumPy array"
        ) from e


def _as_array(name: str, dtype: str, wanted: np.dtype[Any], value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            raise GraphError(f"[run] input '{name}': the array has masked elements; fill them with filled(value)")
        return np.asarray(value)
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(name, value)
    if hasattr(value, "__array__") or hasattr(value, "dtype"):
        return np.asarray(value)
    return _from_python(name, dtype, wanted, value)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's type for one of our names."""
    if name == "bfloat16":
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(name)


def _from_dlpack(name: str, value: Any) -> np.ndarray[Any, Any]:
    device = int(value.__dlpack_device__()[0])
    if device not in _DLPACK_CPU:
        raise GraphError(
            f"[run] input '{name}': its data is on another device (DLPack type {device}); copy it to the CPU"
        )
    if getattr(value, "requires_grad", False):
        value = value.detach()
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise GraphError(f"[run] input '{name}': DLPack export failed: {e}; pass a NumPy array") from e


def _from_python(name: str, dtype: str, wanted: np.dtype[Any], value: Any) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            with np.errstate(all="ignore"):
                converted = array.astype(wanted)
            if wanted.kind == "f" or np.array_equal(converted, array):
                return converted
    except (ValueError, TypeError, OverflowError):
        pass
    raise GraphError(
        f"[run] input '{name}': {type(value).__name__} does not convert to {dtype} without loss; pass an array"
    )


def random_array(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Standard normal numbers; 0 or 1 for integers, which are valid indices almost everywhere.

    Raises
    ------
    GraphError
        For strings, sequences and optionals.
    """
    if dtype not in ONNX_TYPES:
        raise GraphError(f"[inputs] there is no random {dtype}; give that input a value")
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype == "bfloat16":
        import ml_dtypes  # NumPy knows no bfloat16; onnx brings this package

        return random.standard_normal(shape, dtype=np.float32).astype(ml_dtypes.bfloat16)
    if np.issubdtype(np.dtype(dtype), np.integer):
        return np.asarray(random.integers(0, 2, shape)).astype(dtype)
    return np.asarray(random.standard_normal(shape)).astype(dtype)


def typed_results(results: list[np.ndarray[Any, Any]], types: list[str]) -> list[np.ndarray[Any, Any]]:
    """bfloat16 results leave the core as uint16; everything else passes."""
    if "bfloat16" not in types:
        return results
    import ml_dtypes

    return [
        r.view(ml_dtypes.bfloat16) if t == "bfloat16" and r.dtype == np.uint16 else r
        for r, t in zip(results, types, strict=True)
    ]
