"""Reading ONNX models: names, constants, types, bodies, functions."""

from __future__ import annotations

import numpy as np
import pytest

from ascendsched.errors import GraphError, UnsupportedError
from tests.unit.onnx_nodes import F, body, model, node, value
from tests.unit.onnx_recorder import check_same_results, record


def test_inputs_keep_numbers_symbols_and_unknown_dimensions():
    x = value("x", dims=["batch", 3, 5])
    x.type.tensor_type.shape.dim[2].Clear()
    y = value("y", "int64", [])
    z = value("z", "bool", [1])
    z.type.tensor_type.ClearField("shape")
    w = value("w", "float16", ["?", -1, 0])
    recorded = record(model([node("Relu", ["x"], ["r"])], [x, y, z, w], ["r"]))
    assert [recorded.values[i] for i in recorded.inputs] == [
        ("x", "float32", ["batch", 3, None]),
        ("y", "int64", []),
        ("z", "bool", None),
        ("w", "float16", [None, None, 0]),
    ]


def test_initializers_are_no_inputs_in_old_and_new_files():
    for ir_version in (3, 8):
        case = model([node("Add", ["x", "w"], ["y"])], [value("x"), value("w")], ["y"], {"w": F}, ir_version=ir_version)
        recorded = check_same_results(case, {"x": F})
        assert [recorded.values[i][0] for i in recorded.inputs] == ["x"]
        np.testing.assert_array_equal(recorded.constant(recorded.nodes[0].inputs[1]), F)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value_float": 1.5}, np.float32(1.5)),
        ({"value_floats": [1.0, 2.0]}, np.float32([1, 2])),
        ({"value_int": -3}, np.int64(-3)),
        ({"value_ints": [4, 5]}, np.array([4, 5])),
    ],
)
def test_constant_nodes_of_every_form_become_constants(attributes, expected):
    case = model([node("Constant", [], ["c"], **attributes), node("Shape", ["c"], ["y"])], [], ["y", "c"])
    recorded = record(case)
    assert recorded.ops() == ["Shape"]
    constant = recorded.constant(recorded.outputs[1])
    assert constant.dtype == expected.dtype
    np.testing.assert_array_equal(constant, expected)


def tensor_cases():
    from onnx import TensorProto

    yield TensorProto.FLOAT, "float32", [1.5, -2.0], np.float32([1.5, -2])
    yield TensorProto.DOUBLE, "float64", [1.5, -2.0], np.float64([1.5, -2])
    yield TensorProto.FLOAT16, "float16", [1.5, -2.0], np.float16([1.5, -2])
    yield TensorProto.BFLOAT16, "bfloat16", [1.5, -2.0], np.uint16([0x3FC0, 0xC000])
    for name in ("INT8", "INT16", "INT32", "INT64"):
        yield getattr(TensorProto, name), name.lower(), [5, -7], np.array([5, -7], name.lower())
    for name in ("UINT8", "UINT16", "UINT32", "UINT64"):
        yield getattr(TensorProto, name), name.lower(), [5, 200], np.array([5, 200], name.lower())
    yield TensorProto.BOOL, "bool", [True, False], np.array([True, False])


