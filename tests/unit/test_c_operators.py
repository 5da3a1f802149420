"""Operators in C behave like built-in ones; plug-ins that do not behave get a clear error and harm nothing."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendsched as asc
from ascendsched import extensions
from tests.unit.plugin_build import HAS_COMPILER, build_library, capsule

pytestmark = [pytest.mark.sanitize, pytest.mark.skipif(not HAS_COMPILER, reason="there is no C compiler")]

SOURCE = r"""
#include <ascendsched/operator.h>
#include <stdlib.h>
#include <string.h>

static int same_shape(asc_context* c, const asc_tensor* in, int32_t n, asc_tensor* out) {
  if (in[0].type != ASC_FLOAT32) return c->fail(c, "float32 expected");
  out[0].rank = in[0].rank;
  memcpy(out[0].shape, in[0].shape, sizeof in[0].shape);
  return 0;
}
typedef struct { int64_t count; float factor; } tiled;
static int tile(asc_context* c, const asc_tensor* in, int32_t n, const asc_tensor* out, void** result) {
  tiled* t = malloc(sizeof *t);
  t->count = 1;
  for (int i = 0; i < in[0].rank; ++i) t->count *= in[0].shape[i];
  t->factor = (float)c->attribute_float(c, "factor", 1.0) + c->attribute_int(c, "more", 0);
  *result = t;
  return 0;
}
static int freed = 0;
int freed_tilings(void) { return freed; }
static void release(void* t) { ++freed; free(t); }
static int scale(const void* t, const asc_tensor* in, int32_t n, const asc_tensor* out, char* error) {
  const tiled* s = t;
  const float* x = in[0].data;
  float* y = out[0].data;
  for (int64_t i = 0; i < s->count; ++i) {
    if (x[i] != x[i]) { strcpy(error, "a value is not a number"); return 1; }
    y[i] = x[i] * s->factor + (n > 1 && in[1].data ? ((const float*)in[1].data)[0] : 0);
  }
  return 0;
}
static int wild(asc_context* c, const asc_tensor* in, int32_t n, asc_tensor* out) {
  out[0].rank = 1; out[0].shape[0] = -5; return 0; }
static int refuse_tile(asc_context* c, const asc_tensor* in, int32_t n, const asc_tensor* out, void** r) {
  return c->fail(c, "no tiling today"); }
