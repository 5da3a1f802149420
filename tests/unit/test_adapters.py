"""Adapters: a node of an old opset, rewritten to the newest semantics, gives the results that onnxruntime gives for it.

Each case builds a model of the old opset, imports it, writes the imported graph back as a model of a new opset, and
runs both in onnxruntime.
"""

from __future__ import annotations

import numpy as np
import pytest

from ascendsched.errors import GraphError, UnsupportedError
from tests.unit.onnx_recorder import check_same_results, known_operators, record

X234 = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = np.random.default_rng(1).standard_normal((1, 2, 4, 6)).astype(np.float32)


def one_node(op, opset, inputs, outputs=("y",), constants=None, dims=None, **attributes):
    """Return a model of one node and its feeds; constants are initializers, ``dims`` declared shapes."""
    from onnx import helper, numpy_helper

    constants = constants or {}
    names = [*inputs, *constants]
    node = helper.make_node(op, names, list(outputs), name="node", **attributes)
    declared = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape if dims is None else dims
        )
        for name, value in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([node], "case", declared, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6), dict(inputs)


CASES = {
    "squeeze axes": one_node("Squeeze", 11, {"x": X234[:, :1]}, axes=[1]),
    "squeeze all": one_node("Squeeze", 11, {"x": X234[:1, :1]}),
    "unsqueeze axes": one_node("Unsqueeze", 11, {"x": X234}, axes=[0, 4]),
    "reduce sum axes": one_node("ReduceSum", 11, {"x": X234}, axes=[-1], keepdims=0),
    "reduce sum all": one_node("ReduceSum", 11, {"x": X234}),
    "reduce mean axes": one_node("ReduceMean", 17, {"x": X234}, axes=[0, 2]),
    "reduce max axes": one_node("ReduceMax", 13, {"x": X234}, axes=[1], keepdims=0),
    "reduce L2 axes": one_node("ReduceL2", 13, {"x": X234}, axes=[1]),
    "reduce log sum exp all": one_node("ReduceLogSumExp", 13, {"x": X234}),
    "split sizes": one_node("Split", 11, {"x": X234}, ("a", "b"), axis=2, split=[1, 3]),
    "split equally": one_node("Split", 11, {"x": X234}, ("a", "b"), axis=2),
    "split equally 13": one_node("Split", 13, {"x": X234}, ("a", "b"), axis=-1),
    "slice attributes": one_node("Slice", 9, {"x": X234}, starts=[0, 1], ends=[2, -1], axes=[0, 2]),
    "slice attributes without axes": one_node("Slice", 9, {"x": X234}, starts=[0, 1], ends=[2, 3]),
    "clip both": one_node("Clip", 10, {"x": X234}, min=-0.5, max=0.25),
    "clip min": one_node("Clip", 6 + 1, {"x": X234}, min=0.0),
    "clip none": one_node("Clip", 9, {"x": X234}),
    "pad zeros": one_node("Pad", 10, {"x": X234}, pads=[0, 1, 0, 0, 0, 2]),
    "pad value": one_node("Pad", 10, {"x": X234}, pads=[0, 1, 0, 0, 0, -2], value=1.5),
    "pad reflect": one_node("Pad", 10, {"x": X234}, mode="reflect", pads=[0, 1, 2, 0, 1, 0]),
    "softmax last axis": one_node("Softmax", 11, {"x": X234}, axis=2),
    "softmax middle axis": one_node("Softmax", 11, {"x": X234}),
    "softmax first axis": one_node("Softmax", 11, {"x": X234}, axis=0),
    "softmax negative axis": one_node("Softmax", 11, {"x": X234}, axis=-2),
    "log softmax middle axis": one_node("LogSoftmax", 11, {"x": X234}),
    "softmax with a dimension of zero": one_node("Softmax", 11, {"x": X234[:0]}),
    "global lp pool 1": one_node("GlobalLpPool", 17, {"x": IMAGE}, p=1),
    "global lp pool": one_node("GlobalLpPool", 17, {"x": IMAGE}),
    "global lp pool 3": one_node("GlobalLpPool", 17, {"x": IMAGE}, p=3),
    "dropout": one_node("Dropout", 11, {"x": X234}, ratio=0.5),
    "dropout mask": one_node("Dropout", 12, {"x": X234}, ("y", "mask")),
    "dropout inputs": one_node("Dropout", 13, {"x": X234}, ("y", "mask"), {"r": np.float32(0.3), "t": np.array(False)}),
    "top k attribute": one_node("TopK", 9, {"x": X234}, ("values", "indices"), k=2, axis=1),
    "scatter": one_node(
        "Scatter",
        9,
        {"x": X234},
        constants={"i": np.array([[[2, 0, 1, 1]]]), "u": np.ones((1, 1, 4), np.float32)},
        axis=1,
    ),
    "upsample nearest attribute": one_node("Upsample", 7, {"x": IMAGE}, scales=[1.0, 1.0, 2.0, 3.0], mode="nearest"),
    "upsample nearest": one_node("Upsample", 9, {"x": IMAGE}, constants={"s": np.float32([1, 1, 2, 2.5])}),
    "upsample linear": one_node("Upsample", 9, {"x": IMAGE}, constants={"s": np.float32([1, 1, 2, 2])}, mode="linear"),
    "resize 10 grows": one_node("Resize", 10, {"x": IMAGE}, constants={"s": np.float32([1, 1, 1.5, 2])}),
    "resize 10 shrinks": one_node("Resize", 10, {"x": IMAGE}, constants={"s": np.float32([1, 1, 0.6, 0.5])}),
    "resize 10 linear": one_node(
        "Resize", 10, {"x": IMAGE}, constants={"s": np.float32([1, 1, 0.5, 2])}, mode="linear"
    ),
    "resize 11 sizes": one_node(
        "Resize", 11, {"x": IMAGE}, constants={"r": np.float32([]), "s": np.float32([]), "z": np.array([1, 2, 8, 9])}
    ),
    "resize 13 scales": one_node(
        "Resize", 13, {"x": IMAGE}, constants={"r": np.float32([]), "s": np.float32([1, 1, 2, 0.5])}, mode="linear"
    ),
    "batch normalization": one_node(
        "BatchNormalization",
        8,
        {"x": IMAGE},
        constants={n: np.float32([1.5, 0.5]) for n in ("s", "b", "m", "v")},
        spatial=1,
    ),
    "group normalization": one_node(
        "GroupNormalization",
        18,
        {"x": np.concatenate([IMAGE, IMAGE * 2 + 1], 1)},
        constants={"scale": np.float32([1.5, 0.5]), "bias": np.float32([0, 1])},
        num_groups=2,
    ),
    "grid sample": one_node(
        "GridSample",
        16,
        {"x": IMAGE},
        constants={"g": np.random.default_rng(2).uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)},
        mode="bilinear",
    ),
    "roi align": one_node(
        "RoiAlign",
        10,
        {"x": IMAGE},
        constants={"r": np.float32([[0, 0, 3, 3]]), "b": np.array([0])},
        output_height=2,
        output_width=2,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.filterwarnings("ignore:invalid value")
def test_adapted_node_gives_the_result_of_the_old_one(case):
    model, feeds = case
    check_same_results(model, feeds, tolerance=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_old_softmax_of_unknown_rank_is_flattened(axis):
    model, feeds = one_node("Softmax", 11, {"x": X234}, axis=axis)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    recorded = check_same_results(model, feeds, tolerance=1e-5)
    expected = ["Softmax"] if axis == -1 else ["Flatten", "Softmax", "Shape", "Reshape"]
    assert recorded.ops() == expected


def test_old_softmax_over_the_last_axis_stays_one_node():
    model, _ = one_node("Softmax", 11, {"x": X234}, axis=2)
    recorded = record(model)
    assert recorded.ops() == ["Softmax"]
    assert recorded.nodes[0].attributes == {"axis": -1}


def test_rank_comes_from_shape_inference_where_it_is_not_declared():
    from onnx import helper

    model, feeds = one_node("Softmax", 11, {"x": X234}, axis=2)
    node = model.graph.node[0]
    node.input[0] = "hidden"
    model.graph.node.insert(0, helper.make_node("Relu", ["x"], ["hidden"]))
    assert check_same_results(model, feeds).ops() == ["Relu", "Softmax"]


def test_scalar_takes_its_type_from_the_data_where_the_model_states_none():
    from onnx import helper

    model, _ = one_node("Clip", 10, {"x": X234}, min=0.0)
    model.graph.node[0].input[0] = "made"
    model.graph.node.insert(0, helper.make_node("FutureOp", ["x"], ["made"], domain="com.microsoft"))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    recorded = record(model, known_operators() | {"com.microsoft::FutureOp"})
    assert recorded.ops() == ["com.microsoft::FutureOp", "CastLike", "Clip"]
    assert recorded.nodes[2].inputs[1] == recorded.nodes[1].outputs[0]


def test_scalar_takes_its_type_from_the_declared_data():
    model, _ = one_node("Clip", 9, {"x": X234.astype(np.float64)}, max=0.5)
    recorded = record(model)
    assert recorded.nodes[0].inputs[1] == -1
    assert recorded.constant(recorded.nodes[0].inputs[2]) == np.array(0.5, np.float64)
    assert recorded.constant(recorded.nodes[0].inputs[2]).dtype == np.float64


def test_dropout_costs_nothing_in_inference():
    from onnx import helper

    model, feeds = one_node("Dropout", 12, {"x": X234})
    model.graph.node[0].output[0] = "dropped"
    model.graph.node.append(helper.make_node("Relu", ["dropped"], ["y"]))
    assert check_same_results(model, feeds).ops() == ["Relu"]


def test_bfloat16_fill_is_a_float32_fill_and_a_cast():
    from onnx import TensorProto, helper

    model, _ = one_node("ConstantOfShape", 13, {"x": np.array([2])})
    value = helper.make_tensor("v", TensorProto.BFLOAT16, [1], np.array([0x3FC0], np.uint16).tobytes(), raw=True)
    model.graph.node[0].attribute.append(helper.make_attribute("value", value))
    recorded = record(model)
    assert recorded.ops() == ["ConstantOfShape", "Cast"]
    assert recorded.nodes[0].attributes["value"] == np.array([1.5], np.float32)
    assert recorded.nodes[1].attributes == {"to": TensorProto.BFLOAT16}


REFUSED = {
    "resize 10 mixed": (
        one_node("Resize", 10, {"x": IMAGE}, constants={"s": np.float32([1, 1, 0.5, 2])}),
        "all grow or all shrink",
    ),
    "resize 10 computed": (
        one_node("Resize", 10, {"x": IMAGE, "s": np.float32([1, 1, 2, 2])}),
        "constant scales",
    ),
    "resize 11 mode": (
        one_node(
            "Resize",
            11,
            {"x": IMAGE},
            constants={"r": np.float32([]), "s": np.float32([1, 1, 2, 2])},
            coordinate_transformation_mode="tf_half_pixel_for_nn",
        ),
        "tf_half_pixel_for_nn",
    ),
    "batch normalization spatial": (
        one_node(
            "BatchNormalization", 8, {"x": IMAGE}, constants={n: np.ones(2, np.float32) for n in "sbmv"}, spatial=0
        ),
        "spatial=0",
    ),
    "batch normalization training": (
        one_node(
            "BatchNormalization",
            9,
            {"x": IMAGE},
            ("y", "mean", "var", "saved_mean", "saved_var"),
            constants={n: np.ones(2, np.float32) for n in "sbmv"},
        ),
        "training mode",
    ),
    "dropout mask of opset 11": (one_node("Dropout", 11, {"x": X234}, ("y", "mask")), "before opset 12"),
}


@pytest.mark.parametrize(("case", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_adapted_is_refused_by_name(case, message):
    with pytest.raises(UnsupportedError, match=rf"^\[onnx\] node 'node'.*{message}.*; "):
        record(case[0])


def test_group_count_of_zero_is_refused():
    model, _ = one_node(
        "GroupNormalization", 18, {"x": IMAGE}, constants={n: np.ones(1, np.float32) for n in "sb"}, num_groups=0
    )
    with pytest.raises(GraphError, match="num_groups must be positive"):
        record(model)
