"""Models of ai.onnx.ml that are made of operators of the core: scalers, linear models, trees; against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper as h

import ascendsched as asc

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
ort.set_default_logger_severity(4)
F = np.float32
X = np.array([[0, 0, 0], [-3, 1, 2], [1.5, np.nan, 1], [0.25, -0.5, 4]] * 5, F)
X += np.repeat(np.arange(5, dtype=F), 4)[:, None]


def single(op: str, outputs: tuple[str, ...] = ("y",), dtype: Any = F, **attributes: Any) -> onnx.ModelProto:
    node = h.make_node(op, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    x = h.make_tensor_value_info("x", h.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", 3])
    graph = h.make_graph([node], "g", [x], [h.make_empty_tensor_value_info(name) for name in outputs])
    opsets = [h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)]
    return h.make_model(graph, opset_imports=opsets, ir_version=8)


def check(model: onnx.ModelProto, x: np.ndarray = X, *, is_ours: bool = True) -> None:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = asc.compile(model, threads=1)
    assert ("HostCall" not in exe.plan.text()) == is_ours
    for rows in (20, 1, 7, 8, 0):
        if rows or is_ours:
            got = exe.run({"x": x[:rows]})
            for info, want in zip(
                session.get_outputs(), session.run(None, {"x": x[:rows]}) if rows else [], strict=False
            ):
                assert got[info.name].dtype == want.dtype
                np.testing.assert_allclose(got[info.name], want, rtol=1e-5, atol=1e-6)


def tree(*splits: tuple[str, int, float], missing: int = 0, first: int = 0) -> dict[str, list[Any]]:
    """Complete trees of depth 2 over three splits each, as attributes; nodes 3 to 6 are the leaves."""
    a: dict[str, list[Any]] = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes")}
    a |= {k: [] for k in ("truenodeids", "falsenodeids", "missing_value_tracks_true")}
    for number in range(len(splits) // 3):
        for place in range(7):
            mode, feature, value = splits[3 * number + place] if place < 3 else ("LEAF", 0, 0.0)
            row = (first + number, place, feature, value, mode, 0, 0, missing)
            row = (*row[:5], 2 * place + 1, 2 * place + 2, missing) if place < 3 else row
            for column, item in zip(a.values(), row, strict=True):
                column.append(item)
    return {f"nodes_{key}": column for key, column in a.items()}


def leaves(prefix: str, trees: int, weights: list[list[tuple[int, float]]]) -> dict[str, list[Any]]:
    rows = [(t, 3 + i, *pair) for t in range(trees) for i, leaf in enumerate(weights) for pair in leaf]
    return {f"{prefix}_{k}": [row[i] for row in rows] for i, k in enumerate(("treeids", "nodeids", "ids", "weights"))}


MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
SPLITS = [(f"BRANCH_{MODES[i % 6]}", i % 3, float(i % 4) - 1) for i in range(60)]


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("targets", [1, 2])
def test_regressions_by_trees_of_every_test_agree(targets: int, missing: int, aggregate: str) -> None:
    weights = leaves("target", 20, [[(0, w), (1, 2 - w)][:targets] for w in (0.5, -1.0, 0.25, 3.0)])
    base = [0.125] * targets
    check(single("TreeEnsembleRegressor", n_targets=targets, aggregate_function=aggregate, base_values=base,
                 **tree(*SPLITS, missing=missing), **weights))  # fmt: skip


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize(
    ("weights", "labels", "base"),
    [
        ([[(0, 0.3)], [(0, 0.1)], [(0, 0.02)], [(0, 0.07)]], [4, 7], None),
        ([[(0, 0.3)], [(0, -0.1)], [(0, -0.02)], [(0, 0.07)]], [0, 1], [0.25]),
        ([[(1, 0.3)], [(1, -0.1)], [(1, -0.02)], [(1, 0.07)]], [0, 1], None),
        ([[(1, 0.1)], [(1, 0.02)], [(1, 0.03)], [(1, 0.07)]], [0, 1], None),
        ([[(0, 0.9), (1, 0.1)], [(0, 0.4), (1, 0.6)], [(0, 0.5), (1, 0.5)], [(0, 1.0), (1, 0.0)]], [0, 1], None),
        ([[(0, 0.3), (1, -0.1), (2, 0.2)], [(0, -0.3), (1, 0.1), (2, 0.2)], [(0, 1), (1, 1), (2, 1)],
          [(0, 0.0), (1, 2.0), (2, 1.0)]], [5, 6, 9], [0.5, 0.25, -0.125]),
        ([[(0, 0.3)], [(1, 0.1)], [(2, 0.2)], [(1, 0.5)]], [5, 6, 9], None),
    ],
)  # fmt: skip
def test_classifications_by_trees_choose_the_same_labels(weights, labels, base, post) -> None:
    more = {"base_values": base} if base else {}
    model = single("TreeEnsembleClassifier", ("label", "scores"), classlabels_int64s=labels, post_transform=post,
                   **tree(*SPLITS), **leaves("class", 20, weights), **more)  # fmt: skip
    check(model)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("labels", [[3, 9], [0, 1, 5]])
def test_linear_classifiers_choose_the_same_labels(labels: list[int], post: str) -> None:
    count = len(labels)
    coefficients = np.random.default_rng(1).standard_normal(3 * count).astype(F).tolist()
    check(single("LinearClassifier", ("label", "scores"), coefficients=coefficients, intercepts=[0.1] * count,
                 classlabels_ints=labels, post_transform=post), np.nan_to_num(X))  # fmt: skip


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("LinearRegressor", {"coefficients": [0.5, -1.0, 2.0], "intercepts": [0.25]}),
        ("LinearRegressor", {"coefficients": [0.5, -1.0, 2.0, 1.0, 2.0, 3.0], "targets": 2}),
        ("Scaler", {"offset": [1.0], "scale": [0.5]}),
        ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Imputer", {"imputed_value_floats": [9.0], "replaced_value_float": float("nan")}),
        ("Imputer", {"imputed_value_floats": [9.0, 8.0, 7.0], "replaced_value_float": 1.0}),
    ],
)
def test_arithmetic_of_models_agrees(op: str, attributes: dict[str, Any]) -> None:
    check(single(op, **attributes))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Scaler", {"offset": [1.0, 2.0], "scale": [1.0, 2.0]}), ("Imputer", {"imputed_value_floats": [9.0, 8.0]})],
)
def test_numbers_for_other_columns_than_there_are_are_refused(op: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(asc.GraphError, match="2 numbers for 3 columns"):
        asc.compile(single(op, **attributes))


def test_a_scaler_of_doubles_subtracts_in_their_precision() -> None:
    x = np.array([[1e9 + 1, 2e9 + 1, 3.25]] * 20)
    check(single("Scaler", dtype=np.float64, offset=[1e9, 2e9, 3.0], scale=[1.0, 1.0, 1.0]), x)


def test_what_only_the_reference_computes_stays_there() -> None:
    attributes = tree(*SPLITS[:3]) | leaves("target", 1, [[(0, 1.0)], [(0, 2.0)], [(0, 3.0)], [(0, 4.0)]])
    check(single("TreeEnsembleRegressor", n_targets=1, dtype=np.float64, **attributes), X.astype(float), is_ours=False)


@pytest.mark.parametrize(
    "weights",
    [
        [[(0, 0.3)], [(0, 0.1), (0, 0.2)], [(0, 0.02)], [(0, 0.07)]],
        [[(0, 0.3)], [], [(0, 0.02)], [(0, 0.07)]],
        [[(0, 0.3)], [(1, -0.1)], [(2, 0.02)], [(1, 0.07)]],
    ],
)
@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]])
def test_scores_that_runtimes_read_differently_are_refused(weights, labels) -> None:
    weights = [[(min(c, len(labels) - 1), -w) for c, w in leaf] for leaf in weights]
    with pytest.raises(asc.UnsupportedError, match="keep onnxruntime"):
        asc.compile(single("TreeEnsembleClassifier", ("label", "scores"), classlabels_int64s=labels,
                           **tree(*SPLITS), **leaves("class", 20, weights)))  # fmt: skip


@pytest.mark.parametrize("labels", [[1, 2], [1, 0]])
def test_scores_of_both_of_two_labels_that_are_not_0_and_1_are_refused(labels) -> None:
    weights = [[(0, 0.9), (1, 0.1)], [(0, 0.4), (1, 0.6)], [(0, 0.5), (1, 0.5)], [(0, 1.0), (1, 0.0)]]
    with pytest.raises(asc.UnsupportedError, match="onnxruntime answers 0 and 1"):
        asc.compile(single("TreeEnsembleClassifier", ("label", "scores"), classlabels_int64s=labels,
                           **tree(*SPLITS), **leaves("class", 20, weights)))  # fmt: skip


DAMAGED = [
    {"nodes_truenodeids": [1, 3, 0, 0, 0, 0, 0]},  # node 0 behind node 2
    {"nodes_truenodeids": [1, 3, 3, 0, 0, 0, 0]},  # two ways to node 3
    {"nodes_falsenodeids": [99, 4, 6, 0, 0, 0, 0]},
    {"nodes_modes": ["BRANCH_LEQ"] * 7},
    {"nodes_modes": ["NONSENSE"] + ["LEAF"] * 6},
    {"nodes_values": [0.0]},
    {"nodes_featureids": [-5, 0, 0, 0, 0, 0, 0]},
    {"nodes_nodeids": [0] * 7},
    {"target_ids": [0, 0, 7, 0]},
    {"target_weights": [1.0]},
    {"nodes_treeids": [0]},
    {"n_targets": 0},
]


@pytest.mark.parametrize("damage", DAMAGED, ids=[next(iter(d)) + str(i) for i, d in enumerate(DAMAGED)])
def test_damaged_trees_are_refused(damage: dict[str, Any]) -> None:
    attributes = tree(*SPLITS[:3]) | leaves("target", 1, [[(0, 1.0)], [(0, 2.0)], [(0, 3.0)], [(0, 4.0)]])
    with pytest.raises(asc.AscendSchedError, match=r"^\["):
        asc.compile(single("TreeEnsembleRegressor", **({"n_targets": 1} | attributes | damage)))


def test_a_tree_that_reads_more_features_than_rows_have_is_an_error() -> None:
    attributes = tree(("BRANCH_LEQ", 7, 0.0), *SPLITS[1:3])
    attributes |= leaves("target", 1, [[(0, 1.0)], [(0, 2.0)], [(0, 3.0)], [(0, 4.0)]])
    exe = asc.compile(single("TreeEnsembleRegressor", n_targets=1, **attributes), threads=1)
    for rows in (1, 20):
        with pytest.raises(asc.AscendSchedError, match="feature"):
            exe.run({"x": X[:rows]})


@pytest.mark.sanitize
@pytest.mark.parametrize("rows", [1, 3, 8, 100])
def test_tables_that_lead_outside_of_themselves_are_errors(rows: int) -> None:
    g = asc.Graph("trees")
    names = {"nodes": ("int32", ("k", 4)), "thresholds": ("float32", ("k",)), "roots": ("int32", ("t",))}
    names |= {"targets": ("int32", ("w",)), "weights": ("float32", ("w",))}
    inputs = [g.input("x", "float32", ("n", 2)), *(g.input(name, *kind) for name, kind in names.items())]
    g.output(g.op("TreeSums", *inputs, targets=2), "y")
    exe = asc.compile(g, threads=1)
    good = {
        "nodes": np.array([[1, 0, 1, 2], [-1, 0, 0, 1], [-1, 0, 1, 3]], np.int32), "thresholds": np.zeros(3, F),
        "roots": np.zeros(9, np.int32), "targets": np.array([0, 1, 0], np.int32), "weights": np.array([1, 2, 4], F),
    }  # fmt: skip
    x = np.tile(np.array([[9, -1], [9, 1]], F), (rows, 1))[:rows]
    want = np.tile(np.array([[9, 0], [36, 18]], F), (rows, 1))[:rows]
    np.testing.assert_array_equal(exe.run({"x": x} | good)["y"], want)
    for name, place, value in [
        ("nodes", (0, 0), 2), ("nodes", (0, 2), 0), ("nodes", (0, 2), -1), ("nodes", (0, 2), 3),
        ("nodes", (1, 2), -1), ("nodes", (1, 3), 4), ("roots", 4, 3), ("roots", 8, -1), ("targets", 0, 2),
        ("targets", 0, -1), ("nodes", (0, 2), 2**31 - 1), ("nodes", (0, 0), 2**31 - 1),
    ]:  # fmt: skip
        bad = {key: array.copy() for key, array in good.items()}
        bad[name][place] = value
        with pytest.raises(asc.AscendSchedError, match="TreeSums"):
            exe.run({"x": x} | bad)
    np.testing.assert_array_equal(exe.run({"x": x} | good)["y"], want)