#define OP(f, v, s, in0, in1, outs, shape, tl, launch) \
  asc_operator f = {v, s, "c_test::" #f, in0, in1, outs, 0, shape, tl, release, launch};
OP(scale_op, ASC_OPERATOR_VERSION, sizeof(asc_operator), 1, 2, 1, same_shape, tile, scale)
OP(old, 0, sizeof(asc_operator), 1, 1, 1, same_shape, tile, scale)
OP(small, 1, 8, 1, 1, 1, same_shape, tile, scale)
OP(shapeless, 1, sizeof(asc_operator), 1, 1, 1, 0, tile, scale)
OP(launchless, 1, sizeof(asc_operator), 1, 1, 1, same_shape, tile, 0)
OP(greedy, 1, sizeof(asc_operator), 1, 99, 1, same_shape, tile, scale)
OP(wild_op, 1, sizeof(asc_operator), 1, 1, 1, wild, tile, scale)
OP(tileless, 1, sizeof(asc_operator), 1, 1, 1, same_shape, refuse_tile, scale)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = tmp_path_factory.mktemp("plugin") / "plugin.c"
    source.write_text(SOURCE, encoding="utf-8")
    return build_library(source, source.parent)


_NAME = ctypes.create_string_buffer(b"ascendsched.operator")  # capsules keep the pointer


def _capsule(library: ctypes.CDLL, symbol: str) -> Any:
    return capsule(library, symbol, _NAME)


def _compiled(
    name: str, shape: tuple[Any, ...] = ("n", 3), inputs: int = 1, mode: str = "auto", **attributes: Any
) -> Any:
    g = asc.Graph()
    x = g.input("x", "float32", shape)
    more = [g.input("b", "float32", ())] if inputs > 1 else []
    g.output(g.op("Add", g.op(name, g.op("Neg", x), *more, name="mine", **attributes), x), "y")
    return asc.compile(g, mode=mode)


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_operator_computes_between_built_in_ones(library: ctypes.CDLL, mode: str) -> None:
    assert extensions.register(_capsule(library, "scale_op")) == "c_test::scale_op"
    exe = _compiled("c_test::scale_op", inputs=2, mode=mode, factor=2.5, more=1)
    for n in (1, 4, 4, 0, 2):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        np.testing.assert_allclose(exe(x, np.float32(0.5)), -3.5 * x + 0.5 + x, rtol=1e-6, atol=1e-6)
    assert exe.stats()["host_calls"] == 0


def test_tilings_are_freed(library: ctypes.CDLL) -> None:
    extensions.register(_capsule(library, "scale_op"))
    before = library.freed_tilings()
    exe = _compiled("c_test::scale_op")
    exe(np.ones((2, 3), np.float32))
    exe.resize_caches(0, 0)
    for n in range(3, 9):
        exe(np.ones((n, 3), np.float32))
    del exe
    assert library.freed_tilings() > before


def test_failing_launch_names_operator_and_node_and_harms_nothing(library: ctypes.CDLL) -> None:
    extensions.register(_capsule(library, "scale_op"))
    exe = _compiled("c_test::scale_op")
    bad = np.full((2, 3), np.nan, np.float32)
    for _ in range(3):
        with pytest.raises(asc.AscendSchedError, match=r"mine.*c_test::scale_op: a value is not a number"):
            exe(bad)
        assert exe(np.ones((2, 3), np.float32)).tolist() == [[0] * 3] * 2


def test_refusals_of_shapes_and_tilings_carry_the_operators_words(library: ctypes.CDLL) -> None:
    extensions.register(_capsule(library, "scale_op"))
    extensions.register(_capsule(library, "tileless"))
    extensions.register(_capsule(library, "wild_op"))
    g = asc.Graph()
    g.output(g.op("c_test::scale_op", g.input("x", "int32", (2,)), name="mine"), "y")
    with pytest.raises(asc.GraphError, match="c_test::scale_op 'mine': float32 expected"):
        asc.compile(g)(np.ones(2, np.int32))
    with pytest.raises(asc.GraphError, match="c_test::tileless 'mine': no tiling today"):
        _compiled("c_test::tileless")(np.ones((2, 3), np.float32))
    with pytest.raises(asc.GraphError, match=r"c_test::wild_op 'mine': .*-5"):
        _compiled("c_test::wild_op")(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("old", "version 0"),
        ("small", "8 bytes"),
        ("shapeless", "infer_shape is missing"),
        ("launchless", "launch is missing"),
        ("greedy", "99"),
    ],
)
def test_operator_that_is_not_whole_is_refused(library: ctypes.CDLL, symbol: str, text: str) -> None:
    with pytest.raises(asc.PlanError, match=text):
        extensions.register(_capsule(library, symbol))


@pytest.mark.parametrize("thing", [None, 3, "scale", object()])
def test_other_things_than_capsules_are_refused(thing: Any) -> None:
    with pytest.raises(asc.PlanError, match="capsule"):
        extensions.register(thing)


@pytest.mark.parametrize(
    "attributes", [{}, {"extension": "c_test::scale_op"}, {"extension": "no", "extension_number": 0}]
)
def test_hand_made_nodes_of_no_operator_are_refused(attributes: dict[str, Any]) -> None:
    g = asc.Graph()
    g.output(g.op("Extension", g.input("x", "float32", (2,)), **attributes), "y")
    with pytest.raises(asc.GraphError, match="not loaded"):
        asc.compile(g)


def test_package_that_fails_to_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        value = "broken.package:operators"

        def load(self) -> Any:
            raise ImportError("no such library")

    monkeypatch.setattr(extensions, "entry_points", lambda **_: [Entry()])
    for _ in range(2):
        with pytest.raises(asc.PlanError, match=r"broken\.package.*no such library"):
            asc.Graph().op("broken_domain::op")


def test_the_headers_are_shipped() -> None:
    folder = Path(asc.get_include())
    assert (folder / "ascendsched" / "operator.h").is_file()
    assert (folder / "ascendsched_operator.pxd").is_file()
