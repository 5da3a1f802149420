"""Operators of ai.onnx.ml, made of others or computed by the reference of the onnx package, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendsched as asc

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")

WIDTH = 4
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def _check(
    op: str, outputs: list[str], feeds: list[np.ndarray[Any, Any]], is_reference: bool = False, **attributes: Any
) -> None:
    h = onnx.helper
    types = {"label": onnx.TensorProto.INT64}
    element = h.np_dtype_to_tensor_dtype(feeds[0].dtype)
    graph = h.make_graph(
        [h.make_node(op, ["x"], outputs, name="the_node", domain="ai.onnx.ml", **attributes)],
        "ml",
        [h.make_tensor_value_info("x", element, ["n", WIDTH])],
        [h.make_tensor_value_info(o, types.get(o, onnx.TensorProto.FLOAT), None) for o in outputs],
    )
    opsets = [h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = asc.compile(model, threads=1)
    assert ("onnx.reference" in exe.explain()) == is_reference
    for x in feeds:
        want, got = session.run(None, {"x": x}), exe.run({"x": x})
        for name, expected in zip(outputs, want, strict=True):
            assert got[name].dtype == expected.dtype
            np.testing.assert_allclose(got[name], expected, rtol=1e-4, atol=1e-5, err_msg=f"{op} {name} {attributes}")


def _inputs(seed: int = 0) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, WIDTH)).astype(np.float32) for n in (1, 3, 17)]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_linear_classifiers(transform: str, classes: int) -> None:
    rng = np.random.default_rng(classes)
    _check(
        "LinearClassifier",
        ["label", "scores"],
        _inputs(),
        transform == "SOFTMAX_ZERO",
        coefficients=rng.standard_normal(classes * WIDTH).tolist(),
        intercepts=rng.standard_normal(classes).tolist(),
        classlabels_ints=list(range(10, 10 + classes)),
        post_transform=transform,
    )


@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressors(targets: int) -> None:
    rng = np.random.default_rng(targets)
    _check(
        "LinearRegressor",
        ["y"],
        _inputs(),
        coefficients=rng.standard_normal(targets * WIDTH).tolist(),
        intercepts=rng.standard_normal(targets).tolist(),
        targets=targets,
    )


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_normalizers(norm: str) -> None:
    _check("Normalizer", ["y"], _inputs(), norm=norm)


def test_scalers_and_imputers() -> None:
    _check("Scaler", ["y"], _inputs(), offset=[0.5, 1.0, -1.0, 0.0], scale=[2.0, 1.0, 0.5, 3.0])
    holes = _inputs()
    for x in holes:
        x[:, 1] = np.nan
    _check("Imputer", ["y"], holes, imputed_value_floats=[9.0, 8.0, 7.0, 6.0], replaced_value_float=float("nan"))


def test_one_hot_encoders() -> None:
    whole = [np.random.default_rng(n).integers(0, 6, (n, WIDTH)) for n in (1, 5)]
    _check("OneHotEncoder", ["y"], whole, True, cats_int64s=[0, 2, 3, 5], zeros=1)


# Two trees of depth two; leaves of the second hold several weights.
def _trees(mode: str, kind: str, ids: list[int]) -> dict[str, Any]:
    nodes = [(0, 0, mode, 0, 0.1, 1, 2), (0, 1, mode, 1, -0.2, 3, 4), (0, 2, "LEAF", 0, 0.0, 0, 0)]
    nodes += [(0, 3, "LEAF", 0, 0.0, 0, 0), (0, 4, "LEAF", 0, 0.0, 0, 0)]
    nodes += [(1, 0, mode, 3, 0.3, 1, 2), (1, 1, "LEAF", 0, 0.0, 0, 0), (1, 2, "LEAF", 0, 0.0, 0, 0)]
    leaves = [(0, 2, 0, 0.5), (0, 3, 1, -1.5), (0, 4, 0, 0.75), (1, 1, 1, 2.0), (1, 1, 0, 0.25), (1, 2, 0, -0.5)]
    columns: list[list[Any]] = [list(column) for column in zip(*nodes, strict=True)]
    names = ["treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids"]
    trees: dict[str, Any] = {f"nodes_{name}": column for name, column in zip(names, columns, strict=True)}
    columns = [list(column) for column in zip(*leaves, strict=True)]
    trees |= {f"{kind}_{n}": c for n, c in zip(["treeids", "nodeids", "ids", "weights"], columns, strict=True)}
    trees[f"{kind}_ids"] = [ids[i] for i in columns[2]]
    return trees


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
def test_regressors_of_trees(mode: str, aggregate: str) -> None:
    trees = _trees(mode, "target", [0, 1])
    _check("TreeEnsembleRegressor", ["y"], _inputs(), n_targets=2, aggregate_function=aggregate, **trees)


def test_what_the_reference_gets_wrong_is_refused() -> None:
    for attributes in ({}, {"norm": "MAX"}):
        with pytest.raises(asc.UnsupportedError, match=r"the_node.*norm .* is not supported"):
            _check("Normalizer", ["y"], _inputs(), **attributes)
    trees = _trees("BRANCH_LEQ", "target", [0, 1])
    with pytest.raises(asc.UnsupportedError, match="aggregate_function MIN is not supported"):
        _check("TreeEnsembleRegressor", ["y"], _inputs(), n_targets=2, aggregate_function="MIN", **trees)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_regressors_of_support_vectors(kernel: str) -> None:
    rng = np.random.default_rng(3)
    _check(
        "SVMRegressor",
        ["y"],
        _inputs(),
        True,
        coefficients=rng.standard_normal(5).tolist(),
        kernel_params=[0.25, 0.5, 2.0],
        kernel_type=kernel,
        n_supports=5,
        rho=[0.125],
        support_vectors=rng.standard_normal(5 * WIDTH).tolist(),
    )
