"""Resize, ConvTranspose and NonMaxSuppression against onnxruntime."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)

MODES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def one_node(op: str, feeds: dict, constants: dict, opset: int = 19, **attributes) -> onnx.ModelProto:
    """A model of one node; operands are the feeds and constants in order, "" for what is absent."""
    names = [*feeds, *constants]
    inputs = [info(k, h.np_dtype_to_tensor_dtype(v.dtype), [None] * v.ndim) for k, v in feeds.items()]
    node = h.make_node(op, [n if not n.startswith("-") else "" for n in names], ["y"], **attributes)
    kept = {k: v for k, v in constants.items() if not k.startswith("-")}
    return model([node], inputs, [h.make_empty_tensor_value_info("y")], kept, opset)


def reference(made: onnx.ModelProto, feeds: dict) -> np.ndarray:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def compare(made: onnx.ModelProto, feeds: dict, tolerance: float = 1e-5) -> None:
    want = reference(made, feeds)
    for mode in ("host", "sink"):
        got = asc.compile(made, mode=mode, threads=1).run(feeds)["y"]
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)


def resize(x: np.ndarray, opset: int = 19, tolerance: float = 1e-5, **operands) -> None:
    """Compare Resize with ``roi``, ``scales`` or ``sizes``; all else are attributes."""
    constants = {}
    for name, dtype in (("roi", np.float32), ("scales", np.float32), ("sizes", np.int64)):
        value = operands.pop(name, None)
        constants[name if value is not None else f"-{name}"] = np.array(value, dtype) if value is not None else ""
    while constants and list(constants)[-1].startswith("-"):
        constants.popitem()
    compare(one_node("Resize", {"x": x}, constants, opset, **operands), {"x": x}, tolerance)


def values(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng()


@pytest.mark.parametrize(("coordinates", "rounding"), list(itertools.product(MODES, ROUNDINGS)))
def test_nearest_resize_picks_the_same_elements(rng, coordinates, rounding):
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding, "mode": "nearest"}
    for h_out, w_out in ((8, 10), (3, 2), (7, 13), (1, 1), (4, 15), (12, 5)):
        resize(values(rng, 2, 3, 4, 5), sizes=[2, 3, h_out, w_out], **attributes)
    for scales in ((1, 1, 2, 2), (1, 1, 0.6, 2.7), (1, 1, 1, 8), (1, 1, 4, 0.5), (2, 1, 1.5, 1)):
        resize(values(rng, 2, 3, 4, 5), scales=scales, **attributes)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int32", "int64", "bool"])
def test_nearest_resize_moves_every_element_type(rng, dtype):
    x = (10 * values(rng, 1, 2, 5, 3)).astype(dtype)
    if dtype in ("float64", "int64", "bool", "float16"):
        made = one_node("Resize", {"x": x}, {"-roi": "", "scales": np.float32([1, 1, 2, 3])}, mode="nearest")
        got = asc.compile(made).run({"x": x})["y"]
        want = x.repeat(2, axis=2).repeat(3, axis=3)
        np.testing.assert_array_equal(got, want)
    else:
        resize(x, scales=[1, 1, 2, 3], mode="nearest")


def test_nearest_resize_works_on_any_rank_and_axes(rng):
    resize(values(rng, 7), scales=[1.7], mode="nearest")
    resize(values(rng, 3, 4), sizes=[5, 2], mode="nearest")
    resize(values(rng, 2, 3, 4, 5, 2), scales=[1, 2, 1, 0.5, 3], mode="nearest")
    resize(values(rng, 2, 6, 5, 3), scales=[1, 2, 2, 1], mode="nearest", coordinate_transformation_mode="asymmetric")
    resize(values(rng, 2, 6, 5, 3), scales=[2, 2], axes=[2, 1], mode="nearest")
    resize(values(rng, 2, 3, 4, 5), sizes=[2, 3, 4, 5], mode="nearest")


@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("coordinates", MODES)
def test_linear_resize_agrees(rng, coordinates, antialias):
    attributes = {"coordinate_transformation_mode": coordinates, "mode": "linear", "antialias": antialias}
    for h_out, w_out in ((8, 10), (3, 2), (7, 13), (1, 1), (4, 15), (12, 5), (2, 20)):
        resize(values(rng, 2, 3, 4, 5), sizes=[2, 3, h_out, w_out], **attributes)
    for scales in ((1, 1, 2, 2), (1, 1, 0.6, 2.7), (1, 1, 1, 8), (1, 1, 4, 0.5)):
        resize(values(rng, 2, 3, 9, 11), scales=scales, **attributes)


def test_linear_resize_works_along_three_axes_and_on_channels_last(rng):
    resize(values(rng, 1, 2, 4, 5, 6), scales=[1, 1, 2, 0.7, 1.5], mode="linear")
    resize(values(rng, 2, 5, 7, 4), scales=[1, 2, 1.5, 1], mode="linear")
    resize(values(rng, 5, 7), sizes=[8, 3], mode="linear")


@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("coordinates", MODES)
def test_cubic_resize_agrees(rng, coordinates, antialias, exclude):
    attributes = {"coordinate_transformation_mode": coordinates, "mode": "cubic", "exclude_outside": exclude}
    for h_out, w_out in ((8, 10), (3, 2), (7, 13), (1, 1), (12, 5)):
        sizes = [2, 3, h_out, w_out]
        resize(values(rng, 2, 3, 4, 5), sizes=sizes, antialias=antialias, tolerance=1e-4, **attributes)
    resize(values(rng, 1, 1, 6, 9), scales=[1, 1, 2, 0.8], cubic_coeff_a=-0.5, tolerance=1e-4, **attributes)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_cropping_resize_extrapolates_outside(rng, mode):
    attributes = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": mode, "extrapolation_value": 7.5}
    for box in ((0.1, 0.2, 0.8, 0.9), (-0.3, 0.2, 1.2, 0.7), (0.43, 0.61, 0.64, 0.37), (0.2, -0.5, 1.5, 1.0)):
        roi = [0, 0, box[0], box[1], 1, 1, box[2], box[3]]
        resize(values(rng, 1, 2, 6, 8), roi=roi, sizes=[1, 2, 9, 5], tolerance=1e-4, **attributes)
        resize(values(rng, 1, 2, 6, 8), roi=roi, sizes=[1, 2, 3, 12], tolerance=1e-4, **attributes)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller", "stretch"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_keeps_the_aspect_ratio_where_asked(rng, mode, policy):
    for sizes in ((9, 5), (3, 12), (6, 8), (2, 3)):
        attributes = {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "mode": mode}
        resize(values(rng, 1, 2, 6, 8), sizes=sizes, tolerance=1e-4, **attributes)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_linear_resize_of_integers_agrees(rng, dtype):
    x = rng.integers(-100 if dtype != "uint8" else 0, 100, (1, 2, 5, 6)).astype(dtype)
    resize(x, scales=[1, 1, 2, 2], mode="linear")
    # Where weights are not exact, a result just below an integer may be cut to the one before.
    made = one_node("Resize", {"x": x}, {"-roi": "", "-scales": "", "sizes": np.array([1, 2, 3, 9])}, mode="linear")
    assert np.abs(asc.compile(made).run({"x": x})["y"].astype(int) - reference(made, {"x": x})).max() <= 1


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_filters_work_on_other_floats(rng, mode, dtype):
    x = values(rng, 1, 2, 5, 6)
    constants = {"-roi": "", "scales": np.float32([1, 1, 2, 1.5])}
    want = reference(one_node("Resize", {"x": x}, constants, mode=mode), {"x": x})
    made = one_node("Resize", {"x": x.astype(dtype)}, constants, mode=mode)
    got = asc.compile(made).run({"x": x.astype(dtype)})["y"]
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(np.float32), want, atol=1e-2 if dtype == "float16" else 1e-5)


def test_resize_follows_sizes_that_are_fed(rng):
    node = h.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear")
    made = model([node], [info("x", shape=[1, 1, "h", "w"]), info("s", onnx.TensorProto.INT64, [4])], [info("y")])
    exe = asc.compile(made)
    for size in (3, 8, 3, 1):
        feeds = {"x": values(rng, 1, 1, 4, 5), "s": np.array([1, 1, size, 2 * size])}
        np.testing.assert_allclose(exe.run(feeds)["y"], reference(made, feeds), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("operands", "attributes"),
    [
        ({"scales": np.float32([1, 1, 0, 1])}, {}),
        ({"scales": np.float32([1, 1, np.nan, 1])}, {}),
        ({"scales": np.float32([1, 1, -2, 1])}, {}),
        ({"scales": np.float32([1, 1])}, {}),
        ({"scales": np.float32([1, 1, 1e30, 1e30])}, {}),
        ({"-scales": "", "sizes": np.array([1, 1, -4, 2])}, {}),
        ({"-scales": "", "sizes": np.array([1, 1, 4])}, {}),
        ({"scales": np.float32([1, 1, 2, 2])}, {"mode": "quintic"}),
        ({"scales": np.float32([1, 1, 2, 2])}, {"nearest_mode": "up"}),
        ({"scales": np.float32([1, 1, 2, 2])}, {"coordinate_transformation_mode": "tf_crop_and_resize"}),
        ({"scales": np.float32([2, 2])}, {"axes": [2, 2]}),
        ({"scales": np.float32([2, 2])}, {"axes": [2, 4]}),
    ],
)
def test_malformed_resizes_are_refused(operands, attributes):
    x = np.ones((1, 1, 4, 4), np.float32)
    with pytest.raises(asc.AscendSchedError):
        asc.compile(one_node("Resize", {"x": x}, {"-roi": "", **operands}, **attributes)).run({"x": x})


def conv_transpose(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None, **attributes) -> None:
    constants = {"w": w} if bias is None else {"w": w, "b": bias}
    compare(one_node("ConvTranspose", {"x": x}, constants, 11, **attributes), {"x": x}, 1e-4)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_conv_transpose_agrees(rng, spatial):
    sizes, kernel = (7, 5, 4)[:spatial], (3, 2, 4)[:spatial]
    x, w, bias = values(rng, 2, 4, *sizes), values(rng, 4, 6, *kernel), values(rng, 6)
    each = lambda *v: list(v[:spatial])  # noqa: E731
    conv_transpose(x, w)
    conv_transpose(x, w, bias, strides=each(2, 2, 3))
    conv_transpose(x, w, bias, strides=each(2, 3, 1), pads=each(1, 0, 2) + each(0, 1, 1))
    conv_transpose(x, w, strides=each(3, 2, 2), output_padding=each(1, 0, 1))
    conv_transpose(x, w, bias, dilations=each(2, 3, 1))
    conv_transpose(x, w, bias, strides=each(1, 1, 1), dilations=each(2, 1, 2), pads=each(2, 1, 0) * 2)
    conv_transpose(x, values(rng, 4, 3, *kernel), bias, group=2, strides=each(2, 1, 2))
    conv_transpose(x, values(rng, 4, 1, *kernel), values(rng, 4), group=4, strides=each(2, 1, 2))


def test_conv_transpose_pads_by_itself_as_onnxruntime_does(rng):
    x, w = values(rng, 1, 3, 5, 6), values(rng, 3, 2, 3, 4)
    conv_transpose(x, w, auto_pad="SAME_UPPER", strides=[2, 2])
    conv_transpose(x, w, auto_pad="SAME_LOWER", strides=[2, 2])
    conv_transpose(x, w, auto_pad="VALID", strides=[2, 3])
    conv_transpose(x, w, output_shape=[10, 12], strides=[2, 2])
    conv_transpose(x, w, output_shape=[10, 12], strides=[2, 2], auto_pad="SAME_UPPER")
    conv_transpose(x, w, output_shape=[9, 13], strides=[2, 2], auto_pad="SAME_LOWER")


def test_conv_transpose_agrees_on_large_planes_and_many_channels(rng):
    conv_transpose(values(rng, 1, 24, 60, 80), values(rng, 24, 24, 2, 2), values(rng, 24), strides=[2, 2])
    conv_transpose(values(rng, 2, 64, 20, 21), values(rng, 64, 48, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1])
    conv_transpose(values(rng, 1, 16, 300), values(rng, 16, 8, 16), strides=[8], pads=[4, 4])


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_conv_transpose_works_on_other_floats(rng, dtype):
    x, w = values(rng, 1, 3, 5, 6), values(rng, 3, 2, 3, 4)
    want = reference(one_node("ConvTranspose", {"x": x}, {"w": w}, 11, strides=[2, 2]), {"x": x})
    made = one_node("ConvTranspose", {"x": x.astype(dtype)}, {"w": w.astype(dtype)}, 11, strides=[2, 2])
    got = asc.compile(made).run({"x": x.astype(dtype)})["y"]
    np.testing.assert_allclose(got.astype(np.float32), want, atol=5e-2 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize(
    ("w_shape", "attributes"),
    [
        ((4, 2, 3, 3), {}),
        ((3, 2, 3), {}),
        ((3, 2, 3, 3), {"group": 2}),
        ((3, 2, 3, 3), {"pads": [9, 9, 9, 9]}),
        ((3, 2, 3, 3), {"strides": [0, 1]}),
        ((3, 2, 3, 3), {"kernel_shape": [2, 2]}),
        ((3, 2, 3, 3), {"output_padding": [-1, 0]}),
        ((3, 2, 3, 3), {"auto_pad": "SOMETIMES"}),
    ],
)
def test_malformed_transposed_convolutions_are_refused(w_shape, attributes):
    x = np.ones((1, 3, 5, 5), np.float32)
    made = one_node("ConvTranspose", {"x": x}, {"w": np.ones(w_shape, np.float32)}, 11, **attributes)
    with pytest.raises(asc.AscendSchedError):
        asc.compile(made).run({"x": x})


def boxes_and_scores(rng, batch: int, classes: int, n: int, *, is_center: bool) -> dict:
    boxes = rng.uniform(0, 10, (batch, n, 4)).astype(np.float32)
    if is_center:
        boxes[..., 2:] = rng.uniform(0.5, 4, (batch, n, 2))
    # Few different scores, so that ties are common.
    return {"boxes": boxes, "scores": (rng.integers(0, 20, (batch, classes, n)) / 20).astype(np.float32)}


@pytest.mark.parametrize("is_center", [False, True])
def test_non_max_suppression_selects_the_same_boxes(rng, is_center):
    for batch, classes, n in ((1, 1, 50), (2, 3, 40), (1, 4, 1), (1, 2, 300)):
        for limit, iou, score in ((5, 0.5, 0.3), (100, 0.2, 0.0), (3, 1.0, None), (50, 0.0, 0.5), (0, 0.5, 0.1)):
            feeds = boxes_and_scores(rng, batch, classes, n, is_center=is_center)
            constants = {"limit": np.array([limit]), "iou": np.float32([iou])}
            if score is not None:
                constants["score"] = np.float32([score])
            compare(one_node("NonMaxSuppression", feeds, constants, 11, center_point_box=int(is_center)), feeds)


def test_non_max_suppression_without_a_limit_selects_nothing(rng):
    feeds = boxes_and_scores(rng, 1, 2, 10, is_center=False)
    assert asc.compile(one_node("NonMaxSuppression", feeds, {}, 11)).run(feeds)["y"].shape == (0, 3)


def test_non_max_suppression_tells_a_threshold_that_is_no_ratio(rng):
    feeds = boxes_and_scores(rng, 1, 1, 4, is_center=False)
    constants = {"limit": np.array([4]), "iou": np.float32([1.5])}
    with pytest.raises(asc.AscendSchedError, match=r"iou_threshold is 1\.5"):
        asc.compile(one_node("NonMaxSuppression", feeds, constants, 11)).run(feeds)


def test_non_max_suppression_survives_scores_that_are_no_numbers(rng):
    feeds = boxes_and_scores(rng, 1, 1, 100, is_center=False)
    feeds["scores"][0, 0, ::3] = np.nan
    constants = {"limit": np.array([100]), "iou": np.float32([0.9])}
    got = asc.compile(one_node("NonMaxSuppression", feeds, constants, 11)).run(feeds)["y"]
    assert len(set(got[:, 2])) == len(got) > 0
