"""`ascendsched plan --check` agrees with compiling, without compiling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc
from ascendsched.cli import main
from ascendsched.demo.models import decoder
from ascendsched.frontends.onnx_check import check_model

from . import onnx_models
from .onnx_models import body, info, model


def invoke(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["plan", str(path), "--check", *options])


def save(folder: Path, proto: onnx.ModelProto, **options: Any) -> Path:
    path = folder / "model.onnx"
    onnx.save_model(proto, path, **options)
    return path


def int8_erf() -> onnx.ModelProto:
    nodes = [h.make_node("Erf", ["x"], ["e"], "first"), h.make_node("Erf", ["e"], ["y"], "second")]
    return model(nodes, [info("x", T.INT8, ["n"])], [info("y", T.INT8, ["n"])])


@pytest.mark.parametrize(
    "make", [onnx_models.mlp, onnx_models.nonzero, onnx_models.branches, onnx_models.counted_loop, decoder]
)
def test_models_that_compile_are_supported_with_all_their_nodes(make: Any) -> None:
    proto = make()
    asc.compile(proto)
    ops = check_model(proto)
    assert [op.op for op in ops if not op.is_supported] == []
    assert sum(op.count for op in ops) > 0


def test_a_type_without_a_kernel_is_named_as_compiling_names_it() -> None:
    proto = int8_erf()
    (erf,) = check_model(proto)
    assert (erf.op, erf.count, erf.types, erf.why_not) == ("Erf", 2, ["int8"], "no kernel for int8 (first: 'first')")
    with pytest.raises(asc.UnsupportedError, match="no kernel for: Erf 'first' on int8"):
        asc.compile(proto)


def test_types_that_operators_do_not_take_are_named() -> None:
    nodes = [h.make_node("Tanh", ["x"], ["y"], "t")]
    (tanh,) = check_model(model(nodes, [info("x", T.INT32, [2])], [info("y", T.INT32, [2])]))
    assert tanh.why_not.startswith("input 0 is int32; expected one of float32")


def test_an_unknown_operator_does_not_hide_what_follows_it() -> None:
    nodes = [
        h.make_node("ImageDecoder", ["x"], ["p"], "peak"),
        h.make_node("Cast", ["p"], ["c"], "cast", to=T.INT8),
        h.make_node("Erf", ["c"], ["y"], "erf"),
        h.make_node("Thing", ["x"], ["z"], "thing", domain="my.domain"),
    ]
    proto = model(nodes, [info("x", T.UINT8, [6])], [info("y", T.INT8), info("z")], opset=20)
    proto.opset_import.append(h.make_opsetid("my.domain", 1))
    ops = {op.op: op for op in check_model(proto)}
    assert ops["Cast"].types == ["uint8"]
    assert {name for name, op in ops.items() if not op.is_supported} == {"ImageDecoder", "Erf", "my.domain::Thing"}
    assert ops["ImageDecoder"].why_not == "the operator is not implemented (first: 'peak')"


@pytest.mark.parametrize("dtype", [T.STRING, T.COMPLEX64, T.FLOAT8E4M3FN])
def test_an_unknown_operator_may_make_what_is_no_tensor_of_numbers(dtype: int) -> None:
    nodes = [
        h.make_node("Lower", ["x"], ["l"], "lower", domain="my.domain"),
        h.make_node("Identity", ["l"], ["y"], "copy"),
        h.make_node("StringConcat", ["x", "x"], ["z"], "twice"),
    ]
    outputs = [info("l", dtype, ["n"]), info("y", dtype, ["n"]), info("z", T.STRING, ["n"])]
    proto = model(nodes, [info("x", T.STRING, ["n"])], outputs, opset=20)
    proto.opset_import.append(h.make_opsetid("my.domain", 1))
    ops = {op.op: op for op in check_model(proto)}
    assert not ops["my.domain::Lower"].is_supported
    with pytest.raises(asc.UnsupportedError, match="Lower"):
        asc.compile(proto)


def test_bodies_are_judged_with_the_types_that_reach_them() -> None:
    then = body([h.make_node("Erf", ["c"], ["t"], "inner")], [], [info("t", T.INT8)])
    other = body([h.make_node("Identity", ["c"], ["e"])], [], [info("e", T.INT8)])
    nodes = [
        h.make_node("Cast", ["x"], ["c"], to=T.INT8),
        h.make_node("If", ["b"], ["y"], then_branch=then, else_branch=other),
    ]
    ops = {
        op.op: op
        for op in check_model(model(nodes, [info("x", shape=[3]), info("b", T.BOOL, [])], [info("y", T.INT8)]))
    }
    assert ops["Erf"].refused == [("inner", "no kernel for int8")]
    assert ops["If"].is_supported


def test_what_an_adapter_refuses_is_one_operator_of_the_table() -> None:
    nodes = [h.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y", "m", "v"], "norm", training_mode=1)]
    weights = {"s": np.ones(3, np.float32)}
    proto = model(nodes, [info("x", shape=[2, 3])], [info("y"), info("m")], weights)
    try:
        asc.compile(proto)
    except asc.UnsupportedError:
        ops = check_model(proto)
        assert [op.op for op in ops] == ["BatchNormalization"]
        if ops[0].refused:  # refused by the importer; what only shape inference refuses is not judged
            assert "training" in ops[0].why_not


def test_weights_are_not_read(tmp_path: Path) -> None:
    path = save(
        tmp_path, onnx_models.mlp(width=64), save_as_external_data=True, location="weights", size_threshold=1024
    )
    (tmp_path / "weights").unlink()
    assert invoke(path).exit_code == 0
    with pytest.raises(asc.GraphError, match="cannot read external data"):
        asc.compile(path)


def test_weights_of_any_size_cost_nothing(tmp_path: Path) -> None:
    proto = model([h.make_node("MatMul", ["x", "w"], ["y"])], [info("x", shape=[1, 1 << 20])], [info("y")])
    weight = proto.graph.initializer.add(name="w", data_type=T.FLOAT, dims=[1 << 20, 1 << 12])
    weight.data_location = T.EXTERNAL
    weight.external_data.add(key="location", value="nowhere")
    assert invoke(save(tmp_path, proto)).exit_code == 0


def test_impossible_dimensions_are_our_error(tmp_path: Path) -> None:
    proto = model([h.make_node("Add", ["x", "w"], ["y"])], [info("x", shape=[1])], [info("y")])
    proto.graph.initializer.add(name="w", data_type=T.FLOAT, dims=[1 << 40, 1 << 40])
    result = invoke(save(tmp_path, proto))
    assert result.exit_code == 1
    assert "are too large; the file is damaged" in result.stderr


def test_the_exit_status_says_whether_all_is_supported(tmp_path: Path) -> None:
    good = invoke(save(tmp_path, onnx_models.mlp()))
    assert good.exit_code == 0
    assert "supported on cpu: all 6 nodes" in good.output
    bad = invoke(save(tmp_path, int8_erf()))
    assert bad.exit_code == 1
    assert "no kernel for int8 (first: 'first')" in bad.output
    assert "not supported on cpu: 2 of 2 nodes; keep onnxruntime for this model" in bad.output
    assert invoke(tmp_path / "model.onnx", "--device", "null").exit_code == 0
    assert "'gpu' is not available" in invoke(tmp_path / "model.onnx", "--device", "gpu").stderr


def test_check_prints_json(tmp_path: Path) -> None:
    result = invoke(save(tmp_path, int8_erf()), "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert (facts["schema"], facts["supported"]) == ("ascendsched.check/1", False)
    (erf,) = facts["operators"]
    assert (erf["op"], erf["count"], erf["types"], erf["supported"]) == ("Erf", 2, ["int8"], False)
    assert erf["refused"][1] == {"node": "second", "reason": "no kernel for int8"}
