"""Attention in one task: as exporters spell it out, at shapes of every kind, masks that hide everything."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.attention_models import Form, attention, operands
from tests.unit.fusion_models import MODES, UNFUSED, build, check, normal

FORMS = {
    "plain": Form(),
    "divided": Form(scale="divide", result_turned=False),
    "bert": Form(turned=True, scale="divide"),
    "unscaled": Form(scale="none", masks=0),
    "keys by column": Form(key_by_column=True, masks=0),
    "position bias": Form(masks=2, scale="none"),
    "shared keys": Form(repeats=2),
    "sdpa": Form(repeats=4, scale="operands", guard=True),
    "turned and shared": Form(repeats=2, turned=True),
}
# rows, keys, width, batch
SHAPES = [
    (1, 1, 4, 1),
    (1, 7, 16, 1),
    (1, 80, 16, 2),
    (1, 300, 33, 1),
    (2, 9, 8, 1),
    (3, 5, 1, 2),
    (4, 131, 64, 1),
    (11, 11, 32, 1),
    (65, 67, 20, 1),
    (40, 600, 32, 1),
]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("rows", "keys", "width", "batch"), SHAPES)
def test_attention_of_exporters_is_one_task(form: Form, rows: int, keys: int, width: int, batch: int):
    check(attention(form, 4, width), operands(form, batch, 4, rows, keys, width), tasks=1, rtol=1e-4, atol=1e-5)


def test_explain_lists_the_operators_and_the_kernel():
    form = FORMS["shared keys"]
    exe = asc.compile(attention(form, 4, 16), mode="sink", threads=1)
    exe.run(operands(form, 1, 4, 1, 20, 16))
    text = str(exe.explain())
    assert "attention:decode" in text
    for op in ("Expand", "Reshape", "Transpose", "MatMul", "Softmax"):
        assert op in text


def test_values_may_be_wider_or_narrower_than_keys():
    form = FORMS["plain"]
    for value_width in (1, 5, 48):
        check(attention(form, 3, 8), operands(form, 2, 3, 6, 10, 8, value_width), tasks=1, rtol=1e-4)


@pytest.mark.parametrize("form", [FORMS["plain"], FORMS["sdpa"]], ids=["plain", "guarded"])
def test_rows_that_see_nothing_are_as_in_the_unfused_graph(form: Form):
    model = attention(form, 4, 16)
    feeds = operands(form, 1, 4, 5, 9, 16)
    feeds["mask0"][:, :, 2] = -np.inf
    want = asc.compile(model, mode="host", threads=1, options=UNFUSED).run(feeds)["y"]
    for mode in MODES:
        got = asc.compile(model, mode=mode, threads=1).run(feeds)["y"]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert np.isnan(got[:, 2]).all() != form.guard


def test_masks_broadcast_over_batch_heads_and_rows():
    model = attention(Form(), 4, 8)
    feeds = operands(Form(), 2, 4, 6, 7, 8)
    for shape in ((1, 1, 1, 7), (2, 1, 1, 7), (1, 4, 6, 7), (2, 4, 1, 7), (1, 1, 6, 7), (2, 4, 6, 7)):
        check(model, {**feeds, "mask0": normal(*shape)}, tasks=1, rtol=1e-4)
    for shape in ((1, 1, 6, 1), (1, 1, 1, 1)):  # not a mask by key: computed operator by operator, in one task
        check(model, {**feeds, "mask0": normal(*shape)}, tasks=1, rtol=1e-4)


def test_a_mask_that_makes_the_scores_larger_stays_right():
    model = attention(Form(), 4, 8)
    feeds = operands(Form(), 1, 4, 6, 7, 8)
    check(model, {**feeds, "mask0": normal(3, 1, 6, 7), "v": normal(3, 4, 7, 8)}, rtol=1e-4)


def test_large_scores_do_not_overflow():
    model = attention(Form(scale="none"), 2, 8)
    feeds = operands(Form(), 1, 2, 3, 9, 8)
    feeds["q"] *= 1e4
    got = check(model, feeds, tasks=1, rtol=1e-3)
    assert np.isfinite(got).all()


def test_keys_and_values_without_batch_dimension_serve_all():
    nodes = [
        h.make_node("MatMul", ["q", "k"], ["s"]),
        h.make_node("Softmax", ["s"], ["p"], axis=-1),
        h.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    model = build(nodes, {"q": [None] * 3, "k": [None] * 2, "v": [None] * 2})
    check(model, {"q": normal(3, 5, 8), "k": normal(8, 6), "v": normal(6, 8)}, tasks=1, rtol=1e-4)
    flat = build(nodes, {"q": [None] * 2, "k": [None] * 2, "v": [None] * 2})
    check(flat, {"q": normal(5, 8), "k": normal(8, 6), "v": normal(6, 8)}, tasks=1, rtol=1e-4)


def test_weights_that_are_a_result_are_not_fused_away():
    model = attention(Form(masks=0, result_turned=False), 2, 8)
    softmax = next(n for n in model.graph.node if n.op_type == "Softmax")
    model.graph.output.append(h.make_tensor_value_info(softmax.output[0], onnx.TensorProto.FLOAT, None))
    feeds = operands(Form(masks=0), 1, 2, 3, 5, 8)
    plain = asc.compile(model, mode="host", threads=1, options=UNFUSED).run(feeds)
    got = asc.compile(model, mode="sink", threads=1).run(feeds)
    for name, want in plain.items():
        np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6)


def test_products_with_weights_around_a_softmax_are_no_attention():
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["s"]),
        h.make_node("Softmax", ["s"], ["p"], axis=-1),
        h.make_node("MatMul", ["p", "u"], ["y"]),
    ]
    model = build(nodes, {"x": [None, 16]}, {"w": normal(16, 24), "u": normal(24, 8)})
    check(model, {"x": normal(3, 16)}, tasks=2)


def test_empty_operands_give_empty_results_or_zeros():
    model = attention(Form(), 2, 8)
    for batch, rows, keys in ((0, 3, 5), (1, 0, 5), (1, 3, 0)):
        feeds = operands(Form(masks=0), batch, 2, rows, keys, 8) | {
            "mask0": np.zeros((batch, 1, rows, keys), np.float32)
        }
        want = asc.compile(model, mode="host", threads=1, options=UNFUSED).run(feeds)["y"]
        for mode in MODES:
            np.testing.assert_array_equal(asc.compile(model, mode=mode, threads=1).run(feeds)["y"], want)


def test_two_threads_give_the_same_bits():
    form = Form(turned=True)
    model, feeds = attention(form, 8, 64), operands(form, 2, 8, 100, 120, 64)
    one, two = (asc.compile(model, mode="sink", threads=n).run(feeds)["y"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_saved_executable_computes_the_same(tmp_path):
    form = FORMS["shared keys"]
    model, feeds = attention(form, 4, 16), operands(form, 1, 4, 3, 20, 16)
    exe = asc.compile(model, mode="sink", threads=1)
    want = exe.run(feeds)["y"]
    exe.save(tmp_path / "m.asc")
    np.testing.assert_array_equal(asc.load(tmp_path / "m.asc").run(feeds)["y"], want)


def test_shapes_that_do_not_fit_are_refused_by_the_operator():
    model = attention(Form(), 2, 8)
    feeds = operands(Form(), 1, 2, 3, 5, 8)
    with pytest.raises(asc.GraphError, match="MatMul"):
        asc.compile(model, mode="host", threads=1).run({**feeds, "v": normal(1, 2, 6, 8)})
