"""Products of steps that a loop reads from outside are computed before it, where that is what the loop means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc

from .onnx_models import info, model

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")

MODES = ["host", "sink"]
BATCH, INPUTS, HIDDEN = 3, 6, 5
MARK = "of_all_steps=1"
pytestmark = pytest.mark.sanitize

# Where each step finds its input: what it carries from step to step, and the nodes that give the index "t".
COUNTERS: dict[str, tuple[str, list[tuple[str, list[str], dict[str, Any]]]]] = {
    "iteration": ("", [("Identity", ["i"], {})]),
    "iteration as int32": ("", [("Cast", ["i"], {"to": T.INT32})]),
    "iteration from the end": ("", [("Sub", ["last", "i"], {})]),
    "iteration from behind": ("", [("Sub", ["minus_one", "i"], {})]),
    "time": ("zero", [("Identity", ["time"], {})]),
    "time from the front": ("minus_steps", [("Identity", ["time"], {})]),
    "time downwards": ("last", [("Identity", ["time"], {})]),
}


def cell(kind: str, product: str) -> list[Any]:
    """The nodes from "row" and the states to the states after, as exporters spell them."""
    n = h.make_node
    split = "from_x" if kind == "GRU" else "gates"
    nodes = [n("Split", [split], ["p", "q", "r"], axis=-1, num_outputs=3)]
    if product == "Gemm":
        nodes.insert(0, n("Gemm", ["row", "wt", "b"], ["from_x"], transB=1))
    else:
        nodes[:0] = [n("MatMul", ["row", "w"], ["xw"]), n("Add", ["b", "xw"], ["from_x"])]
    nodes.insert(-1, n("MatMul", ["state", "u"], ["from_state"]))
    if kind == "GRU":
        nodes += [
            n("Split", ["from_state"], ["sp", "sq", "sr"], axis=-1, num_outputs=3),
            n("Add", ["p", "sp"], ["z_in"]),
            n("Sigmoid", ["z_in"], ["z"]),
            n("Mul", ["z", "sr"], ["reset"]),
            n("Add", ["r", "reset"], ["c_in"]),
            n("Tanh", ["c_in"], ["c"]),
            n("Sub", ["state", "c"], ["difference"]),
            n("Sigmoid", ["q"], ["keep"]),
            n("Mul", ["keep", "difference"], ["kept"]),
            n("Add", ["c", "kept"], ["after"]),
        ]
    else:
        nodes.insert(-1, n("Add", ["from_x", "from_state"], ["gates"]))
        nodes += [
            n("Sigmoid", ["p"], ["forget"]),
            n("Mul", ["forget", "state"], ["kept"]),
            n("Tanh", ["q"], ["c"]),
            n("Sigmoid", ["r"], ["gate"]),
            n("Mul", ["gate", "c"], ["new"]),
            n("Add", ["kept", "new"], ["after"]),
        ]
    return nodes


def recurrent(
    counter: str = "iteration",
    kind: str = "LSTM",
    product: str = "MatMul",
    dtype: type = np.float32,
    first_nodes: tuple[Any, ...] = (),
    extra: tuple[Any, ...] = (),
    constants: dict[str, np.ndarray] | None = None,
    x_shape: Any = ("batch", "steps", INPUTS),
    **changed: str,
) -> Any:
    """A layer over x, [batch, steps, inputs], whose steps come first in the loop. ``changed`` renames what nodes of the
    body read, ``first_nodes`` and ``extra`` add nodes to it, before and after the row."""
    n = h.make_node
    element = h.np_dtype_to_tensor_dtype(np.dtype(dtype))
    first, index = COUNTERS[counter]
    op, operands, attributes = index[0]
    nodes = [
        *first_nodes,
        n(op, operands, ["t"], **attributes),
        n("Gather", ["xs", "t"], ["row"], axis=0),
        *extra,
        *cell(kind, product),
        n("Identity", ["go_on"], ["goes_on"]),
        n("Identity", ["after"], ["piece"]),
    ]
    for node in nodes:
        for k, name in enumerate(node.input):
            node.input[k] = changed.get(f"{node.op_type}_{name}", name)
    body_inputs = [info("i", T.INT64, []), info("go_on", T.BOOL, [])]
    body_outputs = [info("goes_on", T.BOOL), info("after", element), info("piece", element)]
    carried = []
    if first:
        step = "minus_one" if counter == "time downwards" else "one"
        nodes.append(n("Add", ["time", changed.get("step", step)], ["next_time"]))
        body_inputs.append(info("time", T.INT64))
        body_outputs.insert(1, info("next_time", T.INT64))
        carried = [first]
    body_inputs.append(info("state", element))
    body = h.make_graph(nodes, "steps", body_inputs, body_outputs)
    outside = [
        n("Transpose", ["x"], ["xs"], perm=[1, 0, 2]),
        n("Shape", ["x"], ["shape"]),
        n("Gather", ["shape", "one"], ["steps"]),
        n("Sub", ["steps", "one"], ["last"]),
        n("Neg", ["steps"], ["minus_steps"]),
        n("Loop", ["trips", "", *carried, "start"], [*(["end_time"] if first else []), "end", "pieces"], body=body),
    ]
    rng = np.random.default_rng(5)
    weights = {
        "w": rng.standard_normal((INPUTS, 3 * HIDDEN)),
        "u": rng.standard_normal((HIDDEN, 3 * HIDDEN)),
        "b": rng.standard_normal(3 * HIDDEN),
    }
    weights["wt"] = weights["w"].T.copy()
    numbers = {"zero": 0, "one": 1, "two": 2, "minus_one": -1}
    values = {
        **{name: value.astype(dtype) for name, value in weights.items()},
        **{name: np.int64(value) for name, value in numbers.items()},
        **(constants or {}),
    }
    inputs = [info("x", element, x_shape), info("trips", T.INT64, []), info("start", element, ["batch", HIDDEN])]
    return model(outside, inputs, [info("end", element), info("pieces", element)], values)


def feed(batch: int, steps: int, trips: int | None = None, dtype: type = np.float32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps)
    return {
        "x": rng.standard_normal((batch, steps, INPUTS)).astype(dtype),
        "trips": np.array(steps if trips is None else trips, np.int64),
        "start": rng.standard_normal((batch, HIDDEN)).astype(dtype),
    }


FEEDS = [feed(BATCH, 4), feed(1, 7), feed(2, 3, 2), feed(BATCH, 4), feed(2, 3, 0), feed(2, 1)]


def check(made: Any, mode: str = "host", feeds: Any = FEEDS, tolerance: float = 1e-5) -> Any:
    settings = ort.SessionOptions()
    settings.log_severity_level = 3  # not all constants are read
    session = ort.InferenceSession(made.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    exe = asc.compile(made, mode=mode, threads=1)
    for feed in [*feeds, *feeds]:
        got, wanted = exe.run(feed), session.run(["end", "pieces"], feed)
        for name, want in zip(("end", "pieces"), wanted, strict=True):
            if want.shape == (0,):  # no step: onnxruntime does not know the rank that a piece would have had
                assert got[name].shape == (0, *feed["start"].shape)
                continue
            assert got[name].shape == want.shape
            assert got[name].dtype == want.dtype
            np.testing.assert_allclose(got[name], want, rtol=tolerance, atol=tolerance)
    return exe


def moved(exe: Any) -> int:
    return exe.plan.text().count(MARK)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("counter", COUNTERS)
def test_the_product_of_all_steps_is_computed_before_the_loop(counter, mode):
    exe = check(recurrent(counter), mode)
    assert moved(exe) == 1
    assert "of all steps of the loop that reads its rows" in exe.explain()


@pytest.mark.parametrize("product", ["MatMul", "Gemm"])
@pytest.mark.parametrize("counter", ["iteration", "time"])
def test_the_bias_goes_with_the_product(counter, product):
    exe = check(recurrent(counter, "GRU", product))
    before, _, body = exe.plan.text().partition("control Loop")
    assert MARK in before
    assert "Add{}" in before[before.index(MARK) :]
    assert body.count("task MatMul") + body.count("MatMul{}") == 1  # of the state
    assert body.count("task Gemm") + body.count("Gemm{") == 0


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 2e-2)])
def test_doubles_and_halves_move_too(dtype, tolerance):
    feeds = [feed(*sizes, dtype=dtype) for sizes in ((2, 3), (1, 5), (2, 3, 0))]
    assert moved(check(recurrent("time", "GRU", dtype=dtype), feeds=feeds, tolerance=tolerance)) == 1


def test_other_readers_of_the_row_keep_it():
    extra = (
        h.make_node("Tanh", ["row"], ["bent"]),
        h.make_node("MatMul", ["bent", "w"], ["bent_w"]),
        h.make_node("Gather", ["xs", "t"], ["row_again"], axis=0),
        h.make_node("MatMul", ["row_again", "w2"], ["second"]),
        h.make_node("Add", ["second", "bent_w"], ["third"]),
        h.make_node("Sub", ["third", "b"], ["shift"]),
    )
    w2 = np.random.default_rng(1).standard_normal((INPUTS, 3 * HIDDEN)).astype(np.float32)
    exe = check(recurrent("time", "GRU", extra=extra, constants={"w2": w2}, Add_b="shift"), tolerance=1e-5)
    assert moved(exe) == 2


@pytest.mark.parametrize(("axis", "count"), [(0, 1), (-3, 0)])
def test_rows_may_be_picked_with_an_index_of_one_element(axis, count):
    first_nodes = (
        h.make_node("Unsqueeze", ["i", "first_axis"], ["one_index"]),
        h.make_node("Gather", ["xs", "one_index"], ["slab"], axis=0),
        h.make_node("Squeeze", ["slab", "slab_axis"], ["picked"]),
    )
    constants = {"first_axis": np.int64([0]), "slab_axis": np.int64([axis])}
    exe = check(recurrent("iteration", first_nodes=first_nodes, constants=constants, MatMul_row="picked"))
    assert moved(exe) == count


def test_vectors_as_rows_give_vectors():
    n = h.make_node
    nodes = [
        n("Gather", ["x", "i"], ["row"], axis=0),
        n("MatMul", ["row", "w"], ["xw"]),
        n("Add", ["xw", "b"], ["piece"]),
        n("Identity", ["go_on"], ["goes_on"]),
    ]
    body = h.make_graph(
        nodes, "steps", [info("i", T.INT64, []), info("go_on", T.BOOL, [])], [info("goes_on", T.BOOL), info("piece")]
    )
    rng = np.random.default_rng(0)
    w = rng.standard_normal((INPUTS, 4)).astype(np.float32)
    for bias, count in (
        (rng.standard_normal(4), 1),
        (rng.standard_normal((1, 4)), 1),
        (rng.standard_normal((2, 4)), 1),
    ):
        made = model(
            [n("Loop", ["trips", ""], ["pieces"], body=body), n("Identity", ["pieces"], ["end"])],
            [info("x", shape=None), info("trips", T.INT64, [])],
            [info("end"), info("pieces")],
            {"w": w, "b": bias.astype(np.float32)},
        )
        feeds = [
            {"x": rng.standard_normal(s).astype(np.float32), "trips": np.array(2, np.int64)}
            for s in ((3, INPUTS), (2, INPUTS))
        ]
        exe = check(made, feeds=feeds)
        assert moved(exe) == count
        for wrong in ((INPUTS,), ()):
            with pytest.raises(asc.GraphError):
                exe.run({"x": np.ones(wrong, np.float32), "trips": np.array(2, np.int64)})


def test_masked_steps_hand_the_state_on():
    mask = np.random.default_rng(2).integers(0, 2, (8, 1, 1)).astype(bool)
    made = recurrent(
        "time",
        extra=(h.make_node("Gather", ["mask", "t"], ["now"], axis=0),),
        constants={"mask": mask},
    )
    body = next(a for a in made.graph.node[-1].attribute if a.name == "body").g
    end = next(n for n in body.node if n.output[0] == "after")
    end.output[0] = "candidate"
    body.node.insert(
        [n.output[0] for n in body.node].index("goes_on"),
        h.make_node("Where", ["now", "candidate", "state"], ["after"]),
    )
    assert moved(check(made)) == 1


@pytest.mark.parametrize(
    ("counter", "changed"),
    [
        ("iteration", {"Gather_t": "twice"}),
        ("iteration", {"Gather_t": "looked_up"}),
        ("time", {"step": "two"}),
        ("time", {"step": "i"}),
        ("iteration", {"MatMul_w": "w_now"}),
        ("iteration", {"Gather_xs": "xs_now"}),
    ],
)
def test_products_stay_where_steps_jump_or_operands_change(counter, changed):
    first_nodes = (
        h.make_node("Mul", ["i", "two"], ["twice"]),
        h.make_node("Gather", ["order", "i"], ["looked_up"], axis=0),
        h.make_node("ReduceMax", ["state"], ["largest"], keepdims=0),
        h.make_node("Mul", ["w", "largest"], ["w_now"]),
        h.make_node("Mul", ["xs", "largest"], ["xs_now"]),
    )
    made = recurrent(counter, first_nodes=first_nodes, constants={"order": np.int64([2, 0, 3, 1])}, **changed)
    assert moved(check(made, feeds=[feed(2, 7, 3), feed(1, 8, 4)], tolerance=1e-4)) == 0


def test_an_index_out_of_range_is_refused_as_before():
    exe = asc.compile(recurrent("time"), mode="host", threads=1)
    exe.run(feed(2, 3))
    with pytest.raises(asc.GraphError, match="out of range"):
        exe.run(feed(2, 3, 4))
    exe.run(feed(2, 3))


def test_a_loop_without_rows_runs_no_step():
    exe = asc.compile(recurrent("iteration"), mode="host", threads=1)
    got = exe.run(feed(2, 0))
    np.testing.assert_array_equal(got["end"], feed(2, 0)["start"])
    assert got["pieces"].shape[0] == 0


def test_rows_of_another_width_are_refused():
    exe = asc.compile(recurrent("iteration", x_shape=("batch", "steps", "width")), mode="host", threads=1)
    wrong = feed(2, 3)
    wrong["x"] = wrong["x"][:, :, :-1].copy()
    with pytest.raises(asc.GraphError, match="inner dimensions"):
        exe.run(wrong)


def test_products_that_are_large_or_hardly_read_stay():
    assert moved(asc.compile(recurrent("iteration", x_shape=(2, 4, INPUTS)))) == 1
    assert moved(asc.compile(recurrent("iteration", x_shape=(600_000, 4, INPUTS)))) == 0
    made = recurrent("iteration", x_shape=(2, 40, INPUTS))
    made.graph.node[-1].input[0] = "two"
    assert moved(asc.compile(made)) == 0


def test_without_fusion_the_loop_stays_as_it_is():
    exe = asc.compile(recurrent("iteration"), options=asc.Options(fuse=False))
    assert moved(exe) == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_saved_loop_gives_the_same_bits(mode: str, tmp_path: Path):
    exe = asc.compile(recurrent("time", "GRU", "Gemm"), mode=mode, threads=1)
    exe.save(tmp_path / "m.asc")
    again = asc.load(tmp_path / "m.asc")
    assert moved(again) == 1
    for one in FEEDS:
        got, want = again.run(one), exe.run(one)
        for name in want:
            np.testing.assert_array_equal(got[name], want[name])


def test_a_loop_in_a_loop_is_moved_within_the_outer_one():
    inner = recurrent("iteration").graph
    loop = inner.node[-1]
    nodes = [
        h.make_node("Loop", ["trips", "", "outer_state"], ["outer_after", "pieces_now"], body=loop.attribute[0].g),
        h.make_node("Identity", ["outer_go_on"], ["outer_goes_on"]),
    ]
    body = h.make_graph(
        nodes,
        "outer",
        [info("outer_i", T.INT64, []), info("outer_go_on", T.BOOL, []), info("outer_state")],
        [info("outer_goes_on", T.BOOL), info("outer_after"), info("pieces_now")],
    )
    inner.node.pop()
    made = recurrent("iteration")
    del made.graph.node[-1]
    made.graph.node.append(h.make_node("Loop", ["two", "", "start"], ["end", "pieces"], body=body))
    exe = check(made, feeds=[feed(2, 3), feed(1, 4)])
    assert moved(exe) == 1
