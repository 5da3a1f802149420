"""Models of many kinds, small and of random weights, give through our back end what they give in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ascendsched import torch as back_end  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_torch")]
nn, functional = torch.nn, torch.nn.functional


class _Depthwise(nn.Module):  # type: ignore[misc, name-defined]
    """Inverted residuals as in MobileNet, with squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        wide = [nn.Conv2d(8, 32, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(inplace=True)]
        deep = [nn.Conv2d(32, 32, 3, 1, 1, groups=32, bias=False), nn.BatchNorm2d(32), nn.Hardswish()]
        self.block = nn.Sequential(*wide, *deep, nn.Conv2d(32, 8, 1, bias=False), nn.BatchNorm2d(8))
        squeeze = [nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.SiLU(), nn.Conv2d(4, 8, 1), nn.Hardsigmoid()]
        self.gate = nn.Sequential(*squeeze)
        self.stem, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = x + self.block(x)
        return self.head((x * self.gate(x)).mean((2, 3)))


class _UNet(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU())
        self.down = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.1))
        self.up = nn.Upsample(scale_factor=2, mode=mode)
        self.join = nn.Conv2d(24, 8, 3, padding=1, padding_mode="reflect")
        self.last = nn.ConvTranspose2d(8, 2, 2, 2)

    def forward(self, x: Any) -> Any:
        a = self.first(x)
        b = self.up(self.down(a))
        return self.last(functional.gelu(self.join(torch.cat([a, b], 1)), approximate="tanh"))


class _VisionTransformer(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 32)), nn.Parameter(torch.randn(1, 17, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(32, 7)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


class _Cells(nn.Module):  # type: ignore[misc, name-defined]
    """A recurrent loop of cells, which torch unrolls."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(6, 8), nn.GRUCell(8, 8)

    def forward(self, x: Any) -> Any:
        h = c = g = torch.zeros(x.shape[0], 8)
        for step in x.unbind(1):
            h, c = self.lstm(step, (h, c))
            g = self.gru(h, g)
        return {"state": (h, c), "last": g, "nothing": None}


class _RelativeBias(nn.Module):  # type: ignore[misc, name-defined]
    """An encoder layer as in T5: no scale, a bias by distance, a norm without a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.bias = nn.Embedding(64, 32), nn.Embedding(8, 4)
        self.qkv, self.out = nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)
        self.norm = nn.RMSNorm(32)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        places = torch.arange(ids.shape[1])
        distance = (places[None] - places[:, None]).abs().clamp(max=7)
        weights = (q @ k.transpose(-1, -2) + self.bias(distance).permute(2, 0, 1)).softmax(-1)
        return x + self.out((weights @ v).transpose(1, 2).flatten(2))


def _line() -> Any:
    layers = [nn.Conv1d(4, 8, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 3, groups=8), nn.PReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 2), nn.Softmax(-1))


def _images() -> Any:
    return torch.randn(2, 3, 16, 16)


KINDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "depthwise convolutions": (_Depthwise, _images),
    "U-Net, nearest": (lambda: _UNet("nearest"), _images),
    "U-Net, bilinear": (lambda: _UNet("bilinear"), _images),
    "vision transformer": (_VisionTransformer, _images),
    "recurrent cells": (_Cells, lambda: torch.randn(2, 3, 6)),
    "relative bias": (_RelativeBias, lambda: torch.randint(0, 64, (2, 7))),
    "convolutions of lines": (_line, lambda: torch.randn(2, 4, 16)),
}


def _check(model: Any, x: Any, tolerance: float, **settings: Any) -> None:
    run = torch.compile(model, backend=back_end.backend, **settings)
    for _ in range(2):
        got, want = torch.utils._pytree.tree_flatten(run(x)), torch.utils._pytree.tree_flatten(model(x))
        assert got[1] == want[1]
        for g, w in zip(got[0], want[0], strict=True):
            if w is not None:
                assert g.dtype == w.dtype
                assert float((g - w).abs().max()) <= tolerance * max(1.0, float(w.abs().max()))


@pytest.mark.parametrize("is_dynamic", [None, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("kind", KINDS)
def test_model_runs_whole_and_gives_what_torch_gives(kind: str, is_dynamic: bool | None) -> None:
    make, feed = KINDS[kind]
    _check(make().eval(), feed(), 1e-4, dynamic=is_dynamic, fullgraph=True)
    stats = back_end.stats()
    assert stats["fallbacks"] == {}
    assert stats["graphs"] == stats["subgraphs"] == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "recurrent cells"])
def test_model_in_half_precision_is_as_exact_as_torchs(kind: str, dtype: Any) -> None:
    make, feed = KINDS[kind]
    x = feed()
    _check(make().eval().to(dtype), x.to(dtype) if x.is_floating_point() else x, 16 * torch.finfo(dtype).eps)
    assert back_end.stats()["fallbacks"] == {}


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_modules_are_torchs_as_with_every_back_end(kind: str) -> None:
    model = getattr(nn, kind)(6, 8, batch_first=True).eval()
    x = torch.randn(2, 5, 6)
    torch.testing.assert_close(torch.compile(model, backend=back_end.backend)(x), model(x))


def test_shapes_that_depend_on_data_are_run() -> None:
    def function(x: Any) -> Any:
        chosen = x[x > 0]
        return chosen.sum() + (x > 0).nonzero().shape[0]

    for _ in range(3):
        x = torch.randn(4, 8)
        torch.testing.assert_close(torch.compile(function, backend=back_end.backend)(x), function(x))


def test_complex_numbers_are_left_to_torch_and_counted() -> None:
    def function(x: Any) -> Any:
        turned = torch.view_as_complex(x.reshape(4, 4, 2)) * torch.polar(torch.ones(4), torch.arange(4.0))
        return torch.view_as_real(turned).flatten(1) + 1

    x = torch.randn(4, 8)
    torch.testing.assert_close(torch.compile(function, backend=back_end.backend)(x), function(x))
    assert any("complex64" in reason for reason in back_end.stats()["fallbacks"])
