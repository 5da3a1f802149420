"""Operators from outside: Python functions on NumPy arrays, and C functions of packages.

Both have names such as ``"my::gelu"``: an operator ``gelu`` of the domain ``my`` in ONNX models, ``my::gelu`` in the
graph builder and in torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ascendsched import extensions, host_calls
from ascendsched.element_types import ONNX_TYPES
from ascendsched.errors import GraphError, PlanError

Kernel = Callable[..., Any]
_CALLABLE = "ascendsched.operators"
_TILINGS = 256  # that each operator keeps
_VALUES = (int, float, str)


class Operator:
    """An operator whose kernel is a Python function; `op` makes it. Calling it calls the kernel."""

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        infer_shape: Callable[..., Any],
        types: Sequence[str | int],
        tiling: Callable[..., Any] | None,
    ) -> None:
        self.name = name
        self.types = list(types)
        self._kernel = kernel
        self._infer_shape = infer_shape
        self._tiling = None if tiling is None else lru_cache(_TILINGS)(_from_text(tiling))

    def __call__(self, *arrays: Any, **attributes: Any) -> Any:
        return self._kernel(*arrays, **attributes)

    def compute(self, attributes: str, arrays: Sequence[Any]) -> list[Any]:
        """Results of one call of the core, of the shapes and types that were promised."""
        values = json.loads(attributes)
        shapes = tuple(None if a is None else a.shape for a in arrays)
        tiled = {} if self._tiling is None else {"tiling": self._tiling(attributes, *shapes)}
        wanted = _shapes(self._infer_shape(*shapes, **values), len(self.types))
        results = self._kernel(*arrays, **values, **tiled)
        results = list(results) if isinstance(results, tuple) else [results]
        if len(results) != len(self.types):
            raise ValueError(f"the kernel gives {len(results)} results, {len(self.types)} are declared")
        checked = [np.asarray(result) for result in results]
        for i, (array, shape) in enumerate(zip(checked, wanted, strict=True)):
            if array.shape != shape:
                raise ValueError(f"result {i} has the shape {array.shape}, infer_shape says {shape}")
        return checked


_operators: dict[str, Operator] = {}


def op(
    name: str,
    *,
    infer_shape: Callable[..., Any],
    types: Sequence[str | int] = (0,),
    tiling: Callable[..., Any] | None = None,
) -> Callable[[Kernel], Operator]:
    """Makes a function on NumPy arrays an operator of graphs, models and torch's graphs.

    The kernel gets the input arrays, read-only, with None for absent ones, and the node's attributes as keywords; it
    returns an array, or a tuple of several. It depends on these alone: results are kept while the inputs stay the same.

    Parameters
    ----------
    name
        Domain and name, as "my::gelu". A second operator of a name replaces the first for models compiled later.
    infer_shape
        Gets the shapes of the inputs, and the attributes as keywords; returns the shape of the result, or a list of
        shapes.
    types
        Element type of each result: a name such as "float32", or the number of the input whose type it takes.
    tiling
        Gets the same as `infer_shape`; what it returns is kept for these shapes and passed to the kernel as `tiling`.

    Raises
    ------
    PlanError
        For a name without a domain, types that do not exist, or what cannot be called.

    Examples
    --------
    >>> @asc.op("my::scale", infer_shape=lambda x, factor=1.0: x)
    ... def scale(x, factor=1.0):
    ...     return x * np.float32(factor)
    """
    _check_name(name)
    if not types or any(t not in ONNX_TYPES and not (type(t) is int and 0 <= t < 64) for t in types):
        raise PlanError(f"[op] {name}: types {list(types)!r}; use names of element types, or numbers of inputs")

    def register(kernel: Kernel) -> Operator:
        for what, function in (("kernel", kernel), ("infer_shape", infer_shape), ("tiling", tiling)):
            if function is not None and not callable(function):
                raise PlanError(f"[op] {name}: {what} is {type(function).__name__}; pass a function")
        _operators[name] = Operator(name, kernel, infer_shape, types, tiling)
        return _operators[name]

    return register


def find(name: str, outputs: int, attributes: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The operator of the core, and its attributes, that stand for a foreign one; None where nobody has registered it.

    Raises
    ------
    GraphError
        Where the number of outputs or the attributes do not fit.
    PlanError
        Where a package that announces the operator cannot be loaded.
    """
    if name not in _operators:
        return extensions.find(name, outputs, attributes)
    known = _operators[name]
    if outputs != len(known.types):
        raise GraphError(f"[op] {name} has {len(known.types)} results, the node has {outputs}; correct the model")
    plain = {key: _plain(name, key, value) for key, value in attributes.items()}
    types = [ONNX_TYPES[t] if isinstance(t, str) else -1 - t for t in known.types]
    payload = json.dumps({"name": name, "attributes": plain}, sort_keys=True)
    return "HostCall", {"callable": _CALLABLE, "operator": name, "payload": payload, "output_types": types}


def _check_name(name: str) -> None:
    domain, _, rest = name.partition("::") if isinstance(name, str) else ("", "", "")
    if not domain or not rest or domain == "ai.onnx":
        raise PlanError(f"[op] {name!r} is no name of an operator; use 'domain::name' with a domain of your own")


def _plain(name: str, key: str, value: Any) -> Any:
    if isinstance(value, _VALUES):
        return value
    if isinstance(value, Sequence) and all(isinstance(v, _VALUES) for v in value):
        return list(value)
    raise GraphError(f"[op] {name}: attribute '{key}' is {type(value).__name__}; pass numbers, texts or lists of them")


def _from_text(tiling: Callable[..., Any]) -> Callable[..., Any]:
    """The tiling function with its attributes as text, which can be a key."""

    def call(attributes: str, *shapes: Any) -> Any:
        return tiling(*shapes, **json.loads(attributes))

    return call


def _shapes(found: Any, count: int) -> list[tuple[int, ...]]:
    several = isinstance(found, list) and all(isinstance(shape, (tuple, list)) for shape in found)
    shapes = list(found) if several else [found]
    if len(shapes) != count:
        raise ValueError(f"infer_shape gives {len(shapes)} shapes, {count} results are declared")
    return [tuple(int(d) for d in shape) for shape in shapes]


def _compute(payload: str, inputs: Sequence[Any]) -> list[Any]:
    call = json.loads(payload)
    known = _operators.get(call["name"])
    if known is None:
        raise LookupError(f"no operator is registered as '{call['name']}'; import the module that does")
    return known.compute(json.dumps(call["attributes"], sort_keys=True), inputs)


host_calls.register(_CALLABLE, _compute)
