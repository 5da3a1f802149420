"""Numbers that torch computes of sizes and of elements: inside graphs, between ours and torch's, and as results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ascendsched import torch as back_end  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_torch")]

OF_SIZES: dict[str, Callable[[Any, int], Any]] = {
    "logarithm": lambda x, n: x * 2 ** math.ceil(math.log2(n)) + math.log2(n),
    "square root": lambda x, n: x / math.sqrt(n),
    "sines": lambda x, n: x * math.sin(n) + math.cos(n) + math.tan(n) + math.tanh(n / 50) + math.sinh(n / 30),
    "arcs": lambda x, n: x * math.asin(1 / n) + math.acos(1 / n) + math.atan(n) + math.cosh(n / 30),
    "powers": lambda x, n: x * n**2 + n**0.5 + n**-1.5,
    "distance": lambda x, n: x * abs(n - 20),
    "rounded": lambda x, n: x * round(n * 0.5) + round(n / 3),
    "shifts": lambda x, n: x * ((n - 20) >> 2) + ((n - 20) << 1),
    "bits": lambda x, n: x * (n & 5) + (n | 8) + (n ^ 3),
}


def _check(function: Callable[..., Any]) -> None:
    run = torch.compile(function, backend=back_end.backend, dynamic=True)
    for n in (8, 7, 29, 64):
        x = torch.randn(n, 3, dtype=torch.float64)
        got, want = run(x), function(x)
        assert type(got) is type(want)
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    assert back_end.stats()["graphs"] == 1


@pytest.mark.parametrize("kind", OF_SIZES)
def test_factors_made_of_sizes_are_computed_in_the_graph(kind: str) -> None:
    _check(lambda x: OF_SIZES[kind](x, x.shape[0]))
    assert back_end.stats()["fallbacks"] == {}


def test_the_logarithm_of_every_power_of_two_is_whole() -> None:
    def function(x: Any) -> Any:
        return x + math.ceil(math.log2(x.shape[0]))

    run = torch.compile(function, backend=back_end.backend, dynamic=True)
    for exponent in range(1, 21):
        x = torch.zeros(2**exponent, dtype=torch.uint8)
        assert int(run(x)[0]) == exponent


def test_a_factor_that_torch_reads_is_a_float() -> None:
    _check(lambda x: x * round(x.shape[0] * 0.3, 1))
    assert any("digits" in reason for reason in back_end.stats()["fallbacks"])


def test_sizes_and_factors_are_returned() -> None:
    _check(lambda x: (x * 2 + 1, math.sqrt(x.shape[0]) * 2, x.shape[0] * 3 + 1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (x.abs().sum().item() ** 0.5) + math.ceil(x.abs().sum().item()),
        lambda x: torch.zeros(int(x.abs().sum().item())).sum() + x,
        lambda x: (x + 1, x.sum().item() * 2, (x > 0).sum().item() * 2 + 1),
    ],
    ids=["factor", "size", "results"],
)
def test_numbers_that_torch_reads_from_tensors_are_taken(function: Callable[..., Any]) -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        _check(function)
    assert any("_local_scalar_dense" in reason for reason in back_end.stats()["fallbacks"])