@pytest.mark.parametrize("is_raw", [False, True])
@pytest.mark.parametrize(
    ("kind", "dtype", "values", "expected"), list(tensor_cases()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_tensors_of_every_type_are_read_from_both_storages(kind, dtype, values, expected, is_raw):
    from onnx import helper

    data = expected.tobytes() if is_raw else values
    case = model([node("Shape", ["c"], ["y"])], [], ["y"])
    case.graph.initializer.append(helper.make_tensor("c", kind, [2], data, raw=is_raw))
    recorded = record(case)
    array, name = recorded.constants[recorded.nodes[0].inputs[0]]
    assert (name, array.dtype, array.tolist()) == (dtype, expected.dtype, expected.tolist())


def test_scalars_and_empty_tensors_keep_their_shape():
    constants = {"scalar": np.float32(3), "empty": np.zeros((0, 2), np.float32)}
    case = model(
        [node("Shape", [name], [f"{name}_shape"]) for name in constants],
        [],
        [f"{n}_shape" for n in constants],
        constants,
    )
    recorded = record(case)
    assert [array.shape for array, _ in recorded.constants.values()] == [(), (0, 2)]


def test_identity_vanishes_unless_it_makes_an_output():
    nodes = [
        node("Identity", ["w"], ["w2"]),
        node("Identity", ["x"], ["x2"]),
        node("Add", ["x2", "w2"], ["sum"]),
        node("Identity", ["sum"], ["y"]),
    ]
    recorded = check_same_results(model(nodes, [value("x")], ["y", "sum"], {"w": F}), {"x": F})
    assert recorded.ops() == ["Add", "Identity"]
    assert [recorded.values[i][0] for i in recorded.outputs] == ["y", "sum"]


def test_nodes_out_of_order_are_linked_by_name():
    nodes = [node("Neg", ["b"], ["y"]), node("Identity", ["a"], ["b"]), node("Abs", ["x"], ["a"])]
    recorded = record(model(nodes, [value("x")], ["y"]))
    made = {out: n for n in recorded.nodes for out in n.outputs}
    chain = []
    current = recorded.outputs[0]
    while current in made:
        chain.append(made[current].op)
        current = made[current].inputs[0]
    assert chain == ["Neg", "Identity", "Abs"]
    assert current == recorded.inputs[0]


def test_node_names_are_unique_and_kept_where_they_can_be():
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["b"], name="same"),
        node("Relu", ["b"], ["c"], name="same"),
        node("Relu", ["c"], ["y"], name="Relu_0"),
    ]
    names = [n.name for n in record(model(nodes, [value("x")], ["y"])).nodes]
    assert len(set(names)) == 4
    assert names[1] == "same"
    assert all(name.startswith(("Relu", "same")) for name in names)


def test_absent_inputs_and_unread_optional_outputs_are_absent():
    nodes = [
        node("Clip", ["x", "", "high"], ["clipped"]),
        node("MaxPool", ["image"], ["pooled", "indices"], kernel_shape=[1, 1]),
        node("Split", ["x"], ["left", "unread"], axis=0),
        node("Add", ["clipped", "left"], ["y"]),
    ]
    image = value("image", dims=[1, 1, 2, 2])
    recorded = record(model(nodes, [value("x"), image], ["y", "pooled"], {"high": np.float32(1)}))
    clip, pool, split, _ = recorded.nodes
    assert clip.inputs[1] == -1
    assert len(pool.outputs) == 1
    assert len(split.outputs) == 2


@pytest.mark.parametrize("parts", [("y", "", ""), ("", "y", ""), ("", "", "y")])
def test_parts_of_a_split_that_nobody_names_count(parts):
    asc = pytest.importorskip("ascendsched", reason="the extension is not built")
    chosen = slice(2 * parts.index("y"), 2 * parts.index("y") + 2)
    for sizes, attributes in (({}, {"num_outputs": 3}), ({"sizes": np.array([2, 2, 2])}, {})):
        split = node("Split", ["x", *sizes], list(parts), axis=0, **attributes)
        exe = asc.compile(model([split], [value("x", dims=[6])], ["y"], sizes, opset=18), threads=1)
        np.testing.assert_array_equal(exe(np.arange(6, dtype=np.float32)), np.arange(6)[chosen])


