"""An executable whose runs are padded to buckets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ascendsched.arrays import normalize
from ascendsched.errors import AscendSchedError, GraphError
from ascendsched.executable import Executable
from ascendsched.native import core as _core
from ascendsched.packed import is_kind
from ascendsched.runs import Binding, Run
from ascendsched.setup import Setup
from ascendsched.tuning.buckets import Buckets
from ascendsched.tuning.padding import Padded, Padding

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


class PaddedExecutable(Executable):
    """See `Options.buckets`."""

    def __init__(self, core: _core.Executable, setup: Setup, buckets: Buckets) -> None:
        super().__init__(core, setup)
        self._padding = Padding(buckets, self.inputs, self.outputs)
        self._names = [info.name for info in self.inputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Array | tuple[Array, ...]:
        """As `Executable.__call__`."""
        if kwargs or len(args) != len(self._names):
            return super().__call__(*args, **kwargs)  # which calls run, or complains
        results = tuple(self.run(dict(zip(self._names, args, strict=True))).values())
        return results[0] if len(results) == 1 else results

    def run(self, feeds: Mapping[str, Any]) -> Arrays:
        """As `Executable.run`."""
        padded = self._padding.pad(_checked("run", feeds))
        if padded is None:
            return super().run(feeds)
        if padded.is_check:
            exact = super().run(feeds)
            self._check(exact, padded)
            return exact
        return self._padding.cut(super().run(padded.feeds), padded)

    def _check(self, exact: Arrays, padded: Padded) -> None:
        """Run padded what has run as given, and compare."""
        try:
            results = self._padding.cut(super().run(padded.feeds), padded)
        except AscendSchedError as error:
            self._padding.refuse(padded.size, f"the padded run fails: {error}")
        else:
            self._padding.compare(exact, results, padded)

    def run_async(self, feeds: Mapping[str, Any]) -> Run:
        """As `Executable.run_async`."""
        padded = self._padding.pad(_checked("run_async", feeds))
        if padded is None:
            return super().run_async(feeds)
        if padded.is_check:
            run = super().run_async(feeds)
            try:
                exact = run.wait()
            except AscendSchedError:
                return run  # whose wait raises it again
            self._check(exact, padded)
            return run
        return PaddedRun(super().run_async(padded.feeds), self._padding, padded)

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array] | None = None) -> Binding:
        """As `Executable.bind`; each run copies its inputs to be padded, and its results to be cut."""
        types = {info.name: info.dtype for info in self.inputs if not is_kind(info.dtype)}
        # In place, or copied once: what each run reads, padded or not.
        read = {n: normalize(n, types[n], a) if n in types else a for n, a in _checked("bind", inputs).items()}
        exact = super().bind(read, outputs)
        return PaddedBinding(exact, self, read, dict(outputs or {}))

    def stats(self) -> dict[str, int]:
        """As `Executable.stats`, with counters of buckets."""
        return {**super().stats(), **self._padding.stats()}

    def explain(self) -> str:
        """As `Executable.explain`, with buckets."""
        return super().explain() + self._padding.explain()


class PaddedRun(Run):
    """A padded run in flight."""

    def __init__(self, run: Run, padding: Padding, padded: Padded) -> None:
        super().__init__(run._core, run._types)
        self._padding = padding
        self._padded = padded

    def wait(self, timeout: float | None = None) -> Arrays:
        """As `Run.wait`."""
        return self._padding.cut(super().wait(timeout), self._padded)


class PaddedBinding(Binding):
    """A binding whose runs are padded while there is a bucket for them; it holds the same buffers without padding."""

    def __init__(self, exact: Binding, exe: PaddedExecutable, inputs: Arrays, outputs: Arrays) -> None:
        self._exact = exact
        self._exe = exe
        self._inputs = inputs
        self._outputs = outputs

    def run(self) -> Arrays:
        """As `Binding.run`."""
        padding = self._exe._padding
        padded = padding.pad(self._inputs)
        if padded is None:
            return self._exact.run()
        if padded.is_check:
            exact = self._exact.run()
            self._exe._check(exact, padded)
            return exact
        results = padding.cut(Executable.run(self._exe, padded.feeds), padded)
        for name, buffer in self._outputs.items():
            if buffer.shape != results[name].shape:
                raise GraphError(
                    f"[bind] output '{name}': bound array has shape {buffer.shape}, the result has "
                    f"{results[name].shape}; bind an array of that shape"
                )
            np.copyto(buffer.view(results[name].dtype), results[name])
            results[name] = buffer
        return results


def _checked(where: str, feeds: Any) -> Mapping[str, Any]:
    if not isinstance(feeds, Mapping):
        raise GraphError(f"[{where}] arrays by name: got {type(feeds).__name__}; pass a dict such as {{'x': x}}")
    return feeds
