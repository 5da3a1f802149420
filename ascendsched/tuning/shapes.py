"""The shapes that a model is tuned for: read from a file, or made from the prompts of a trace."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ascendsched.bounded import TABLE_BYTES, read_text, reason
from ascendsched.errors import GraphError
from ascendsched.tuning.requests import read_requests

if TYPE_CHECKING:
    from ascendsched.tensor_info import TensorInfo

Shapes = dict[str, tuple[int, ...]]

BATCH_NAMES = {"batch", "batch_size", "b", "n", "bs"}
MAX_DIM = 1 << 40


def read_shapes(path: str | os.PathLike[str], inputs: Sequence[TensorInfo], symbol: str | None = None) -> list[Shapes]:
    """Shapes of all inputs by name, in the order in which they came.

    Parameters
    ----------
    path
        JSON lines, each an object of shapes by input name, in which inputs of fixed shape may be left out; or a trace
        for `read_requests`, whose prompt lengths become the dimension `symbol`.
    inputs
        Inputs of the model.
    symbol
        The symbolic dimension that a trace's lengths are for; default: the only one that is no batch.

    Raises
    ------
    GraphError
        For a file that is neither, shapes that do not fit the inputs, or a model for whose symbols it is not clear.
    """
    lines = _shape_lines(path)
    if lines is not None:
        return [_complete(f"[shapes] '{os.fspath(path)}', line {number}", line, inputs) for number, line in lines]
    wanted = _symbol(inputs, symbol)
    return [_bind(inputs, wanted, request.prompt) for request in read_requests(path)]


def check_shapes(shapes: Sequence[Mapping[str, Sequence[int]]], inputs: Sequence[TensorInfo]) -> list[Shapes]:
    """The same for shapes that are given as they are."""
    if not isinstance(shapes, Sequence) or not shapes:
        raise GraphError("[shapes] expected a list of shapes by input name such as [{'x': (1, 8)}]")
    return [_complete(f"[shapes] entry {number}", entry, inputs) for number, entry in enumerate(shapes)]


def _shape_lines(path: str | os.PathLike[str]) -> list[tuple[int, Any]] | None:
    """The objects of a file of shapes; None for a file that is none."""
    try:
        lines = read_text(path, TABLE_BYTES).splitlines()
        first = next((line for line in lines if line.strip()), "").strip()
        if not first.startswith("{") or "input_length" in first:
            return None
    except (OSError, ValueError) as error:
        raise GraphError(
            f"[shapes] cannot read '{os.fspath(path)}': {reason(error)}; give JSON lines or a trace"
        ) from None
    return [(number, _object(path, number, line)) for number, line in enumerate(lines, 1) if line.strip()]


def _object(path: str | os.PathLike[str], number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
        raise GraphError(f"[shapes] '{os.fspath(path)}', line {number}: {why}; give a JSON object a line") from None


def _complete(where: str, given: Any, inputs: Sequence[TensorInfo]) -> Shapes:
    if not isinstance(given, Mapping):
        raise GraphError(f"{where}: {str(given)[:80]} is no object of shapes by input name")
    names = [info.name for info in inputs]
    if unknown := [name for name in given if name not in names]:
        raise GraphError(f"{where}: the model has no inputs {unknown[:5]}; its inputs are {', '.join(names)}")
    shapes = {}
    for info in inputs:
        if info.name not in given and not _is_fixed(info):
            raise GraphError(
                f"{where}: no shape for '{info.name}', which the model leaves open: {info.shape}; give one"
            )
        shapes[info.name] = _shape(where, info, given.get(info.name, info.shape))
    return shapes


def _is_fixed(info: TensorInfo) -> bool:
    return info.shape is not None and all(type(dim) is int for dim in info.shape)


def _shape(where: str, info: TensorInfo, shape: Any) -> tuple[int, ...]:
    is_list = isinstance(shape, Sequence) and not isinstance(shape, str)
    if not is_list or not all(type(dim) is int and 0 <= dim <= MAX_DIM for dim in shape):
        raise GraphError(f"{where}: shape {str(shape)[:80]} of '{info.name}' is no list of whole numbers")
    return tuple(shape)


def _symbol(inputs: Sequence[TensorInfo], wanted: str | None) -> str:
    symbols = list(dict.fromkeys(dim for info in inputs for dim in info.shape or () if isinstance(dim, str)))
    if wanted is not None:
        if wanted in symbols:
            return wanted
        raise GraphError(f"[shapes] no input has the dimension '{wanted}'; there are {', '.join(symbols) or 'none'}")
    lengths = [symbol for symbol in symbols if symbol.lower() not in BATCH_NAMES]
    if len(lengths) == 1 or (not lengths and len(symbols) == 1):
        return (lengths or symbols)[0]
    if not symbols:
        raise GraphError(
            "[shapes] the model has no symbolic dimension that a trace's lengths could be; give shapes by name"
        )
    raise GraphError(f"[shapes] a trace's lengths fit several dimensions: {', '.join(symbols)}; name one as symbol")


def _bind(inputs: Sequence[TensorInfo], symbol: str, length: int) -> Shapes:
    """`length` for the symbol, 1 for every other one."""
    shapes = {}
    for info in inputs:
        if info.shape is None or None in info.shape:
            raise GraphError(f"[shapes] '{info.name}' has shape {info.shape}; give shapes by name instead of a trace")
        shapes[info.name] = tuple(d if isinstance(d, int) else length if d == symbol else 1 for d in info.shape)
    return shapes
