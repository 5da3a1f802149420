"""`torch.compile` with our back end does what torch does: views, changes in place, fallbacks, errors."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import ascendsched as asc  # noqa: E402
from ascendsched import torch as back_end  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_torch")]


def compiled(function: Any, **settings: Any) -> Any:
    return torch.compile(function, backend=back_end.backend, fullgraph=True, **settings)


def same(a: Any, b: Any) -> None:
    # Sums whose terms cancel are as exact as their terms are large.
    tensors = [t for t in (b if isinstance(b, (tuple, list)) else [b]) if isinstance(t, torch.Tensor)]
    largest = max((float(t.double().abs().max()) for t in tensors if t.numel()), default=0.0)
    torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-6 * max(1.0, largest))


def test_back_end_is_listed_by_its_entry_point() -> None:
    found = entry_points(group="torch_dynamo_backends", name="ascendsched")
    assert {e.value for e in found} <= {"ascendsched.torch:backend"}


def test_weights_that_change_in_place_are_seen() -> None:
    model = torch.nn.Linear(4, 3)
    run = compiled(model)
    x = torch.randn(2, 4)
    same(run(x), model(x))
    model.weight.mul_(2)
    same(run(x), model(x))
    model.weight.data = torch.randn(3, 4)
    same(run(x), model(x))


def test_inputs_that_change_in_place_change() -> None:
    def step(cache: Any, x: Any) -> Any:
        cache[1:3] = x
        cache.add_(1)
        return cache.sum(0)

    a, b = torch.zeros(4, 3), torch.zeros(4, 3)
    x = torch.randn(2, 3)
    run = compiled(step)
    for _ in range(3):
        same(run(a, x), step(b, x))
        same(a, b)


def test_results_that_are_views_share_memory_as_in_torch() -> None:
    def views(x: Any) -> tuple[Any, Any, Any]:
        y = x * 2
        return y, y.t(), x[1:]

    x = torch.randn(3, 4)
    y, transposed, tail = compiled(views)(x)
    y[0, 1] = 7
    assert transposed[1, 0] == 7
    assert tail.data_ptr() == x[1:].data_ptr()


def test_parts_of_one_result_share_its_memory_as_in_torch() -> None:
    a, b = compiled(lambda x: (x * 2).chunk(2))(torch.ones(4, 3))
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def test_results_never_share_memory_between_calls() -> None:
    run = compiled(lambda x: x + 1)
    x = torch.zeros(8)
    results = [run(x) for _ in range(5)]
    results[0].fill_(9)
    assert all(bool((r == 1).all()) for r in results[1:])
    assert len({r.data_ptr() for r in results}) == 5


def test_results_have_the_strides_of_torch() -> None:
    def function(x: Any) -> Any:
        return (x * 2).transpose(1, 2).contiguous().transpose(1, 2) + 0

    x = torch.randn(2, 3, 4)
    got, want = compiled(function)(x), function(x)
    assert got.stride() == want.stride()
    same(got, want)


def test_inputs_of_any_layout_are_read() -> None:
    run = compiled(lambda a, b: a @ b + 1)
    a, b = torch.randn(4, 6), torch.randn(8, 6)[::2].t()
    same(run(a, b), a @ b + 1)
    same(run(torch.randn(6, 4).t(), b).shape, torch.Size([4, 4]))


def test_sizes_that_vary_are_compiled_once() -> None:
    def function(x: Any, y: Any) -> Any:
        return torch.cat([x, y]).view(-1, 2, 2).sum(0) * x.shape[0]

    run = compiled(function, dynamic=True)
    for n in range(5, 40):  # torch takes equal sizes of the first call for one
        x, y = torch.randn(2 * n, 4), torch.randn(3, 4)
        same(run(x, y), function(x, y))
    assert back_end.stats()["graphs"] == 1


def test_sizes_are_added_and_scaled() -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        length = x.shape[0] + y.shape[0] + z.shape[0]
        return torch.cat([x, y, z]) * length, torch.ones(length, 2) * (length / x.shape[0]), length // 2

    run = compiled(function, dynamic=True)
    for n in (3, 5, 8):
        x, y, z = torch.randn(n, 2), torch.randn(n + 1, 2), torch.randn(2 * n, 2)
        same(run(x, y, z), function(x, y, z))
    assert back_end.stats()["fallbacks"] == {}


def test_sizes_are_negated_and_may_be_zero() -> None:
    def function(x: Any) -> Any:
        n, rest = x.shape[0], x[3:]
        return torch.arange(n, -n, -1), x.sum() * -n, rest.reshape(rest.shape[1], rest.shape[0]) + n

    run = compiled(function, dynamic=True)
    for n, m in ((5, 4), (3, 7), (9, 2), (3, 6)):
        x = torch.randn(n, m)
        same(run(x), function(x))
    assert back_end.stats()["fallbacks"] == {}


def test_whole_numbers_are_arguments() -> None:
    def function(x: Any, n: int) -> Any:
        return x[:n] * n + torch.arange(n)[:, None]

    run = compiled(function, dynamic=True)
    x = torch.randn(50, 3)
    for n in range(3, 20):
        same(run(x, n), function(x, n))


def test_numbers_that_vary_are_arguments() -> None:
    """torch compiles such a function, gives up with an exception that must pass, and enters the back end again."""
    run = compiled(lambda x, factor: (x * factor).sum() + factor, dynamic=True)
    x = torch.randn(5, 3)
    for factor in (0.5, 1.5, -2.0):
        same(run(x, factor), (x * factor).sum() + factor)


def test_bfloat16_goes_in_and_out() -> None:
    x = torch.randn(4, 4, dtype=torch.bfloat16)
    got = compiled(lambda a: a * 2)(x)
    assert got.dtype == torch.bfloat16
    assert torch.equal(got, x * 2)


def test_what_we_cannot_run_is_left_to_torch_and_counted() -> None:
    def function(x: Any) -> Any:
        y = (x * 2 + 1).relu()
        z = torch.fft.fft(y).real
        return (z + 1).sum() * 2 + y.mean()

    x = torch.randn(4, 4)
    same(compiled(function)(x), function(x))
    stats = back_end.stats()
    assert stats["subgraphs"] >= 1
    assert stats["nodes"] > 0
    assert any("fft" in reason for reason in stats["fallbacks"])


def test_a_graph_of_which_we_can_run_nothing_is_torchs() -> None:
    x = torch.randn(8)
    same(compiled(lambda a: torch.fft.fft(a).abs())(x), torch.fft.fft(x).abs())
    assert back_end.stats()["fallback_nodes"] > 0


def test_gradients_are_those_of_torch() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(5, 4)
    with torch.enable_grad():
        model(x).sum().backward()
        want = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        compiled(model)(x).sum().backward()
    for p, w in zip(model.parameters(), want, strict=True):
        same(p.grad, w)


def test_random_numbers_are_torchs() -> None:
    def function(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5) * 2

    x = torch.ones(100)
    got = compiled(function)(x)
    assert set(got.tolist()) <= {0.0, 4.0}


def test_an_index_out_of_range_is_an_error() -> None:
    run = compiled(lambda w, i: torch.nn.functional.embedding(i, w))
    weight = torch.randn(4, 3)
    same(run(weight, torch.tensor([3])), weight[3:])
    with pytest.raises(asc.GraphError, match="embedding"):
        run(weight, torch.tensor([4]))
    same(run(weight, torch.tensor([3])), weight[3:])


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_options_set_mode_and_threads(mode: str) -> None:
    run = compiled(lambda x: x.relu() + 1, options={"mode": mode, "threads": 1})
    x = torch.randn(3)
    for _ in range(3):
        same(run(x), x.relu() + 1)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"options": {"speed": 9}}, "speed"),
        ({"options": {"mode": "fast"}}, "fast"),
        ({"options": {"threads": 0}}, "threads"),
        ({"options": {"device": "abacus"}}, "abacus"),
        ({"mode": "reduce-overhead"}, "reduce-overhead"),
    ],
)
def test_unknown_settings_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=text):
        compiled(lambda x: x + 1, **settings)(torch.ones(2))


def _conv() -> Any:
    nn = torch.nn
    layers = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).eval()


def _encoder() -> Any:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


@pytest.mark.parametrize(("make", "shape"), [(_conv, (2, 3, 32, 32)), (_encoder, (2, 7, 16))])
def test_model_gives_what_torch_gives(make: Callable[[], Any], shape: tuple[int, ...]) -> None:
    model = make()
    x = torch.randn(*shape)
    run = compiled(model)
    for _ in range(3):
        torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
    assert back_end.stats()["fallbacks"] == {}


@pytest.mark.parametrize("kind", ["complex", "float8", "sparse", "empty", "scalar", "empty batch"])
def test_unusual_tensors_are_run_or_left_to_torch(kind: str) -> None:
    x = {
        "complex": torch.randn(3, dtype=torch.complex64),
        "float8": torch.randn(3).to(torch.float8_e4m3fn),
        "sparse": torch.eye(3).to_sparse(),
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(2.5),
        "empty batch": torch.zeros(2, 0),
    }[kind]

    def function(a: Any) -> Any:
        b = a.to(torch.float32) if kind == "float8" else a
        return (b * 2) * 3

    got, want = torch.compile(function, backend=back_end.backend)(x), function(x)
    assert torch.equal(got.to_dense() if kind == "sparse" else got, want.to_dense() if kind == "sparse" else want)


def test_calls_with_wrong_arguments_are_errors() -> None:
    from ascendsched.errors import GraphError
    from ascendsched.native import core
    from ascendsched.torch.call import make_call
    from ascendsched.torch.convert import Converted, Output

    g = asc.Graph()
    x = g.input("x", "float32", (2,))
    g.output(g.op("Neg", x), "y")
    call = make_call(asc.compile(g), Converted(g, [0], [Output(0), Output(-1)]))
    y, nothing = call([torch.ones(2)])
    assert y.tolist() == [-1, -1]
    assert nothing is None
    for args in ([], ["text"], [None], [torch.ones(2).double()], [torch.ones(3)], [torch.ones(2, device="meta")]):
        with pytest.raises((GraphError, BufferError, RuntimeError)):
            call(args)
    with pytest.raises(GraphError):
        make_call(asc.compile(g), Converted(g, [0, 1], []))
    with pytest.raises(GraphError):
        make_call(asc.compile(g), Converted(g, [0], [Output(5)]))
    for order in ((0, 0), (1,), (-1,), (1, 0)):
        with pytest.raises(GraphError):
            make_call(asc.compile(g), Converted(g, [0], [Output(0, False, order)]))([torch.ones(2)])
    with pytest.raises(TypeError):
        core.TensorCall(asc.compile(g), None, [0], [])  # type: ignore[arg-type]
    assert call([torch.ones(4)[::2]])[0].tolist() == [-1, -1]
