"""An executable whose runs are padded to buckets, or whose next shapes are resolved ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ascendsched.errors import AscendSchedError, GraphError
from ascendsched.executable import Executable, Run
from ascendsched.native import core as _core
from ascendsched.options import Options
from ascendsched.setup import Setup
from ascendsched.tuning.ahead import Ahead
from ascendsched.tuning.padding import Padded, Padding

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


class GuidedExecutable(Executable):
    """See `Options.buckets` and `Options.predict`. Bound runs are neither padded nor foreseen."""

    def __init__(self, core: _core.Executable, setup: Setup, options: Options) -> None:
        super().__init__(core, setup)
        buckets = options.buckets
        self._padding = None if buckets is None else Padding(buckets, self.inputs, self.outputs)
        self._ahead = Ahead(core) if options.predict else None
        self._names = [info.name for info in self.inputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Array | tuple[Array, ...]:
        """As `Executable.__call__`."""
        if kwargs or len(args) != len(self._names):
            return super().__call__(*args, **kwargs)  # which calls run, or complains
        results = tuple(self.run(dict(zip(self._names, args, strict=True))).values())
        return results[0] if len(results) == 1 else results

    def run(self, feeds: Mapping[str, Any]) -> Arrays:
        """As `Executable.run`."""
        padded = None if self._padding is None else self._padding.pad(_checked("run", feeds))
        if self._padding is None or padded is None:
            return self._run_once(feeds)
        if padded.is_check:
            exact = super().run(feeds)
            self._check(self._padding, exact, padded)
            return exact
        return self._padding.cut(self._run_once(padded.feeds), padded)

    def _run_once(self, feeds: Mapping[str, Any]) -> Arrays:
        if self._ahead is None:
            return super().run(feeds)
        self._ahead.begin()
        results = super().run(feeds)
        self._ahead.end(self._shapes(feeds))
        return results

    def _check(self, padding: Padding, exact: Arrays, padded: Padded) -> None:
        """Run padded what has run as given, and compare."""
        try:
            results = padding.cut(super().run(padded.feeds), padded)
        except AscendSchedError as error:
            padding.refuse(padded.size, f"the padded run fails: {error}")
        else:
            padding.compare(exact, results, padded)

    def run_async(self, feeds: Mapping[str, Any]) -> Run:
        """As `Executable.run_async`."""
        padded = None if self._padding is None else self._padding.pad(_checked("run_async", feeds))
        if self._padding is None or padded is None:
            return super().run_async(feeds)
        if padded.is_check:
            run = super().run_async(feeds)
            try:
                exact = run.wait()
            except AscendSchedError:
                return run  # whose wait raises it again
            self._check(self._padding, exact, padded)
            return run
        return PaddedRun(super().run_async(padded.feeds), self._padding, padded)

    def _shapes(self, feeds: Mapping[str, Any]) -> list[Any] | None:
        """Shapes in graph order, as they are; None for what has none of its own, such as lists."""
        try:
            return [feeds[name].shape for name in self._names]
        except (AttributeError, KeyError):
            return None

    def stats(self) -> dict[str, int]:
        """As `Executable.stats`, with counters of buckets and of shapes resolved ahead."""
        extra = [part.stats() for part in (self._padding, self._ahead) if part is not None]
        return {**super().stats(), **{name: value for part in extra for name, value in part.items()}}

    def explain(self) -> str:
        """As `Executable.explain`, with buckets and prediction."""
        parts = [part.explain() for part in (self._padding, self._ahead) if part is not None]
        return super().explain() + "".join(parts)


class PaddedRun(Run):
    """A padded run in flight."""

    def __init__(self, run: Run, padding: Padding, padded: Padded) -> None:
        super().__init__(run._core, run._types)
        self._padding = padding
        self._padded = padded

    def wait(self, timeout: float | None = None) -> Arrays:
        """As `Run.wait`."""
        return self._padding.cut(super().wait(timeout), self._padded)


def _checked(where: str, feeds: Any) -> Mapping[str, Any]:
    if not isinstance(feeds, Mapping):
        raise GraphError(f"[{where}] arrays by name: got {type(feeds).__name__}; pass a dict such as {{'x': x}}")
    return feeds
