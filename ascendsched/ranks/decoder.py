"""A tensor-parallel decoder: each rank holds some heads and some columns, and two sums per layer make them whole.

The division is that of Shoeybi et al., "Megatron-LM", arXiv:1909.08053.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ascendsched.graph import Graph, Tensor
from ascendsched.ranks import operators
from ascendsched.ranks.group import Array
from ascendsched.sim.decoder import DecoderSize, build

#: Weights of which a rank holds some columns, or some rows.
BY_COLUMNS = (".query.weight", ".key.weight", ".value.weight", ".gate.weight", ".up.weight")
BY_ROWS = (".out.weight", ".down.weight")
BY_HEADS = (".keys", ".values")


def build_shard(
    size: DecoderSize, batch: int, tokens: int, cached: int, shards: int
) -> tuple[Graph, dict[str, tuple[int, ...]]]:
    """One rank's graph and the shapes of its inputs, the count of steps excepted. One shard: the whole model."""
    if shards == 1:
        return build(size, batch, tokens, cached)
    steps: list[Tensor] = []

    def join(graph: Graph, partial: Tensor, name: str) -> Tensor:
        if not steps:
            steps.append(operators.step_input(graph))
        return operators.all_reduce(graph, partial, steps[0], name=f"{name}.all_reduce")

    return build(size, batch, tokens, cached, shards, join)


def make_feeds(size: DecoderSize, shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, Array]:
    """Seeded weights and inputs of the whole model."""
    random = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for name, shape in shapes.items():
        if name == "ids":
            feeds[name] = random.integers(0, size.vocabulary, shape)
        elif name == "mask":
            feeds[name] = np.zeros(shape, np.float32)
        elif name.endswith(".norm"):
            feeds[name] = np.ones(shape, np.float32)
        else:
            feeds[name] = (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    return feeds


def shard_feeds(feeds: Mapping[str, Any], rank: int, shards: int) -> dict[str, Array]:
    """What of the whole model's inputs one rank holds."""
    return {name: np.ascontiguousarray(_share(name, array, rank, shards)) for name, array in feeds.items()}


def _share(name: str, array: Array, rank: int, shards: int) -> Array:
    if name.endswith(BY_COLUMNS) or name.endswith(BY_HEADS):
        return np.split(array, shards, axis=1)[rank]
    if name.endswith(BY_ROWS):
        return np.split(array, shards, axis=0)[rank]
    return array