def test_unknown_operators_are_listed_together_with_counts_and_first_nodes():
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("NoSuchOp", ["a"], ["b"], name="first"),
        node("NoSuchOp", ["b"], ["c"], name="second"),
        node("Strange", ["c"], ["d"], name="odd", domain="com.example"),
        node(
            "If",
            ["flag"],
            ["y"],
            then_branch=body([node("Inner", [], ["t"], name="deep")], ["t"]),
            else_branch=body([node("Identity", ["d"], ["e"])], ["e"]),
        ),
    ]
    case = model(nodes, [value("x"), value("flag", "bool", [])], ["y"], domains=["com.example"])
    with pytest.raises(UnsupportedError) as caught:
        record(case)
    message = str(caught.value)
    assert "NoSuchOp (nodes: 2, first: 'first')" in message
    assert "com.example::Strange (nodes: 1, first: 'odd')" in message
    assert "Inner (nodes: 1, first: 'deep')" in message
    assert "; " in message


def test_operator_newer_than_the_models_opset_is_refused():
    with pytest.raises(UnsupportedError, match=r"in opset 17: Gelu \(nodes: 1, first: 'Gelu_0'\); "):
        record(model([node("Gelu", ["x"], ["y"])], [value("x")], ["y"]))


def test_operators_of_other_domains_keep_their_domain():
    case = model(
        [node("Inverse", ["x"], ["y"], domain="com.microsoft")], [value("x")], ["y"], domains=["com.microsoft"]
    )
    assert record(case, {"com.microsoft::Inverse"}).ops() == ["com.microsoft::Inverse"]


def test_domain_alias_is_the_default_domain():
    case = model([node("Relu", ["x"], ["y"], domain="ai.onnx")], [value("x")], ["y"])
    case.opset_import[0].domain = "ai.onnx"
    assert record(case).ops() == ["Relu"]


def test_attributes_of_every_kind_arrive():
    nodes = [
        node("Conv", ["image", "w"], ["a"], pads=[0, 0, 0, 0], auto_pad="NOTSET", group=1),
        node("LeakyRelu", ["a"], ["b"], alpha=0.25),
        node(
            "LSTM",
            ["seq", "w1", "w2"],
            ["", "h"],
            hidden_size=2,
            activations=["Sigmoid", "Tanh", "Tanh"],
            activation_alpha=[0.5],
        ),
    ]
    names = ("image", "w", "seq", "w1", "w2")
    recorded = record(model(nodes, [value(name) for name in names], ["b", "h"]))
    conv, leaky, lstm = (n.attributes for n in recorded.nodes)
    assert conv == {"pads": [0, 0, 0, 0], "auto_pad": "NOTSET", "group": 1}
    assert leaky == {"alpha": 0.25}
    assert lstm == {"hidden_size": 2, "activations": ["Sigmoid", "Tanh", "Tanh"], "activation_alpha": [0.5]}
    assert recorded.nodes[2].outputs[0] == -1


def test_functions_are_inlined():
    from onnx import AttributeProto, helper

    opsets = [helper.make_opsetid("", 17)]
    inner = helper.make_function("local", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], opsets)
    leaky = helper.make_node("LeakyRelu", ["t"], ["b"])
    leaky.attribute.append(AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope"))
    nodes = [node("Twice", ["a"], ["t"], domain="local"), leaky]
    opsets = [*opsets, helper.make_opsetid("local", 1)]
    function = helper.make_function("local", "Bend", ["a"], ["b"], nodes, opsets, ["slope"])
    case = model([node("Bend", ["x"], ["y"], domain="local", slope=0.25)], [value("x")], ["y"], domains=["local"])
    case.functions.extend([inner, function])
    before = case.SerializeToString()
    recorded = check_same_results(case, {"x": F})
    assert recorded.ops() == ["Add", "LeakyRelu"]
    assert case.SerializeToString() == before


def test_bytes_and_paths_give_the_same_graph(tmp_path):
    case = model([node("Relu", ["x"], ["y"])], [value("x")], ["y"])
    path = tmp_path / "model.onnx"
    path.write_bytes(case.SerializeToString())
    graphs = [record(source) for source in (case, case.SerializeToString(), path, str(path))]
    assert all(graph == graphs[0] for graph in graphs)


def test_wrong_argument_is_refused():
    with pytest.raises(GraphError, match="got int"):
        record(7)
