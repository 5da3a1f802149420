"""`compile` and what it returns: a plan on one device."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ascendsched import plugins
from ascendsched.errors import DeviceError, GraphError, PlanError, UnsupportedError
from ascendsched.graph import Graph
from ascendsched.native import core as _core
from ascendsched.one_process import OneProcess
from ascendsched.options import MAX_WORKERS, Options, check_isa, check_threads, default_threads, from_environment
from ascendsched.packed import InputTypes, is_converted, is_kind, named_results, results_of
from ascendsched.runs import Binding, Run
from ascendsched.setup import Setup, SourceFile
from ascendsched.tensor_info import TensorInfo, info_of

if TYPE_CHECKING:
    from ascendsched.profile import Profile
    from ascendsched.tasks import Task

Array = np.ndarray[Any, Any]


class PlanView:
    """The compiled plan, to read; as a string, its text."""

    def __init__(self, core: _core.Executable) -> None:
        self._core = core

    def text(self) -> str:
        """The plan as text; the same graph and options give the same bytes."""
        return self._core.plan_text

    def __str__(self) -> str:
        return self.text()

    @property
    def dynamic_reasons(self) -> list[str]:
        """Why shapes can vary from run to run; empty for a static plan."""
        return self._core.dynamic_reasons


class _Closed:
    """In place of the core of an executable that was closed."""

    def __getattr__(self, name: str) -> NoReturn:
        raise DeviceError("[executable] it was closed; compile or load the model again")


_CLOSED: Any = _Closed()


class Executable(OneProcess):
    """A compiled model on one device; see `compile`. Thread-safe: concurrent runs are executed one after the other.

    It gives back threads and memory when nothing refers to it any more, or at `close`, or at the end of a ``with``.
    """

    _instead = "share it among threads; for another process, save it here and load it there"

    def __init__(self, core: _core.Executable, setup: Setup) -> None:
        self._core = core
        self._setup = setup
        self._inputs = [info_of(setup.kinds, *i) for i in core.inputs]
        self._outputs = [
            info_of(setup.kinds, name, dtype, setup.results.get(name) if shape is None else shape)
            for name, dtype, shape in core.outputs
        ]
        self._types = [o.dtype for o in self._outputs]
        self._types_by_name = {o.name: o.dtype for o in self._outputs}
        self._is_converted = is_converted(self._types)

    def close(self) -> None:
        """Gives up the core with its threads and memory; what is asked of the executable afterwards is a `DeviceError`.

        Runs in flight, and bindings, keep what they need until they are gone themselves. Closing again does nothing.
        """
        self._core = _CLOSED

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def inputs(self) -> list[TensorInfo]:
        """Inputs in graph order."""
        return self._inputs

    @property
    def outputs(self) -> list[TensorInfo]:
        """Outputs in graph order; a shape that is not the same in every run is told as the model declares it."""
        return self._outputs

    @property
    def mode(self) -> str:
        """The mode asked for: "host", "sink" or "auto"."""
        return self._setup.mode

    @property
    def has_virtual_time(self) -> bool:
        """Whether the device's time is only in profiles, and not what a caller waits for."""
        return self._setup.device.partition(":")[0] == "sim"

    @property
    def plan(self) -> PlanView:
        """The compiled plan."""
        return PlanView(self._core)

    def __call__(self, *args: Any, **kwargs: Any) -> Array | tuple[Array, ...]:
        """Runs the model on arrays in graph order, or by name; returns one array, or a tuple of several.

        Raises
        ------
        GraphError
            For inputs that do not fit, and data that an operator refuses.
        """
        if kwargs:
            if args:
                raise GraphError("[run] pass all inputs in graph order or all by name, not both")
            results = list(self.run(kwargs).values())
        else:
            results = self._core.call(*args)
            if self._is_converted:
                results = results_of(results, self._types)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Runs the model on inputs by name; results by name, in fresh arrays. It raises what a call raises."""
        results = self._core.run(feeds if type(feeds) is dict else _by_name("run", feeds))
        return named_results(results, self._types_by_name) if self._is_converted else results

    def run_async(self, feeds: Mapping[str, Any]) -> Run:
        """Launches a run and returns; `Run.wait` has the results. Do not change the inputs before it completes.

        Launching itself happens on the calling thread, and blocks where the device's queue is full or where a shape
        depends on data that the device must compute first. Inputs that do not fit are a `GraphError` at once; errors of
        the run are raised by `Run.wait`.
        """
        return Run(self._core.run_async(_by_name("run_async", feeds)), self._types)

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array] | None = None) -> Binding:
        """Fixes input and output buffers for repeated runs.

        Parameters
        ----------
        inputs
            Arrays by name, read at every run; all inputs. Arrays that cannot be used in place are copied once, now.
        outputs
            Writeable C-contiguous arrays by name, overwritten by every run of this binding; they share memory with no
            input and with no other output. Results that are not bound come back as fresh arrays.

        Raises
        ------
        GraphError
            For inputs that do not fit, and outputs that cannot be written in place.
        """
        for info in self._outputs if outputs else ():
            if is_kind(info.dtype) and info.name in outputs:  # type: ignore[operator]  # not None here
                raise UnsupportedError(
                    f"[bind] output '{info.name}' is a {info.dtype}; only tensors of numbers are bound"
                )
        core = self._core.bind(_by_name("bind", inputs), {} if outputs is None else _by_name("bind", outputs))
        return Binding(core, self._types_by_name)

    def warmup(self, shapes: Iterable[Mapping[str, Sequence[int]]], values: Mapping[str, Any] | None = None) -> None:
        """Makes the executable ready for runs of the given shapes, so that their first run is as fast as the next ones.

        The model runs once for each of them, on zeros: afterwards tilings are cached and, unless in host mode,
        schedules are loaded. ``stats()["warmups"]`` counts these runs.

        Parameters
        ----------
        shapes
            For each signature the shapes of the inputs by name; an input may be left out where the model fixes its
            shape, or where `values` has it.
        values
            Arrays by name to run on, for inputs whose contents shapes or branches depend on.

        Raises
        ------
        GraphError
            For shapes that do not fit the model, and where it refuses zeros; give that input a value then.
        """
        from ascendsched.warmup import warm_up

        warm_up(self._core, self._inputs, shapes, values or {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the compiled model, its settings and the shapes that ran last to a file for `load`.

        An existing file is replaced at once or, on an error, left as it is.

        Raises
        ------
        GraphError
            Where the model's own file has changed since it was compiled.
        WriteError
            Where the file cannot be written.
        """
        from ascendsched import store

        store.save(self._opened(), self._setup, path)

    def explain(self) -> str:
        """Why the whole and each node run as they do, and what the other ways would cost as far as it was measured."""
        from ascendsched.tuning.evidence import explain_choice

        options = self._setup.options or from_environment()
        is_static = not self._core.dynamic_reasons
        return self._core.explain() + explain_choice(self.stats(), is_static, self.mode, options.schedule_cache_bytes)

    def tasks(self) -> list[Task]:
        """What each task works on, in plan order, with the shapes of the last run."""
        from ascendsched.tasks import read_tasks

        return read_tasks(self._opened())

    def stats(self) -> dict[str, int]:
        """Counters since compilation: runs, launches, cache hits and misses; times in ``_ns``, sizes in ``_bytes``."""
        return {name: int(value) for name, value in self._core.stats()}

    def resize_caches(self, tiling_bytes: int, schedule_bytes: int) -> None:
        """Changes the bounds, in bytes, of the tiling cache and of each segment's schedule cache, between runs."""
        for value in (tiling_bytes, schedule_bytes):
            if not isinstance(value, int) or not 0 <= value < 1 << 63:
                raise GraphError(
                    f"[options] cache bounds are 0 or more bytes, got {tiling_bytes!r}, {schedule_bytes!r}"
                )
        self._core.resize_caches(tiling_bytes, schedule_bytes)

    def resize_workers(self, workers: int) -> None:
        """Changes the number of threads that make tilings, between runs: see `Options.pipeline_workers`, from 1.

        Whether runs are pipelined at all stays as it was; ``stats()["pipeline_workers"]`` has the number of now.
        """
        if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= MAX_WORKERS:
            raise GraphError(f"[options] workers: {workers!r}; expected 1 to {MAX_WORKERS}")
        self._core.resize_workers(workers)

    @contextmanager
    def profile(self, capacity_bytes: int | None = None) -> Iterator[Profile]:
        """Records the runs started inside the block.

        Parameters
        ----------
        capacity_bytes
            Bound of the recording, in bytes; spans that do not fit are counted as lost.
        """
        from ascendsched.profile.profile import DEFAULT_CAPACITY_BYTES, Profile

        capacity = DEFAULT_CAPACITY_BYTES if capacity_bytes is None else capacity_bytes
        if capacity < 0:
            raise PlanError(f"[profile] capacity_bytes is 0 or more, got {capacity}")
        profile = Profile()
        before = self.stats()
        self._core.start_profile(capacity)
        try:
            yield profile
        finally:
            log = self._core.stop_profile()
            profile.finish(log, {name: value - _base(name, before) for name, value in self.stats().items()})

    def _opened(self) -> _core.Executable:
        """The core, for functions that take it."""
        if self._core is _CLOSED:
            self._core.inputs  # noqa: B018 - raises
        return self._core

    def __repr__(self) -> str:
        return f"<Executable {len(self._inputs)} inputs, {len(self._outputs)} outputs, mode {self.mode}>"


