"""onnxruntime beside us, where it is installed: the same models and inputs, the fastest calls that it offers."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray


def has_onnxruntime() -> bool:
    """Whether onnxruntime can be imported."""
    return importlib.util.find_spec("onnxruntime") is not None


def _onnxruntime() -> Any:
    return importlib.import_module("onnxruntime")


def create_session(model: bytes | str, threads: int) -> Any:
    """A session of a model or its path, on the CPU with as many threads as our rows have."""
    onnxruntime = _onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class OrtDecoder:
    """A decoder with growing KV cache in onnxruntime: outputs stay on its side and are bound as the next inputs."""

    def __init__(self, model: bytes, threads: int) -> None:
        self._session = create_session(model, threads)
        inputs = self._session.get_inputs()
        self._ids = inputs[0].name
        self._past = [(value.name, value.shape) for value in inputs[1:]]
        self._outputs = [value.name for value in self._session.get_outputs()]
        self._state: dict[int, list[Any]] = {}

    @staticmethod
    def is_available() -> bool:
        """Whether onnxruntime can be imported."""
        return has_onnxruntime()

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Feeds the whole prompt at once, with an empty cache."""
        wrap = _onnxruntime().OrtValue.ortvalue_from_numpy
        shapes = [[dim if isinstance(dim, int) else 1 for dim in shape] for _, shape in self._past]
        empty = [np.zeros((*shape[:-2], 0, shape[-1]), np.float32) for shape in shapes]
        self._state[request] = [wrap(array) for array in empty]
        self._feed(request, prompt.reshape(1, -1))

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Feeds one token."""
        return self._feed(request, np.array([[token]], dtype=np.int64))

    def _feed(self, request: int, ids: NDArray[np.int64]) -> NDArray[Any]:
        binding = self._session.io_binding()
        binding.bind_cpu_input(self._ids, ids)
        for (name, _), value in zip(self._past, self._state[request], strict=True):
            binding.bind_ortvalue_input(name, value)
        for name in self._outputs:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        logits, *self._state[request] = binding.get_outputs()
        array: NDArray[Any] = logits.numpy()[0, -1]
        return array


class OrtBound:
    """A model of one input and one output in onnxruntime, with both bound once."""

    def __init__(self, model: bytes, threads: int, feed: NDArray[Any]) -> None:
        self._session = create_session(model, threads)
        self._binding = self._session.io_binding()
        self._binding.bind_cpu_input(self._session.get_inputs()[0].name, feed)
        self._binding.bind_output(self._session.get_outputs()[0].name)

    def run(self) -> NDArray[Any]:
        """Runs once; the result stays on onnxruntime's side until it is looked at."""
        self._session.run_with_iobinding(self._binding)
        array: NDArray[Any] = self._binding.get_outputs()[0].numpy()
        return array
