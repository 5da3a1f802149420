"""Several requests to a small decoder, served in turn, one token each: the shapes change with every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ascendsched.demo.rows import await_run

Feeds = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Workload:
    """Token sequences of all requests, the same for every row of the table.

    Attributes
    ----------
    tokens : tuple of int64 arrays
        One sequence per request: its prompt, then the tokens that the decoding steps are fed.
    prompts : tuple of int
        How many tokens of each sequence are its prompt.
    """

    tokens: tuple[NDArray[np.int64], ...]
    prompts: tuple[int, ...]

    @staticmethod
    def create(prompts: Sequence[int], rounds: int, vocab: int, seed: int = 0) -> Workload:
        """Seeded random tokens for `rounds` steps after each prompt."""
        random = np.random.default_rng(seed)
        tokens = tuple(random.integers(0, vocab, length + rounds) for length in prompts)
        return Workload(tokens, tuple(prompts))

    @property
    def longest(self) -> int:
        """Length of the longest sequence: what a fixed cache must hold."""
        return max(len(tokens) for tokens in self.tokens)


class Engine(Protocol):
    """Something that decodes: it keeps the KV cache of every request."""

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Starts a request."""

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Appends one token and returns the logits after it, [vocab]."""


class AsyncEngine(Engine, Protocol):
    """An engine whose steps can be in flight, one for each request."""

    def launch(self, request: int, token: int) -> Any:
        """Starts a step."""

    def finish(self, request: int, run: Any) -> NDArray[Any]:
        """Waits for a launched step; the logits after it."""


class GrowingEngine:
    """A decoder whose KV cache grows with every token: a new shape each step."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable
        self._ids = executable.inputs[0].name
        self._past = list(executable.inputs[1:])
        self._logits = executable.outputs[0].name
        self._present = [value.name for value in executable.outputs[1:]]
        self._state: dict[int, list[NDArray[Any]]] = {}

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Feeds the whole prompt at once, with an empty cache."""
        self._state[request] = [np.zeros(_empty_shape(value.shape), value.dtype) for value in self._past]
        self._take(request, self._executable.run(self._feeds(request, prompt.reshape(1, -1))))

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Feeds one token."""
        return self._take(request, self._executable.run(self._feeds(request, _one(token))))

    def launch(self, request: int, token: int) -> Any:
        """Starts feeding one token."""
        return self._executable.run_async(self._feeds(request, _one(token)))

    def finish(self, request: int, run: Any) -> NDArray[Any]:
        """Waits for a launched step."""
        return self._take(request, await_run(run))

    def _feeds(self, request: int, ids: NDArray[np.int64]) -> Feeds:
        feeds = {value.name: array for value, array in zip(self._past, self._state[request], strict=True)}
        feeds[self._ids] = ids
        return feeds

    def _take(self, request: int, outputs: Feeds) -> NDArray[Any]:
        self._state[request] = [outputs[name] for name in self._present]
        logits: NDArray[Any] = outputs[self._logits][0, -1]
        return logits


