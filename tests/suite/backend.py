"""ascendsched as a backend of the test suite that the onnx package brings, and the cases of that suite."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest

import ascendsched as asc

MODES = ("host", "sink")
CATEGORIES = ("Node", "Real", "Simple", "PyTorchConverted", "PyTorchOperator")


class Prepared(BackendRep):
    """One model in both modes, whose results must be the same bits."""

    def __init__(self, model: ModelProto) -> None:
        self._executables = [asc.compile(model, mode=mode) for mode in MODES]

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> list[Any]:
        """Returns the results in graph order."""
        names = [value.name for value in self._executables[0].inputs]
        feeds = dict(zip(names, inputs, strict=True))
        first, *others = [list(exe.run(feeds).values()) for exe in self._executables]
        for other in others:
            for one, two in zip(first, other, strict=True):
                assert _bits(one) == _bits(two), f"{MODES} differ: {one} and {two}"
        return first


def _bits(value: Any) -> Any:
    """What tells values from each other: bytes of tensors, lists of them for sequences; text as it is."""
    if value is None or isinstance(value, list):
        return value if value is None else [_bits(each) for each in value]
    array = np.asarray(value)
    return array.tolist() if array.dtype.kind == "O" else array.tobytes()


class AscendSchedBackend(Backend):
    """What the suite asks for models."""

    models: ClassVar[list[ModelProto]] = []  # that were prepared, so that a report can say which operators they hold

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compiles a model."""
        cls.models.append(model)
        return Prepared(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the suite may run its cases for a device."""
        return device == "CPU"


@cache
def cases(backend: type[Backend] = AscendSchedBackend) -> dict[str, Callable[[], None]]:
    """The cases by ``category/name``; each raises where the backend fails it, and `SkipTest` where it has no data."""
    os.environ["ONNX_HOME"] = tempfile.mkdtemp(prefix="onnx_suite_")  # real models leave their data there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators divide by zero on purpose
        classes = BackendTest(backend, __name__).test_cases
    found = {}
    for category in CATEGORIES:
        case_class = classes[f"OnnxBackend{category}ModelTest"]
        for name in sorted(dir(case_class)):
            if name.startswith("test_") and name.endswith("_cpu"):
                short = name.removeprefix("test_").removesuffix("_cpu")
                found[f"{category}/{short}"] = getattr(case_class(name), name)
    return found


def known_failures() -> dict[str, str]:
    """Cases that do not pass yet, with their reasons; a case that starts to pass has to leave the file."""
    known = {}
    reason = ""
    for line in (Path(__file__).parent / "known.txt").read_text().splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            known[line] = reason
    return known
