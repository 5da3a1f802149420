"""Damaged, hostile and unsupported ONNX files give an error of ours, which names what is wrong."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from ascendsched.errors import GraphError, UnsupportedError
from tests.unit.onnx_nodes import F, body, model, node, value
from tests.unit.onnx_recorder import record


def small_model():
    nodes = [
        node("Constant", [], ["axes"], value_ints=[1]),
        node("Unsqueeze", ["x", "axes"], ["u"]),
        node(
            "If",
            ["flag"],
            ["b"],
            then_branch=body([node("Neg", ["u"], ["t"])], ["t"]),
            else_branch=body([node("Abs", ["u"], ["e"])], ["e"]),
        ),
        node("Add", ["b", "w"], ["s"]),
        node("Softmax", ["s"], ["y"], axis=1),
    ]
    return model(nodes, [value("x"), value("flag", "bool", [])], ["y"], {"w": F})


def external_model(entries, size=24):
    from onnx import TensorProto

    case = model([node("Add", ["x", "w"], ["y"])], [value("x")], ["y"])
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, size // 8], data_location=TensorProto.EXTERNAL)
    for key, entry in entries.items():
        tensor.external_data.add(key=key, value=str(entry))
    case.graph.initializer.append(tensor)
    return case


def saved(folder, case):
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(case.SerializeToString())
    return path


def test_external_data_are_read_beside_the_model(tmp_path):
    path = saved(tmp_path, external_model({"location": "data/w.bin", "offset": 8, "length": 24}))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"12345678" + F.tobytes() + b"rest")
    recorded = record(path)
    np.testing.assert_array_equal(recorded.constant(recorded.nodes[0].inputs[1]), F)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "/etc/hostname"}, "not a path inside"),
        ({"location": "../w.bin"}, "not a path inside"),
        ({"location": "a/../../w.bin"}, "not a path inside"),
        ({"location": ""}, "not a path inside"),
        ({"location": "w\0.bin"}, "not a path inside"),
        ({"location": "."}, "is not a file"),
        ({"location": "absent.bin"}, "cannot read external data 'absent.bin'"),
        ({"location": "link.bin"}, "leaves the model's folder through a link"),
        ({"location": "folder_link/w.bin"}, "leaves the model's folder through a link"),
        ({"location": "pipe"}, "is not a file"),
        ({"location": "w.bin", "offset": 4}, "has 24 bytes; the data file is truncated"),
        ({"location": "w.bin", "offset": -4}, "damaged"),
        ({"location": "w.bin", "length": 20}, "need 24"),
        ({"location": "w.bin", "length": "many"}, "must be numbers"),
    ],
)
def test_external_data_elsewhere_or_damaged_are_refused(tmp_path, entries, message):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "w.bin").write_bytes(F.tobytes())
    path = saved(tmp_path / "inside", external_model(entries))
    (path.parent / "w.bin").write_bytes(F.tobytes())
    (path.parent / "link.bin").symlink_to(outside / "w.bin")
    (path.parent / "folder_link").symlink_to(outside)
    os.mkfifo(path.parent / "pipe")
    with pytest.raises(GraphError, match=rf"^\[onnx\] initializer 'w': .*{message}"):
        record(path)


def test_damaged_size_of_external_data_allocates_nothing(tmp_path):
    path = saved(tmp_path, external_model({"location": "w.bin"}, size=1 << 50))
    (tmp_path / "w.bin").write_bytes(F.tobytes())
    with pytest.raises(GraphError, match="truncated"):
        record(path)


def test_external_data_of_a_model_without_a_file_are_refused():
    with pytest.raises(GraphError, match="pass the path of the model file"):
        record(external_model({"location": "w.bin"}))


def test_missing_file_folder_and_pipe_are_refused_by_path(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "absent.onnx", tmp_path, tmp_path / "pipe", "zero\0byte"):
        with pytest.raises(GraphError, match=r"^\[onnx\] "):
            record(path)


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x00" * 100, b"\xff" * 100, b'{"ir_version": 8}'])
def test_garbage_is_refused(data):
    with pytest.raises(GraphError, match=r"^\[onnx\] bytes .*; "):
        record(data)


def test_truncated_file_is_refused_or_misses_something_at_every_length():
    data = small_model().SerializeToString()
    for length in range(len(data)):
        with pytest.raises((GraphError, UnsupportedError), match=r"^\[onnx\] "):
            record(data[:length])


def test_flipped_bytes_give_a_graph_or_an_error_of_ours():
    rng = random.Random(0)
    data = small_model().SerializeToString()
    refused = 0
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(data))] = rng.randrange(256)
        try:
            record(bytes(damaged))
        except (GraphError, UnsupportedError):
            refused += 1
    assert refused > 100


def with_initializer(**changes):
    from onnx import TensorProto

    case = model([node("Add", ["x", "w"], ["y"])], [value("x")], ["y"])
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], raw_data=F.tobytes())
    for key, change in changes.items():
        if key == "dims":
            tensor.dims[:] = change
        else:
            setattr(tensor, key, change)
    case.graph.initializer.append(tensor)
    return case


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dims": [2, 4]}, "6 values of float32 for dimensions \\[2, 4\\], which need 8"),
        ({"dims": [-2, -3]}, "negative dimension"),
        ({"dims": [2**40, 2**40]}, "need"),
        ({"raw_data": b"abc"}, "3 bytes"),
        ({"data_type": 0}, "0 is no element type"),
        ({"data_type": 99}, "99 is no element type"),
        ({"data_type": 14}, "element type complex64"),
        ({"data_type": 22}, "element type int4"),
    ],
)
def test_initializers_that_cannot_be_right_are_refused(changes, message):
    with pytest.raises((GraphError, UnsupportedError), match=rf"^\[onnx\] initializer 'w': .*{message}.*"):
        record(with_initializer(**changes))


def sequence_input():
    from onnx import TensorProto, helper

    return helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)


def untyped_input():
    from onnx import helper

    return helper.make_empty_tensor_value_info("x")


def test_operators_that_take_tensors_of_numbers_refuse_anything_else():
    relu = [node("Relu", ["x"], ["y"])]
    with pytest.raises(UnsupportedError, match=r"\(Relu\): reads 'x', a sequence\(float32\), "):
        record(model(relu, [sequence_input()], ["y"]))
    text = value("x")
    text.type.tensor_type.elem_type = 8
    with pytest.raises(UnsupportedError, match=r"\(Relu\): reads 'x', a string, "):
        record(model(relu, [text], ["y"]))
    with pytest.raises(GraphError, match=r"^\[onnx\] input 'x' has no type; "):
        record(model(relu, [untyped_input()], ["y"]))


def test_sparse_tensors_are_refused():
    from onnx import TensorProto, helper

    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [1], [2]), [6])
    case = model([node("Relu", ["x"], ["y"])], [value("x")], ["y"])
    case.graph.sparse_initializer.append(sparse)
    with pytest.raises(UnsupportedError, match="'s' is sparse"):
        record(case)
    with pytest.raises(UnsupportedError, match=r"\(Constant\): .*; "):
        record(model([node("Constant", [], ["y"], name="c", sparse_value=sparse)], [], ["y"]))


@pytest.mark.parametrize(
    "case",
    [
        model([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])], [value("x")], ["y"]),
        model([node("Relu", ["x"], ["x"])], [value("x")], ["x"]),
        model([node("Relu", ["x"], ["w"])], [value("x")], ["w"], {"w": F}),
        model([node("Relu", ["x"], ["y"])], [value("x"), value("x")], ["y"]),
        model([node("Constant", [], ["x"], value_int=1)], [value("x")], ["x"]),
        model([node("Relu", ["x"], ["y"])], [value("x"), value("")], ["y"]),
    ],
)
def test_two_values_of_one_name_are_refused(case):
    with pytest.raises(GraphError, match="taken by another value"):
        record(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (model([node("Relu", ["z"], ["y"], name="n")], [value("x")], ["y"]), r"node 'n' \(Relu\) read 'z'"),
        (model([node("Relu", ["x"], ["y"])], [value("x")], ["z"]), "outputs read 'z'"),
        (model([node("Relu", ["x", "x"], ["y"], name="n")], [value("x")], ["y"]), "2 inputs, its opset has 1 to 1"),
        (model([node("Relu", ["x"], ["y", "z"], name="n")], [value("x")], ["y"]), "2 outputs, its opset has 1 to 1"),
        (model([node("Relu", ["x"], ["y"], alpha=1.0)], [value("x")], ["y"]), "attribute 'alpha'"),
        (model([node("Concat", ["x"], ["y"], axis=1.5)], [value("x")], ["y"]), "attribute 'axis'"),
        (model([node("Concat", ["x"], ["y"])], [value("x")], ["y"]), r"attributes \['axis'\] are missing"),
        (model([node("Constant", [], ["y"])], [], ["y"]), "0 values instead of one"),
    ],
)
def test_malformed_nodes_are_refused_by_name(case, message):
    with pytest.raises(GraphError, match=rf"^\[onnx\] .*{message}.*; "):
        record(case)


@pytest.mark.parametrize("opset", [0, 29, 10**9])
def test_opsets_out_of_range_are_refused(opset):
    with pytest.raises(UnsupportedError, match=rf"opset {opset} is not supported, 1 to \d+ are.*; "):
        record(model([node("Relu", ["x"], ["y"])], [value("x")], ["y"], opset=opset))


def test_model_must_declare_one_version_of_its_operators():
    from onnx import helper

    case = model([node("Relu", ["x"], ["y"])], [value("x")], ["y"])
    case.opset_import.append(helper.make_opsetid("ai.onnx", 13))
    with pytest.raises(GraphError, match=r"2 versions \[13, 17\]"):
        record(case)
    del case.opset_import[:]
    with pytest.raises(GraphError, match="0 versions"):
        record(case)


def functions_calling(calls):
    """Return a model whose first function is called once; each function calls those that ``calls`` names."""
    from onnx import helper

    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    case = model([node("F0", ["x"], ["y"], domain="local")], [value("x")], ["y"], domains=["local"])
    for name, called in calls.items():
        values = ["a", *(f"{name}_{i}" for i in range(len(called)))]
        nodes = [
            node(op, [source], [target], domain="local")
            for op, source, target in zip(called, values, values[1:], strict=False)
        ]
        nodes.append(node("Relu", [values[-1]], ["b"]))
        case.functions.append(helper.make_function("local", name, ["a"], ["b"], nodes, opsets))
    return case


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ({"F0": ["F0"]}, "calls itself"),
        ({"F0": ["F1"], "F1": ["F2"], "F2": ["F1"]}, "calls itself"),
        ({f"F{i}": [f"F{i + 1}"] if i < 200 else [] for i in range(201)}, "nests more than 100 deep"),
        ({f"F{i}": [f"F{i + 1}"] * 10 if i < 30 else [] for i in range(31)}, "grow to"),
    ],
)
def test_functions_without_end_are_refused(calls, message):
    with pytest.raises(GraphError, match=rf"^\[onnx\] .*{message}.*; "):
        record(functions_calling(calls))


def test_function_parameter_outside_a_function_is_refused():
    from onnx import AttributeProto

    leaky = node("LeakyRelu", ["x"], ["y"])
    leaky.attribute.append(AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope"))
    with pytest.raises(GraphError, match="outside a function"):
        record(model([leaky], [value("x")], ["y"]))
