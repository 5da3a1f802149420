"""Runs a converted graph on torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ascendsched.arrays import numpy_dtype
from ascendsched.executable import Executable
from ascendsched.torch.convert import Converted, Output


class Call:
    """A compiled graph, called as AOTAutograd calls: one list of arguments, which is emptied.

    Inputs are read where torch has them. Results are fresh tensors, with the strides that torch expects.
    """

    _boxed_call = True

    def __init__(self, executable: Executable, converted: Converted) -> None:
        self.executable = executable
        self._core = executable._core
        self._inputs = converted.inputs
        self._types = converted.types
        self._outputs = converted.outputs

    def __call__(self, args: Any) -> list[Any]:
        arrays = [_array(args[i], t) for i, t in zip(self._inputs, self._types, strict=True)]
        results = self._core.call(*arrays)
        if isinstance(args, list):
            args.clear()
        return [None if o.index < 0 else _result(results[o.index], o) for o in self._outputs]


def _array(value: Any, dtype: Any) -> Any:
    """An argument as an array, in place where its layout allows."""
    if dtype is None:
        return np.asarray(value, np.int64)
    tensor = value.detach().contiguous()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(numpy_dtype("bfloat16"))
    return tensor.numpy()


def _result(array: Any, output: Output) -> Any:
    if output.is_size:
        return int(array)
    tensor = torch.from_numpy(array)
    if output.order is not None:
        tensor = tensor.permute(np.argsort(output.order).tolist())
    return tensor
