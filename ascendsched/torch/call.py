"""Runs a converted graph on torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ascendsched.errors import UnsupportedError
from ascendsched.executable import Executable
from ascendsched.native import core as _core
from ascendsched.torch.convert import Converted


def make_call(executable: Executable, converted: Converted, updates: Sequence[int] = ()) -> Any:
    """A compiled graph as a function of one list of arguments, which is emptied, as AOTAutograd calls it.

    Tensors are read where torch has them; one that does not lie in the order of its axes is copied. Results are fresh
    tensors, with the strides that torch expects. The last results go to the arguments `updates` instead of the caller:
    written by the run where these lie if it may, else copied there.

    Raises
    ------
    UnsupportedError
        For a torch without DLPack's exchange interface.
    """
    api = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if api is None:
        raise UnsupportedError(f"[torch] torch {torch.__version__} is too old; install torch 2.10 or newer")
    results = converted.outputs[: len(converted.outputs) - len(updates)]
    written = converted.outputs[len(results) :]
    outputs = [(o.index, o.is_number, list(o.order or ())) for o in results]
    places = [(argument, o.index) for argument, o in zip(updates, written, strict=True)]
    call = _core.TensorCall(executable._core, api, converted.inputs, outputs, places)
    call._boxed_call = True
    return call