class FixedEngine:
    """A decoder with a KV cache of fixed capacity: every step has the same shapes. Prompts are fed token by token."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable
        self._ids, self._position = executable.inputs[0].name, executable.inputs[1].name
        self._cache = list(executable.inputs[2:])
        self._logits = executable.outputs[0].name
        self._updated = [value.name for value in executable.outputs[1:]]
        self._state: dict[int, Feeds] = {}

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Feeds the prompt one token at a time."""
        feeds: Feeds = {value.name: np.zeros(value.shape, value.dtype) for value in self._cache}
        self._state[request] = {**feeds, self._ids: _one(0), self._position: np.full(1, -1, np.int64)}
        for token in prompt.tolist():
            self.step(request, token)

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Feeds one token at the next position."""
        return self._take(request, self._executable.run(self._feeds(request, token)))

    def launch(self, request: int, token: int) -> Any:
        """Starts feeding one token at the next position."""
        return self._executable.run_async(self._feeds(request, token))

    def finish(self, request: int, run: Any) -> NDArray[Any]:
        """Waits for a launched step."""
        return self._take(request, await_run(run))

    def _feeds(self, request: int, token: int) -> Feeds:
        feeds = self._state[request]
        feeds[self._ids][...] = token
        feeds[self._position] += 1
        return feeds

    def _take(self, request: int, outputs: Feeds) -> NDArray[Any]:
        for value, name in zip(self._cache, self._updated, strict=True):
            self._state[request][value.name] = outputs[name]
        logits: NDArray[Any] = outputs[self._logits][0, -1]
        return logits


class BoundEngine:
    """As `FixedEngine`, through bindings: two sets of caches per request, read and written in turn, without copies."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable
        self._bound: dict[int, _Bound] = {}

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Binds the request's buffers and feeds the prompt one token at a time."""
        self._bound[request] = _Bound(self._executable)
        for token in prompt.tolist():
            self.step(request, token)

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Feeds one token at the next position."""
        return self._bound[request].step(token)


class _Bound:
    def __init__(self, executable: Any) -> None:
        inputs, outputs = executable.inputs, executable.outputs
        self._ids = np.zeros((1, 1), np.int64)
        self._position = np.full(1, -1, np.int64)
        self._logits = np.zeros(outputs[0].shape, outputs[0].dtype)
        caches = [[np.zeros(value.shape, value.dtype) for value in inputs[2:]] for _ in range(2)]
        self._bindings = []
        for read, write in (caches, caches[::-1]):
            feeds = {inputs[0].name: self._ids, inputs[1].name: self._position}
            feeds |= {value.name: array for value, array in zip(inputs[2:], read, strict=True)}
            results = {outputs[0].name: self._logits}
            results |= {value.name: array for value, array in zip(outputs[1:], write, strict=True)}
            self._bindings.append(executable.bind(feeds, outputs=results))

    def step(self, token: int) -> NDArray[Any]:
        self._ids[...] = token
        self._position += 1
        self._bindings[self._position[0] & 1].run()
        logits: NDArray[Any] = self._logits[0, -1]
        return logits


class Server:
    """Serves a workload on one engine: every request in turn, one token each; it knows how far it is."""

    def __init__(self, engine: Engine, workload: Workload) -> None:
        self._engine, self._workload = engine, workload
        self._next = 0
        for request, (tokens, prompt) in enumerate(zip(workload.tokens, workload.prompts, strict=True)):
            engine.prefill(request, tokens[:prompt])

    def serve(self, rounds: int, keep: list[NDArray[Any]] | None = None) -> None:
        """Serves the next rounds, one step after another; appends copies of the logits to `keep`."""
        for request, token in self._steps(rounds):
            logits = self._engine.step(request, token)
            if keep is not None:
                keep.append(logits.copy())

    def serve_overlapped(self, rounds: int, keep: list[NDArray[Any]] | None = None) -> None:
        """The same with one step of every request in flight. Only for an `AsyncEngine`."""
        engine = cast(AsyncEngine, self._engine)
        flight: dict[int, Any] = {}

        def finish(request: int) -> None:
            logits = engine.finish(request, flight.pop(request))
            if keep is not None:
                keep.append(logits.copy())

        for request, token in self._steps(rounds):
            if request in flight:
                finish(request)
            flight[request] = engine.launch(request, token)
        for request in list(flight):
            finish(request)

    def _steps(self, rounds: int) -> Iterator[tuple[int, int]]:
        first, self._next = self._next, self._next + rounds
        for index in range(first, first + rounds):
            for request, (tokens, prompt) in enumerate(zip(self._workload.tokens, self._workload.prompts, strict=True)):
                yield request, int(tokens[prompt + index])


def _one(token: int) -> NDArray[np.int64]:
    return np.array([[token]], dtype=np.int64)


def _empty_shape(declared: Sequence[int | str | None]) -> tuple[int, ...]:
    """[batch, heads, past, width] of a cache without tokens, for one request."""
    shape = [dim if isinstance(dim, int) else 1 for dim in declared]
    shape[-2] = 0
    return tuple(shape)
