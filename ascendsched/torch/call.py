"""Runs a converted graph on torch tensors."""

from __future__ import annotations

from typing import Any

import torch

from ascendsched.errors import UnsupportedError
from ascendsched.executable import Executable
from ascendsched.native import core as _core
from ascendsched.torch.convert import Converted


def make_call(executable: Executable, converted: Converted) -> Any:
    """A compiled graph as a function of one list of arguments, which is emptied, as AOTAutograd calls it.

    Tensors are read where torch has them; one that does not lie in the order of its axes is copied. Results are fresh
    tensors, with the strides that torch expects.

    Raises
    ------
    UnsupportedError
        For a torch without DLPack's exchange interface.
    """
    api = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if api is None:
        raise UnsupportedError(f"[torch] torch {torch.__version__} is too old; install torch 2.10 or newer")
    outputs = [(o.index, o.is_size, list(o.order or ())) for o in converted.outputs]
    call = _core.TensorCall(executable._core, api, converted.inputs, outputs)
    call._boxed_call = True
    return call