def _base(name: str, before: Mapping[str, int]) -> int:
    """What a counter is counted from in a profile; bytes, entries and workers are levels, and count from 0."""
    return 0 if name.endswith(("_bytes", "_entries", "_workers")) else before.get(name, 0)


def _by_name(where: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    if type(arrays) is dict:
        return arrays
    if not isinstance(arrays, Mapping):
        raise GraphError(f"[{where}] arrays by name: got {type(arrays).__name__}; pass a dict such as {{'x': x}}")
    return dict(arrays)


def _check_names(device: object, mode: object, options: object) -> None:
    for what, value in (("device", device), ("mode", mode)):
        if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
            raise PlanError(
                f"[compile] {what}: {value!r}; expected a name such as {'cpu' if what == 'device' else 'auto'}"
            )
    if options is not None and not isinstance(options, Options):
        raise PlanError(f"[compile] options: {type(options).__name__}; expected ascendsched.Options(...)")


def compile(
    model: str | os.PathLike[str] | bytes | Graph | Any,
    device: str = "cpu",
    mode: str = "auto",
    threads: int | None = None,
    options: Options | str | os.PathLike[str] | None = None,
) -> Executable:
    """Compiles a model for a device.

    Parameters
    ----------
    model
        Path of an ONNX file, its bytes, an ``onnx.ModelProto``, or a `Graph`.
    device
        One of `devices`: "cpu", "null" (kernels do nothing), "timed" or "timed:us=20" (kernels take a set time without
        using a CPU), "sim" or "sim:cuda-a100" (kernels do nothing, and profiles are in virtual time by a cost profile),
        or what an installed package brings.
    mode
        "host": operator by operator. "sink": resolved once per shape, one submit per run. "auto": sink where shapes are
        static or come back.
    threads
        Bound of the threads that kernels may use; default: the CPUs that this process may use.
    options
        Further settings; default: `Options` changed by ``ASCENDSCHED_*`` variables. A path: settings of
        ``ascendsched tune``, whose mode and threads hold too unless others are given.

    Raises
    ------
    GraphError
        For a malformed model.
    UnsupportedError
        Lists every operator of the model that is not supported.
    DeviceUnavailableError
        For an unknown device.
    """
    if isinstance(options, (str, os.PathLike)):
        from ascendsched.tuning.settings import read_settings

        tuned = read_settings(options)
        mode = tuned.mode if mode == "auto" else mode
        threads, options = tuned.threads if threads is None else threads, tuned.options
    _check_names(device, mode, options)
    files: dict[Path, os.stat_result] = {}
    kinds: dict[str, str] = {}
    results: dict[str, tuple[int | str | None, ...]] = {}
    if isinstance(model, Graph):
        model.check_names()
        graph = model.core
    else:
        from ascendsched.frontends import onnx as frontend

        graph = frontend.load(model, files, kinds, results)
    read = tuple(SourceFile.read(*file) for file in files.items())
    setup = Setup(device, mode, threads, options, read, kinds, results)
    return build(graph, setup, keep_graph=isinstance(model, Graph))


def build(graph: _core.Graph, setup: Setup, *, keep_graph: bool = False) -> Executable:
    """Compiles a graph as `setup` says. Unless it is to be kept, it is empty afterwards."""
    _check_names(setup.device, setup.mode, setup.options)
    o = setup.options if setup.options is not None else from_environment()
    check_isa()
    plugins.load(setup.device)
    device = setup.device
    if device.partition(":")[0] == "sim":
        from ascendsched.sim.device import resolve_device

        device = resolve_device(device, o.pipeline_workers)
    core = _core.compile(
        graph,
        device=device,
        mode=setup.mode,
        threads=default_threads() if setup.threads is None else check_threads(setup.threads),
        memory_limit_bytes=o.memory_limit_bytes,
        tiling_cache_bytes=o.tiling_cache_bytes,
        schedule_cache_bytes=o.schedule_cache_bytes,
        memo=o.memo,
        fuse=o.fuse,
        use_onednn=o.onednn,
        pipeline_workers=o.pipeline_workers,
        streams=o.streams or 0,
        normalize=InputTypes(setup.kinds),
        keep_graph=keep_graph,
    )
    if o.predict:
        from ascendsched.tuning.foresight import foresee

        foresee(core)
    if o.buckets is None:
        return Executable(core, setup)
    from ascendsched.tuning.padded import PaddedExecutable

    return PaddedExecutable(core, setup, o.buckets)
