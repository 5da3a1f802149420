"""onnxruntime's CPU provider as a backend of the same suite: the yardstick for what should pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.base import Backend, BackendRep

_BY_BITS = {np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16}


class Session(BackendRep):
    """One session."""

    def __init__(self, model: ModelProto) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self._session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> list[Any]:
        """Returns the results in graph order."""
        names = [value.name for value in self._session.get_inputs()]
        feeds = {name: _value(value) for name, value in zip(names, inputs, strict=True)}
        if not any(isinstance(value, ort.OrtValue) for value in feeds.values()):
            return self._session.run(None, feeds)
        feeds = {k: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}
        outputs = [value.name for value in self._session.get_outputs()]
        results = self._session.run_with_ort_values(outputs, feeds)
        return [_array(result) for result in results]


def _value(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype in _BY_BITS:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(np.uint16), _BY_BITS[value.dtype])
    return value


def _array(result: Any) -> Any:
    if result.element_type() == TensorProto.BFLOAT16:
        proto = TensorProto(data_type=TensorProto.BFLOAT16, dims=result.shape(), raw_data=_bytes_of(result))
        return numpy_helper.to_array(proto)
    return result.numpy()


def _bytes_of(result: Any) -> bytes:
    import ctypes

    return ctypes.string_at(result.data_ptr(), 2 * int(np.prod(result.shape(), dtype=np.int64)))


class OnnxRuntimeBackend(Backend):
    """What the suite asks for models."""

    models: ClassVar[list[ModelProto]] = []

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Session:
        """Makes a session."""
        cls.models.append(model)
        return Session(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the suite may run its cases for a device."""
        return device == "CPU"
