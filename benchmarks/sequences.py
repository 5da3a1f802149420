"""Sequences of inputs for the benchmarks that ask how well shapes that vary are served."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ascendsched as asc
from ascendsched.demo.models import decoder, resnet18
from ascendsched.tuning.batching import decode_steps
from ascendsched.tuning.requests import Request, read_requests

TRACES = Path(os.environ.get("LLM_TRACES", Path(__file__).resolve().parents[2] / "shared" / "data" / "llm_traces"))
SLOW_S = 0.03  # a run of a model that takes longer is no question of scheduling
Feeds = dict[str, np.ndarray[Any, Any]]


class Sequence(NamedTuple):
    """A model and what it is run on, in order."""

    name: str
    model: Any
    feeds: list[Feeds]


def traces() -> Iterator[tuple[str, list[Request]]]:
    """The public traces that are there, by name; a made one where none is."""
    found = [path for path in sorted(TRACES.glob("*")) if path.suffix in {".csv", ".jsonl"}]
    for path in found:
        yield path.stem, read_requests(path)
    if not found:
        chance = random.Random(0)  # noqa: S311
        times = sorted(chance.uniform(0, 300) for _ in range(400))
        yield "made", [Request(at, chance.randrange(3, 7000), chance.randrange(2, 100)) for at in times]


def decode_feeds(model: Any, batch: int, context: int) -> Feeds:
    """One token for each of `batch` requests with `context` tokens in the cache, of the demo's decoder."""
    feeds: Feeds = {}
    for value in model.graph.input:
        if value.name == "input_ids":
            feeds[value.name] = np.ones((batch, 1), np.int64)
        else:
            dims = value.type.tensor_type.shape.dim
            feeds[value.name] = np.zeros((batch, dims[1].dim_value, context, dims[3].dim_value), np.float32)
    return feeds


def prompt_feeds(model: Any, length: int) -> Feeds:
    """A whole prompt, with an empty cache."""
    return decode_feeds(model, 1, 0) | {"input_ids": np.ones((1, length), np.int64)}


def sequences(runs: int) -> Iterator[Sequence]:
    """Shapes that stay, come back, grow, and never come back; from traces, and made to mislead."""
    small = decoder(vocab=200, layers=2)
    for name, requests in traces():
        steps = [(s.batch, s.context) for s, _ in zip(decode_steps(requests), range(5000), strict=False)]
        busy = max(range(0, max(1, len(steps) - runs), runs), key=lambda i: len(set(steps[i : i + runs])))
        chosen = [(min(batch, 8), max(1, context // 16)) for batch, context in steps[busy : busy + runs]]
        yield Sequence(f"decode, {name}", small, [decode_feeds(small, *step) for step in chosen])
        prompts = [max(1, request.prompt // 64) for request in requests[:runs]]
        yield Sequence(f"prompts, {name}", small, [prompt_feeds(small, length) for length in prompts])
    image = resnet18(shape=(1, 3, 32, 32))
    fixed = [{"x": np.ones((1, 3, 32, 32), np.float32)}] * runs
    yield Sequence("ResNet-18, static", image, fixed)
    yield from adversarial(small, runs)
    yield from catalogue(runs)


def catalogue(runs: int) -> Iterator[Sequence]:
    """Models of the shared catalogue that are here and supported, each on its own inputs in turn."""
    folder = TRACES.parents[1] / "models"
    if not (folder / "catalog.py").is_file():
        return
    sys.path.insert(0, str(folder))
    catalog = importlib.import_module("catalog")
    for name in catalog.names():
        try:
            path, feeds = catalog.load(name)
            exe = asc.compile(path, threads=1)
            start = time.perf_counter()
            for feed in feeds:
                exe.run(feed)
        except (FileNotFoundError, ImportError, importlib.metadata.PackageNotFoundError, asc.AscendSchedError):
            continue
        if (time.perf_counter() - start) / len(feeds) < SLOW_S:
            yield Sequence(name, path, [feeds[i % len(feeds)] for i in range(runs)])


def adversarial(model: Any, runs: int) -> Iterator[Sequence]:
    """Every shape new; two working sets in turn; a burst, then silence."""
    chance = random.Random(0)  # noqa: S311
    new = chance.sample(range(1, 8 * runs), runs)
    yield Sequence("every shape new", model, [decode_feeds(model, 1, n) for n in new])
    sets = [chance.sample(range(1, 200), 5), chance.sample(range(200, 400), 5)]
    period = max(1, runs // 6)
    alternating = [sets[i // period % 2][i % 5] for i in range(runs)]
    yield Sequence("two working sets", model, [decode_feeds(model, 1, n) for n in alternating])
    burst = [40] * (runs // 4) + chance.sample(range(50, 50 + 4 * runs), runs - runs // 4)
    yield Sequence("burst, then new ones", model, [decode_feeds(model, 1, n) for n in burst])
