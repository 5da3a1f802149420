"""The runtimes that are compared, behind one small interface: compile, run, and a call with everything bound."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ascendsched._version import __version__
from ascendsched.errors import UnsupportedError

Array = NDArray[Any]
Arrays = Mapping[str, Array]
PEER = "onnxruntime"


class Runtime(Protocol):
    """A model, compiled by one runtime."""

    def run(self, feeds: Arrays) -> dict[str, Array]:
        """Results by name, as fresh arrays."""
        ...

    def bind(self, feeds: Arrays, results: Arrays) -> tuple[Callable[[], object], dict[str, Array]]:
        """Return the fastest repeated call, and the arrays that it writes; `results` tells their shapes."""
        ...


class Ours:
    """ascendsched in one mode.

    Parameters
    ----------
    model
        Path of the ONNX file.
    mode
        "host", "sink" or "auto".
    threads
        Bound of the threads.
    """

    def __init__(self, model: str, mode: str, threads: int) -> None:
        from ascendsched.executable import compile as compile_model

        self.executable = compile_model(model, mode=mode, threads=threads)

    def run(self, feeds: Arrays) -> dict[str, Array]:
        """Results by name."""
        return self.executable.run(feeds)

    def bind(self, feeds: Arrays, results: Arrays) -> tuple[Callable[[], object], dict[str, Array]]:
        """A binding's raw run."""
        written = {name: np.empty_like(array) for name, array in results.items()}
        return self.executable.bind(feeds, written).run, written


class OnnxRuntime:
    """onnxruntime on the CPU, with all its graph optimisations.

    Raises
    ------
    UnsupportedError
        Where onnxruntime refuses the model or a call; the message is its own.
    """

    def __init__(self, model: str, threads: int) -> None:
        from ascendsched.demo.peers import create_session

        self._session = _translated(lambda: create_session(model, threads))
        self._names = [value.name for value in self._session.get_outputs()]

    def run(self, feeds: Arrays) -> dict[str, Array]:
        """Results by name."""
        results: list[Array] = _translated(lambda: self._session.run(None, dict(feeds)))
        return dict(zip(self._names, results, strict=True))

    def bind(self, feeds: Arrays, results: Arrays) -> tuple[Callable[[], object], dict[str, Array]]:
        """An IO binding on fixed memory."""
        written = {name: np.empty_like(array) for name, array in results.items()}

        def bind_all() -> Any:
            binding = self._session.io_binding()
            for name, array in feeds.items():
                binding.bind_cpu_input(name, np.ascontiguousarray(array))
            for name, array in written.items():
                binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
            return binding

        binding, session = _translated(bind_all), self._session
        return lambda: session.run_with_iobinding(binding), written


def has_peer() -> bool:
    """Whether onnxruntime is installed."""
    return importlib.util.find_spec(PEER) is not None


def versions() -> dict[str, str]:
    """Of the runtimes that are installed."""
    found = {"ascendsched": __version__}
    if has_peer():
        found[PEER] = importlib.metadata.version(PEER)
    return found


def create(runtime: str, model: str, threads: int) -> Runtime:
    """Compile a model by a runtime's label: "onnxruntime", or a mode of ascendsched."""
    return OnnxRuntime(model, threads) if runtime == PEER else Ours(model, runtime, threads)


def _translated(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # its exceptions have no common class
        text = " ".join(str(error).split())[:300]
        raise UnsupportedError(f"[bench] onnxruntime: {text}; it is left out") from error
