"""Runs in flight, and repeated runs on fixed buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascendsched.errors import GraphError
from ascendsched.native import core as _core
from ascendsched.one_process import OneProcess
from ascendsched.packed import is_converted, named_results, results_of

Array = np.ndarray[Any, Any]


class Run(OneProcess):
    """A run in flight, from `Executable.run_async`."""

    __slots__ = ("_core", "_types")

    def __init__(self, core: _core.Run, types: list[str]) -> None:
        self._core = core
        self._types = types

    @property
    def is_done(self) -> bool:
        """Whether the run has completed; `wait` then returns at once."""
        return self._core.is_done

    def cancel(self) -> bool:
        """Gives the run up: what has not executed yet is skipped, and `wait` raises `RunCancelledError`.

        Returns
        -------
        bool
            False where the run has completed; its results stay.
        """
        return self._core.cancel()

    def wait(self, timeout: float | None = None) -> dict[str, Array]:
        """Results by name.

        Parameters
        ----------
        timeout
            Seconds; None: no limit.

        Raises
        ------
        WaitTimeoutError
            When time is up; the run goes on and can be waited for again.
        RunCancelledError
            After `cancel`.
        AscendSchedError
            The first error of the run, by class, at every call.
        """
        if timeout is not None and not isinstance(timeout, (int, float)):
            raise GraphError(f"[wait] timeout: {timeout!r}; expected seconds or None")
        results = results_of(self._core.wait(timeout), self._types)
        return dict(zip(self._core.output_names, results, strict=True))


class Binding(OneProcess):
    """Fixed input and output buffers, from `Executable.bind`: repeated runs without conversion or copies."""

    def __init__(self, core: _core.Binding, types: dict[str, str]) -> None:
        self._run = core.run
        self._types = types
        if not is_converted(list(types.values())):
            self.run = core.run  # type: ignore[method-assign]  # saves a call where a call is what counts

    def run(self) -> dict[str, Array]:
        """Runs on the bound inputs as they are now; bound outputs are overwritten, others are fresh arrays.

        Returns
        -------
        dict
            Every result by name; those that are bound are the caller's own arrays.

        Raises
        ------
        AscendSchedError
            The first error of the run, by class; the binding stays usable.
        """
        return named_results(self._run(), self._types)
