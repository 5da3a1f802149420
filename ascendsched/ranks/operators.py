"""Collectives as operators of a graph.

Each is a host call (docs/decisions/0012): its input is read back, the ranks meet, and its result goes on as data. Host
calls are kept while their inputs stay the same, but what a collective gives depends on the other ranks' inputs too: so
each takes the number of the step as an input, and `Job` gives every run a new one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ascendsched import host_calls
from ascendsched.errors import DeviceError
from ascendsched.graph import Graph, Tensor
from ascendsched.ranks.group import Array, Group

NAME = "ascendsched.ranks"
STEP = "ascendsched.step"

# ONNX's numbers of the types that ranks exchange.
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "float16": 10, "float64": 11}

_joined: list[Group] = []


def use(group: Group | None) -> None:
    """Makes a group the one that collectives of this process meet in; None: there is none."""
    _joined[:] = [] if group is None else [group]


def step_input(graph: Graph) -> Tensor:
    """Declares the input that counts steps; `Job` feeds it."""
    return graph.input(STEP, "int64", ())


def all_reduce(
    graph: Graph, x: Tensor, step: Tensor, op: str = "sum", dtype: str = "float32", name: str = ""
) -> Tensor:
    """The element-wise "sum", "min" or "max" of `x` over all ranks.

    Parameters
    ----------
    step : Tensor
        From `step_input`.
    dtype : str
        Element type of `x`.
    """
    if op not in {"sum", "min", "max"}:
        raise DeviceError(f"[ranks] all_reduce: {op!r} is unknown; use sum, min or max")
    return _call(graph, "AllReduce", x, step, dtype, name, {"op": op})


def all_gather(graph: Graph, x: Tensor, step: Tensor, axis: int = 0, dtype: str = "float32", name: str = "") -> Tensor:
    """The `x` of all ranks, joined along `axis` in their order."""
    return _call(graph, "AllGather", x, step, dtype, name, {"axis": axis})


def _call(
    graph: Graph, operator: str, x: Tensor, step: Tensor, dtype: str, name: str, details: dict[str, Any]
) -> Tensor:
    if dtype not in TYPES:
        raise DeviceError(f"[ranks] {operator}: element type {dtype!r}; use one of {', '.join(TYPES)}")
    payload = json.dumps({"operator": operator, "name": name or operator, **details})
    made: Tensor = graph.op(
        "HostCall", x, step, name=name, callable=NAME, operator=operator, payload=payload, output_types=[TYPES[dtype]]
    )
    return made


def _compute(payload: str, inputs: Sequence[Array | None]) -> list[Array]:
    details = json.loads(payload)
    if not _joined:
        raise DeviceError(f"[ranks] {details['name']}: this process is in no job; run the graph through ranks.Job")
    group, x = _joined[0], inputs[0]
    if x is None:
        raise DeviceError(f"[ranks] {details['name']}: its input is absent; give it one")
    if details["operator"] == "AllReduce":
        return [group.all_reduce(x, details["op"], details["name"])]
    return [np.concatenate(group.all_gather(x, details["name"]), axis=details["axis"])]


host_calls.register(NAME, _compute)
