"""Several requests to a small decoder, served in turn, one token each: the shapes change with every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Feeds = dict[str, NDArray[Any]]
Run = Callable[[Feeds], Mapping[str, NDArray[Any]]]
Value = Any  # an entry of Executable.inputs or outputs


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


class GrowingEngine:
    """A decoder whose KV cache grows with every token: a new shape each step."""

    def __init__(self, run: Run, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self.run = run
        self._ids = inputs[0].name
        self._past = list(inputs[1:])
        self._logits = outputs[0].name
        self._present = [value.name for value in outputs[1:]]
        self._state: dict[int, list[NDArray[Any]]] = {}

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Feeds the whole prompt at once, with an empty cache."""
        empty = [np.zeros(_empty_shape(value.shape), value.dtype) for value in self._past]
        self._state[request] = empty
        self._feed(request, prompt.reshape(1, -1))

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Feeds one token."""
        return self._feed(request, np.array([[token]], dtype=np.int64))

    def _feed(self, request: int, ids: NDArray[np.int64]) -> NDArray[Any]:
        feeds = {value.name: array for value, array in zip(self._past, self._state[request], strict=True)}
        feeds[self._ids] = ids
        outputs = self.run(feeds)
        self._state[request] = [outputs[name] for name in self._present]
        logits: NDArray[Any] = outputs[self._logits][0, -1]
        return logits


class FixedEngine:
    """A decoder with a KV cache of fixed capacity: every step has the same shapes. Prompts are fed token by token."""

    def __init__(self, run: Run, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self.run = run
        self._ids, self._position = inputs[0].name, inputs[1].name
        self._cache = list(inputs[2:])
        self._logits = outputs[0].name
        self._updated = [value.name for value in outputs[1:]]
        self._feeds: dict[int, Feeds] = {}

    def prefill(self, request: int, prompt: NDArray[np.int64]) -> None:
        """Feeds the prompt one token at a time."""
        self._feeds[request] = {value.name: np.zeros(value.shape, value.dtype) for value in self._cache}
        self._feeds[request][self._ids] = np.zeros((1, 1), np.int64)
        self._feeds[request][self._position] = np.full(1, -1, np.int64)
        for token in prompt.tolist():
            self.step(request, token)

    def step(self, request: int, token: int) -> NDArray[Any]:
        """Feeds one token at the next position."""
        feeds = self._feeds[request]
        feeds[self._ids][...] = token
        feeds[self._position] += 1
        outputs = self.run(feeds)
        for value, name in zip(self._cache, self._updated, strict=True):
            feeds[value.name] = outputs[name]
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


def serve(engine: Engine, workload: Workload, first: int, rounds: int, keep: list[NDArray[Any]] | None = None) -> None:
    """Feeds `rounds` tokens to every request in turn, from the `first` after its prompt; round 0 starts the requests.

    Copies of the logits are appended to `keep`, round by round, request by request.
    """
    requests = list(zip(workload.tokens, workload.prompts, strict=True))
    if first == 0:
        for number, (tokens, prompt) in enumerate(requests):
            engine.prefill(number, tokens[:prompt])
    for index in range(first, first + rounds):
        for number, (tokens, prompt) in enumerate(requests):
            logits = engine.step(number, int(tokens[prompt + index]))
            if keep is not None:
                keep.append(logits.copy())


def _empty_shape(declared: Sequence[int | str | None]) -> tuple[int, ...]:
    """[batch, heads, past, width] of a cache without tokens, for one request."""
    shape = [dim if isinstance(dim, int) else 1 for dim in declared]
    shape[-2] = 0
    return tuple(shape)
