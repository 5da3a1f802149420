"""What a model changes in place is changed as in torch: where it lies, in any layout, beside what torch runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import ascendsched as asc  # noqa: E402
from ascendsched import torch as back_end  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_torch")]


def _check(function: Callable[..., Any], args: tuple[Any, ...], **settings: Any) -> dict[str, Any]:
    """Runs some times and compares results and arguments; what the back end counted."""
    expected = copy.deepcopy(args)  # together, so that shared memory stays shared
    run = torch.compile(function, backend=back_end.backend, **settings)
    for _ in range(4):
        want, got = function(*expected), run(*args)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(args, expected)
    return back_end.stats()


def _append(cache: Any, at: Any, rows: Any) -> Any:
    cache.index_copy_(1, at, rows)
    return (cache * 2).sum(-1)


CACHE, AT, ROWS = (2, 6, 3), torch.tensor([4]), (2, 1, 3)


def test_a_cache_is_written_where_it_lies() -> None:
    stats = _check(_append, (torch.randn(*CACHE), AT, torch.randn(*ROWS)))
    assert stats["updates"] == stats["updates_in_place"] == 1


def test_a_cache_in_another_layout_is_written_too() -> None:
    _check(_append, (torch.randn(6, 2, 3).transpose(0, 1), AT, torch.randn(*ROWS)))
    _check(_append, (torch.randn(2, 6, 7)[:, :, 1::2], AT, torch.randn(*ROWS)))


def test_a_cache_that_is_read_as_it_was_is_not_overwritten_early() -> None:
    def function(cache: Any, at: Any, rows: Any) -> Any:
        before = cache.sum(1)
        cache.index_copy_(1, at, rows)
        return before + cache.mean(1)

    stats = _check(function, (torch.randn(*CACHE), AT, torch.randn(*ROWS)))
    assert (stats["updates"], stats["updates_in_place"]) == (1, 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool])
def test_caches_of_any_type_are_written(dtype: Any) -> None:
    def function(cache: Any, at: Any, rows: Any) -> Any:
        cache[at] = rows
        return cache[1:] & True if dtype == torch.bool else cache + 1

    stats = _check(function, (torch.zeros(4, 3).to(dtype), torch.tensor([1, 3]), torch.ones(2, 3).to(dtype)))
    assert stats["updates_in_place"] == 1
    assert stats["fallbacks"] == {}


def test_rows_slices_and_masks_are_assigned() -> None:
    def function(x: Any, rows: Any) -> Any:
        x[:, 2] = rows
        x[1:3] = 4.0
        x[0, 1:2] += 1
        x[x > 3] = 0.5
        return x.sum()

    assert _check(function, (torch.randn(4, 6, 3), torch.randn(4, 3)))["fallbacks"] == {}


def test_places_that_vary_are_assigned() -> None:
    def function(x: Any, rows: Any, place: int) -> Any:
        x[:, place] = rows
        x[place : place + 2] += 1
        return x.sum()

    run = torch.compile(function, backend=back_end.backend, dynamic=True, fullgraph=True)
    a, rows = torch.randn(8, 6, 3), torch.randn(8, 3)
    b = a.clone()
    for place in (2, 3, 4, 5, 2):
        torch.testing.assert_close(run(a, rows, place), function(b, rows, place))
        torch.testing.assert_close(a, b)
    assert back_end.stats()["fallbacks"] == {}


def test_arguments_that_trade_places_do() -> None:
    def function(a: Any, b: Any) -> Any:
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)
        return a - b

    _check(function, (torch.randn(3), torch.randn(3)))


def test_arguments_that_share_memory_change_together() -> None:
    def function(a: Any, row: Any) -> Any:
        a[1:3] += 1
        row.mul_(2)
        return a.sum()

    whole = torch.randn(4, 3)
    _check(function, (whole, whole[1]))


def test_changes_happen_beside_what_torch_runs() -> None:
    def function(x: Any, row: Any) -> Any:
        x[1] = torch.fft.fft(row).real
        x.add_(1)
        return x.sum(0)

    stats = _check(function, (torch.zeros(4, 8), torch.randn(8)))
    assert stats["updates"] == 1
    assert stats["fallback_nodes"] > 0


def test_numbers_without_dimensions_and_empty_tensors_change() -> None:
    def function(count: Any, empty: Any, x: Any) -> Any:
        count += 1
        empty.add_(1)
        return x * count

    _check(function, (torch.zeros((), dtype=torch.long), torch.zeros(0, 3), torch.randn(2)))


def test_a_change_that_fails_is_an_error_and_the_next_one_works() -> None:
    def function(x: Any, at: Any) -> Any:
        x[at] = 1.0
        return x.sum()

    run = torch.compile(function, backend=back_end.backend)
    x = torch.zeros(3)
    assert run(x, torch.tensor([2])) == 1
    with pytest.raises(asc.GraphError, match="out of range: 7"):
        run(x, torch.tensor([7]))
    assert run(x, torch.tensor([0])) == 2
    assert x.tolist() == [1, 0, 1]


def test_buffers_of_a_module_change() -> None:
    class Average(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros((), dtype=torch.long))
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("ring", torch.zeros(6, 4))

        def forward(self, x: Any) -> dict[str, Any]:
            self.count += 1
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.ring[1 : 1 + x.shape[0]] = x
            return {"apart": x - self.mean, "none": None, "more": (self.ring.sum(0), [self.count * 2])}

    ours, theirs = Average(), Average()
    run = torch.compile(ours, backend=back_end.backend)
    for _ in range(3):
        x = torch.randn(3, 4)
        torch.testing.assert_close(run(x), theirs(x))
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
    assert back_end.stats()["fallbacks"] == {}


def test_training_changes_statistics_and_gives_gradients() -> None:
    layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten()]
    ours = torch.nn.Sequential(*layers, torch.nn.Linear(36, 2)).train()
    theirs = copy.deepcopy(ours)
    run = torch.compile(ours, backend=back_end.backend)
    with torch.enable_grad():
        for _ in range(2):
            x = torch.randn(6, 3, 5, 5)
            run(x).pow(2).sum().backward()
            theirs(x).pow(2).sum().backward()
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-4, atol=1e-5)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-3)


def test_updates_that_do_not_fit_are_errors() -> None:
    from ascendsched.errors import GraphError
    from ascendsched.torch.call import make_call
    from ascendsched.torch.convert import Converted, Output

    g = asc.Graph()
    x = g.input("x", "float32", (2,))
    g.output(g.op("Neg", x), "y")
    converted = Converted(g, [0], [Output(0)])
    call = make_call(asc.compile(g), converted, [1])
    target = torch.zeros(2)
    assert call([torch.ones(2), target]) == []
    assert target.tolist() == [-1, -1]
    for wrong in ([torch.zeros(3)], [torch.zeros(2).double()], [torch.zeros(1, 2)], ["text"], [None], [2], []):
        with pytest.raises((GraphError, BufferError, RuntimeError)):
            call([torch.ones(2), *wrong])
    for places in ([-1], [0, 0]):
        with pytest.raises(ValueError, match=r"fit|shorter|zip"):
            make_call(asc.compile(g), converted, places)


def test_weights_written_behind_torchs_back_are_seen_by_the_next_call() -> None:
    layers = [torch.nn.Conv2d(32, 48, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(48, 512, 6), torch.nn.Flatten()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(512, 4)).eval()
    run = torch.compile(model, backend=back_end.backend)
    x = torch.randn(2, 32, 6, 6)
    with torch.no_grad():
        for write in (lambda w: None, lambda w: w.data.mul_(2), lambda w: w.numpy().__imul__(0.5), lambda w: w.neg_()):
            for weight in model.parameters():
                write(weight.detach())
            torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
