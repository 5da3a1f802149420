"""Operators of ATen that we run give what torch gives, static and dynamic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from ascendsched import torch as back_end  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def _x(*shape: int, dtype: Any = None, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    if dtype is None or dtype.is_floating_point:
        return torch.randn(*shape, generator=generator).to(dtype or torch.float32)
    if dtype == torch.bool:
        return torch.randn(*shape, generator=generator) > 0
    return torch.randint(-9, 9, shape, generator=generator, dtype=dtype)


A, B, SQUARE = _x(3, 4), _x(3, 4, seed=1), _x(4, 4)
IMAGE = _x(2, 4, 9, 9)
WHOLE = _x(3, 4, dtype=torch.int64)
BITS = _x(3, 4, dtype=torch.bool)
ROWS = torch.tensor([2, 0, 1, 1])


def _set_columns(a: Any, i: Any) -> Any:
    changed = a.clone()
    changed[:, i[:3]] = 2 * a[:, :3]
    return changed


def _set_inner(a: Any, i: Any) -> tuple[Any, ...]:
    together, apart, added = a.clone(), a.clone(), a.clone()
    together[:, i[:3], i[:3]] = torch.ones(9)
    apart[:, i[:3], :, i[:3]] = torch.arange(9.0)
    added.index_put_((torch.arange(2)[:, None], i), torch.tensor(1.0), accumulate=True)
    return together, apart, added


def _bags(weight: Any, i: Any, starts: Any, factors: Any) -> tuple[Any, ...]:
    ends = torch.cat([starts, torch.tensor([7])])
    padded = {"padding_idx": 2, "include_last_offset": True}
    return (
        F.embedding_bag(i, weight, starts, mode="sum", per_sample_weights=factors),
        *(F.embedding_bag(i, weight, starts, mode=mode) for mode in ("sum", "mean", "max")),
        *(F.embedding_bag(i, weight, ends, mode=mode, **padded) for mode in ("sum", "mean", "max")),
        F.embedding_bag(i[:6].view(2, 3), weight),
    )


def _set_strided(a: Any) -> Any:
    changed = a.clone()
    changed.as_strided((2, 3), (1, 4), 1).mul_(2)
    return changed


def _set_rows(a: Any, bits: Any, row: Any) -> tuple[Any, ...]:
    changed, one = a.clone(), a.clone()
    changed[bits] = row
    one[bits] = row[None] * 2
    return changed, one


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (lambda a, b: (a + b, a - b, a * b, a / b, 2 - a, a + 1, 3 / (b + 9)), (A, B)),
    "scaled addition": (lambda a, b: (torch.add(a, b, alpha=2), torch.sub(a, b, alpha=0.5)), (A, B)),
    "promotion": (lambda a, i, m: (a + i, i * 2.5, i + m, i / 2, m * a), (A, WHOLE, BITS)),
    "whole numbers": (lambda i: (i // 4, i % 4, -i, i.abs(), i & 3, i | 4, i ^ 5, ~i, i - 1), (WHOLE,)),
    "rounding": (lambda a: (a.floor(), a.ceil(), a.round(), a.sign(), a.abs()), (A * 3,)),
    "powers": (lambda a: (a**2, a**1, a.abs() ** 0.5, a**3, 2**a, a.abs().rsqrt(), a.square()), (A,)),
    "functions": (lambda a: (a.exp(), a.abs().log(), a.sin(), a.cos(), a.tanh(), a.erf(), a.sigmoid()), (A,)),
    "more functions": (lambda a: (a.atan(), a.sinh(), a.abs().sqrt(), a.reciprocal(), a.abs().log2()), (A,)),
    "activations": (
        lambda a: (F.relu(a), F.gelu(a), F.gelu(a, approximate="tanh"), F.silu(a), F.leaky_relu(a, 0.2), F.elu(a)),
        (A,),
    ),
    "bounds": (lambda a, b: (a.clamp(-1, 1), a.clamp(min=0), torch.maximum(a, b), F.hardtanh(a)), (A, B)),
    "comparisons": (lambda a, b: (a < b, a >= 0, a == b, a != 1, a.isnan(), a > b), (A, B)),
    "mixed comparisons": (lambda i, a: (i < a, i == 2, i > 1.5), (WHOLE, A)),
    "logic": (lambda m, i: (m & (i > 0), m | (i > 0), ~m, torch.logical_xor(m, i), m.logical_not()), (BITS, WHOLE)),
    "choice": (lambda m, a, b: (torch.where(m, a, b), a.masked_fill(m, -1e9), torch.where(m, a, 0.0)), (BITS, A, B)),
    "sums": (lambda a: (a.sum(), a.sum(1), a.mean(-1, keepdim=True), a.sum((0, 1)), a.prod(1)), (A,)),
    "sums of whole numbers": (lambda i, m: (i.sum(1), m.sum(), m.any(), m.all(1), i.any(0)), (WHOLE, BITS)),
    "extremes": (lambda a: (a.amax(1), a.amin(0), a.max(), a.argmax(1), a.argmin(), *a.max(1), *a.min(0)), (A,)),
    "variance": (lambda a: (a.var(1), a.std(0), a.var(1, correction=0), a.var()), (A,)),
    "norms": (lambda a: (a.norm(dim=1), a.norm(), F.normalize(a, dim=0), torch.linalg.vector_norm(a, 1, 1)), (A,)),
    "running sum": (lambda a, i: (a.cumsum(1), i.cumsum(0)), (A, WHOLE)),
    "products": (lambda a, s, b: (a @ s, torch.addmm(b, a, s, beta=0.5, alpha=2), F.linear(a, s)), (A, SQUARE, B)),
    "vector products": (lambda a, v: (a @ v, v @ v, torch.outer(v, v)), (A, SQUARE[0].clone())),
    "batched product": (lambda a, b: (torch.bmm(a, b), torch.baddbmm(a, a, b)), (_x(2, 4, 4), _x(2, 4, 4, seed=3))),
    "views": (
        lambda a: (
            a.view(-1),
            a.reshape(2, 6),
            a.t() + 0,
            a[None],
            a[:, None].squeeze(1),
            a.view(3, 2, 2).permute(2, 0, 1),
        ),
        (A,),
    ),
    "expansion": (lambda a: (a[:, :1].expand(3, 4) + 1, a.repeat(2, 3), a[None].expand(2, -1, -1).reshape(6, 4)), (A,)),
    "slices": (lambda a: (a[1:] + 0, a[:, -2:] * 1, a[::2] + 0, a[1] + 0, a[..., -1] + 0, a.flip(1)), (A,)),
    "joins": (lambda a, b: (torch.cat([a, b]), torch.cat([a, b], -1), torch.stack([a, b], 1)), (A, B)),
    "empty joins": (lambda a: (torch.cat([torch.zeros(0), a]), torch.cat([a[:0], a])), (A,)),
    "parts": (lambda a: (*(a * 2 + 1).split(2, 1), *a.chunk(2, 1), *a.unbind(0), *a.split([1, 3], 1)), (A,)),
    "gathering": (lambda a, i: (a[i[:3]], a[:, i], a.index_select(1, i), a.gather(1, i[None].expand(3, 4))), (A, ROWS)),
    "indexing of two axes": (lambda a, i: (a[i, i], a[i[:, None], i]), (A, ROWS)),
    "embedding": (F.embedding, (ROWS, A)),
    "index_put": (
        lambda a, i: (a.index_put((i[:2],), torch.ones(2, 4)), a.index_put((i, i), torch.tensor(5.0))),
        (A, ROWS),
    ),
    "index_put of another axis": (_set_columns, (A, ROWS)),
    "index_copy": (lambda a, i: a.index_copy(1, i[:2], torch.ones(3, 2)), (A, ROWS)),
    "triangles": (lambda a: (a.tril(), a.triu(1), a.tril(-1)), (SQUARE,)),
    "padding": (lambda a: (F.pad(a, (1, 2)), F.pad(a, (1, 0, 2, 1), value=3.0), F.pad(a, (-1, 0))), (A,)),
    "creation": (
        lambda a: (torch.zeros_like(a), torch.full((2, 3), 7.0), torch.arange(5), torch.ones(2) + a[0, 0]),
        (A,),
    ),
    "conversions": (lambda a: (a.double(), a.long(), a.bool(), a.half(), a.to(torch.int32)), (A * 3,)),
    "softmax": (lambda a: (a.softmax(-1), a.log_softmax(0), F.cross_entropy(a, torch.tensor([0, 1, 2]))), (A,)),
    "layer norm": (
        lambda a, w: (F.layer_norm(a, (4,)), F.layer_norm(a, (4,), w, w), F.layer_norm(a, (3, 4))),
        (A, SQUARE[0]),
    ),
    "group norm": (lambda a, w: (F.group_norm(a, 2), F.group_norm(a, 4, w, w)), (IMAGE, SQUARE[0])),
    "largest": (lambda a: (*a.topk(2), *a.topk(1, 0, largest=False)), (A,)),
    "convolution": (
        lambda x, w: (F.conv2d(x, w), F.conv2d(x, w, torch.ones(8), 2, 1), F.conv2d(x, w[:, :2], groups=2)),
        (IMAGE, _x(8, 4, 3, 3)),
    ),
    "one dimension": (
        lambda x, w: (F.conv1d(x, w, padding=1), F.conv_transpose1d(x, w, stride=2)),
        (_x(2, 4, 9), _x(4, 4, 3)),
    ),
    "pooling": (
        lambda x: (
            F.max_pool2d(x, 3, 2, 1),
            F.avg_pool2d(x, 2),
            F.adaptive_avg_pool2d(x, 1),
            F.max_pool2d(x, 2, ceil_mode=True),
        ),
        (IMAGE,),
    ),
    "functions near zero": (
        lambda a: (a.log1p(), a.expm1(), (a * 1e-6).log1p(), (a * 1e-6).expm1(), F.softplus(a), F.logsigmoid(a)),
        (A.abs(),),
    ),
    "ends of functions": (
        lambda a: (a.log1p(), a.expm1(), a.exp2()),
        (torch.tensor([-torch.inf, -1.0, -0.0, 60.0, torch.inf, torch.nan]),),
    ),
    "logarithms and powers": (lambda a: (a.log10(), a.exp2(), a.log2()), (A.abs() + 0.1,)),
    "remainders": (
        lambda a, i: (a % 1.5, a % -1.5, a.fmod(1.5), a.trunc(), i % -4, i.fmod(4), a.frac()),
        (A * 5, WHOLE),
    ),
    "division with rounding": (
        lambda a, i: (
            torch.div(a, 0.7, rounding_mode="trunc"),
            torch.div(a, 0.7, rounding_mode="floor"),
            i // -4,
            torch.div(i, 4, rounding_mode="trunc"),
        ),
        (A * 5, WHOLE),
    ),
    "more activations": (lambda a: (F.selu(a), F.celu(a, 0.7), F.mish(a), F.glu(a), F.hardswish(a)), (A,)),
    "indexing of inner axes": (
        lambda a, i: (a[:, i[:, None], i], a[:, :, i, i], a[:, i, :, i], a[:, i[:, None], i[None]] * 2),
        (IMAGE, ROWS),
    ),
    "index_put of inner axes": (_set_inner, (IMAGE, ROWS)),
    "masks": (
        lambda a, m: (a.index_put((m,), torch.tensor(2.0)), a.index_put((m[:, 0],), torch.tensor([3.0]))),
        (A, BITS),
    ),
    "scattering": (
        lambda a, i: (
            a.scatter(1, i, a * 2),
            a.scatter(0, i[:2] % 3, torch.ones(4, 6)),
            a.scatter_add(1, i, a),
            a.scatter_reduce(1, i, a, "amax"),
            a.scatter(1, i, 5.0),
        ),
        (A, torch.stack([ROWS, ROWS.flip(0), ROWS])),
    ),
    "diagonals": (lambda a: (a.diagonal() * 1, a.diagonal(1) + 0, a[None].diagonal(-1, 1, 2) + 0), (SQUARE,)),
    "order": (lambda a: (*a.sort(), *a.sort(dim=0, descending=True), a.argsort(-1)), (A,)),
    "batch norm": (
        lambda x, w: (
            F.batch_norm(x, torch.zeros(4), torch.ones(4), w, w),
            F.batch_norm(x, torch.zeros(4), torch.ones(4)),
            F.batch_norm(x, torch.zeros(4), torch.ones(4), w, w, training=True),
            F.instance_norm(x, weight=w, bias=w),
        ),
        (IMAGE, SQUARE[0].abs()),
    ),
    "three dimensions": (
        lambda x: (F.max_pool3d(x, 2), F.avg_pool3d(x, 2), F.conv3d(x, torch.ones(2, 4, 2, 2, 2))),
        (_x(2, 4, 4, 4, 6),),
    ),
    "interpolation": (
        lambda x: (
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
            F.interpolate(x, size=(12, 11), mode="bicubic"),
            F.interpolate(x[0], scale_factor=2, mode="linear"),
        ),
        (IMAGE,),
    ),
    "exact division": (
        lambda a, i: (a // 0.1, a // -0.3, a // a.flip(0), torch.ones(3) // 0.1, i << 2, i >> 1),
        (A.mul(10).round(), WHOLE),
    ),
    "infinities": (
        lambda a: (
            *(
                a.sign(),
                a.sgn(),
                a**-0.5,
                a**0.5,
                a // 2,
                a % 2,
                a // -math.inf,
                1 // a,
                a.trunc(),
                a.tanh(),
                a.sigmoid(),
            ),
            *(torch.fmax(a, a.flip(0)), torch.fmin(a, a.flip(0)), torch.maximum(a, a.flip(0)), a.softmax(1)),
        ),
        (torch.tensor([[math.inf, -math.inf, math.nan], [-0.0, 1.0, 88.8], [-2.5, 1e-40, 3.5]]),),
    ),
    "norms of any order": (
        lambda a: (*(a.norm(p, 1) for p in (0, 1, 2, 3, math.inf, -math.inf)), a.norm(), F.normalize(a, 4)),
        (A,),
    ),
    "variance and mean": (
        lambda a: (
            *torch.var_mean(a, 1),
            *torch.std_mean(a, (0, 1), keepdim=True),
            *torch.var_mean(a, correction=0),
            a.var(0),
            a.std(),
        ),
        (A,),
    ),
    "adaptive pooling": (
        lambda x: (
            *(F.adaptive_avg_pool2d(x, s) for s in ((3, 3), (2, 5), 1, (9, 4))),
            *(F.adaptive_max_pool2d(x, 4), F.adaptive_avg_pool1d(x[0], 5), F.adaptive_avg_pool2d(x[0], (4, 3))),
        ),
        (IMAGE,),
    ),
    "average pooling": (
        lambda x: (
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.avg_pool2d(x, 2, 2, 0, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, 3, 2, 0, divisor_override=5),
        ),
        (IMAGE,),
    ),
    "reduced scattering": (
        lambda a, i: tuple(
            x.scatter_reduce(1, i[:, :3], x, r, include_self=s)
            for x in (a, (a * 9).long())
            for r in ("sum", "prod", "mean", "amax", "amin")
            for s in (True, False)
        ),
        (A, torch.stack([ROWS, ROWS.flip(0), ROWS])),
    ),
    "windows": (lambda a: (a.unfold(0, 2, 1) + 1, a.unfold(1, 3, 2) * 2, a.view(-1)[1:].unfold(0, 3, 2).sum(-1)), (A,)),
    "strided views": (
        lambda a: (
            a.as_strided((2, 3), (1, 2), 1) + 0,
            a.as_strided((3, 2, 2), (4, 2, 1)) * 2,
            a.as_strided((), ()) + 1,
        ),
        (A,),
    ),
    "factors made of sizes": (
        lambda x: (
            F.interpolate(x, scale_factor=1.5, mode="bilinear"),
            x * (x.shape[2] / x.shape[3]),
            x[:, : int(x.shape[1] * 0.5)] + 1,
        ),
        (_x(2, 4, 6, 9),),
    ),
    "grids": (
        lambda x, g: (
            F.grid_sample(x, g, align_corners=False),
            F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True),
        ),
        (IMAGE, _x(2, 3, 4, 2) / 2),
    ),
    "of nothing": (
        lambda a: (a.any(), a.all(), a.any(0), a.all(1), a.sum(), a.prod(1), a.softmax(0), a.T @ a, a.norm()),
        (_x(0, 4),),
    ),
    "histograms": (
        lambda a: (torch.histc(a, 5, -1, 1), torch.histc((a * 4).round(), 3, -1, 2), torch.histc(a * 1e9, 2, 0, 1)),
        (A,),
    ),
    "bags of rows": (_bags, (_x(9, 4), torch.tensor([1, 8, 2, 2, 0, 5, 7]), torch.tensor([0, 2, 2, 5]), _x(7))),
    "distances": (
        lambda a, b: (
            torch.cdist(a, b),
            torch.cdist(a, b, p=1.0),
            torch.cdist(a, b, p=3.0),
            torch.cdist(a, b, p=0.0),
            torch.cdist(a, b, p=math.inf),
            torch.hypot(a, b),
            torch.hypot(a * 0, b * math.inf),
        ),
        (A, B),
    ),
    "places in order": (
        lambda a: (*a.kthvalue(2), *a.kthvalue(3, 0, keepdim=True), a.round(decimals=2), (a * 99).round(decimals=-1)),
        (A,),
    ),
    "changes in views that lie anyhow": (
        lambda a, b: (_set_strided(a), a.clone().addcmul_(a, b, value=0.5), a.lerp(b, 0.3), F.hardswish(a * 3)),
        (A, B),
    ),
    "rows where a mask is set": (_set_rows, (_x(3, 4, 5), BITS, _x(5))),
    "attention": (
        lambda q, k, m: (
            F.scaled_dot_product_attention(q, k, k),
            F.scaled_dot_product_attention(q, k, k, is_causal=True),
            F.scaled_dot_product_attention(q, k, k, attn_mask=m),
            F.scaled_dot_product_attention(q, k[:, :2], k[:, :2], enable_gqa=True, scale=0.3),
        ),
        (_x(2, 4, 5, 8), _x(2, 4, 5, 8, seed=5), torch.tensor([[True] * 3 + [False] * 2] * 4 + [[False] * 5])),
    ),
}


def _same(got: Any, want: Any) -> None:
    got = got if isinstance(got, tuple) else (got,)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_operator_gives_what_torch_gives(name: str, is_dynamic: bool) -> None:
    function, args = CASES[name]
    torch._dynamo.reset()
    back_end.reset()
    compiled = torch.compile(function, backend=back_end.backend, dynamic=is_dynamic, fullgraph=True)
    with torch.no_grad():
        for _ in range(3):
            _same(compiled(*args), function(*args))
    assert back_end.stats()["subgraphs"] >= 1
    if not is_dynamic:
        assert back_end.stats()["fallbacks"] == {}
