"""While loops that count up to a limit from outside: how often they run is known before, and they run as often."""

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

pytestmark = pytest.mark.sanitize
n = h.make_node

# The nodes of the body that end in "goes_on"; "next" is the counter after the step.
CONDITIONS: dict[str, list[Any]] = {
    "next below": [n("Less", ["next", "limit"], ["goes_on"])],
    "current below": [n("Less", ["count", "limit"], ["goes_on"])],
    "next at most": [n("LessOrEqual", ["next", "limit"], ["goes_on"])],
    "limit above": [n("Greater", ["limit", "next"], ["goes_on"])],
    "limit at least": [n("GreaterOrEqual", ["limit", "count"], ["goes_on"])],
    "as floats": [
        n("Cast", ["next"], ["next_float"], to=T.FLOAT),
        n("Cast", ["limit"], ["limit_float"], to=T.FLOAT),
        n("Less", ["next_float", "limit_float"], ["goes_on"]),
    ],
    "both": [
        n("Less", ["next", "limit"], ["below"]),
        n("Less", ["next", "seven"], ["below_seven"]),
        n("And", ["below", "below_seven"], ["all"]),
        n("And", ["all", "go_on"], ["goes_on"]),
    ],
    "under another name": [
        n("Less", ["next", "limit"], ["below"]),
        n("Cast", ["below"], ["same"], to=T.BOOL),
        n("Identity", ["same"], ["goes_on"]),
    ],
}
ASKED = {
    "by two": ([n("Less", ["next", "limit"], ["goes_on"])], {"step": 2}),
    "downwards": ([n("Less", ["limit", "next"], ["goes_on"])], {"step": -1}),
    "data": (
        [n("ReduceMax", ["after"], ["most"], keepdims=0), n("Less", ["most", "ceiling"], ["goes_on"])],
        {"step": 1},
    ),
    "count and data": (
        [
            n("ReduceMax", ["after"], ["most"], keepdims=0),
            n("Less", ["most", "ceiling"], ["below"]),
            n("Less", ["next", "limit"], ["counted"]),
            n("And", ["below", "counted"], ["goes_on"]),
        ],
        {"step": 1},
    ),
    "a limit that moves": (
        [n("Sub", ["limit", "i_now"], ["nearer"]), n("Less", ["next", "nearer"], ["goes_on"])],
        {"step": 1},
    ),
}


def counted(condition: list[Any], kind: type = np.int64, step: int = 1, has_most: bool = False) -> Any:
    element = h.np_dtype_to_tensor_dtype(np.dtype(kind))
    body = h.make_graph(
        [
            n("Cast", ["i"], ["i_now"], to=element),
            n("Add", ["step", "count"], ["next"]),
            n("Cast", ["count"], ["count_float"], to=T.FLOAT),
            n("Add", ["state", "count_float"], ["after"]),
            *condition,
            n("Identity", ["after"], ["piece"]),
        ],
        "steps",
        [info("i", T.INT64, []), info("go_on", T.BOOL, []), info("count", element), info("state")],
        [info("goes_on", T.BOOL), info("next", element), info("after"), info("piece")],
    )
    nodes = [
        n("Add", ["given", "zero"], ["limit"]),
        n("Loop", ["most" if has_most else "", "go", "start", "x"], ["end", "sum", "pieces"], body=body),
    ]
    inputs = [info("given", element, []), info("go", T.BOOL, []), info("start", element, []), info("x", shape=[2])]
    if has_most:
        inputs.append(info("most", T.INT64, []))
    constants = {"zero": kind(0), "seven": kind(7), "step": kind(step), "ceiling": np.float32(20)}
    return model(nodes, inputs, [info("end", element), info("sum"), info("pieces")], constants)


def feed(limit: int, start: int = 0, go: bool = True, kind: type = np.int64, most: int | None = None) -> Any:
    made = {
        "given": np.array(limit, kind),
        "go": np.array(go),
        "start": np.array(start, kind),
        "x": np.float32([1, -1]),
    }
    return made if most is None else {**made, "most": np.array(most, np.int64)}


def check(made: Any, feeds: list[Any], mode: str = "host") -> Any:
    settings = ort.SessionOptions()
    settings.log_severity_level = 3  # not all constants are read
    session = ort.InferenceSession(made.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    exe = asc.compile(made, mode=mode, threads=1)
    for one in [*feeds, *feeds]:
        got = exe.run(one)
        for name, want in zip(("end", "sum", "pieces"), session.run(["end", "sum", "pieces"], one), strict=True):
            np.testing.assert_array_equal(got[name].reshape(want.shape), want)
            assert got[name].size == want.size
    return exe


def is_counted(exe: Any) -> bool:
    return "/trips_" in exe.plan.text()


@pytest.mark.parametrize("mode", ["host", "sink"])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_loop_that_counts_up_to_a_limit_runs_as_often_as_before(condition, kind, mode):
    feeds = [feed(limit, start, kind=kind) for limit, start in ((5, 0), (9, 3), (1, 0), (0, 0), (-4, 2), (3, -2))]
    feeds.append(feed(5, go=False, kind=kind))
    exe = check(counted(CONDITIONS[condition], kind), feeds, mode)
    assert is_counted(exe)


@pytest.mark.parametrize("most", [0, 1, 3, 50])
def test_the_number_of_trips_that_the_loop_names_still_holds(most):
    exe = check(counted(CONDITIONS["next below"], has_most=True), [feed(6, most=most), feed(2, most=most)])
    assert is_counted(exe)


def test_limits_at_the_ends_of_the_range_do_not_wrap():
    far = np.iinfo(np.int64).max
    made = counted(CONDITIONS["next at most"], has_most=True)
    assert is_counted(check(made, [feed(far, -3, most=4), feed(-far, 3, most=4), feed(far, 1, most=2)]))


@pytest.mark.parametrize("name", ASKED)
def test_conditions_that_count_otherwise_are_asked_after_each_step(name):
    condition, settings = ASKED[name]
    feeds = [feed(-5, 3), feed(0, 2)] if name == "downwards" else [feed(9, 1), feed(40, 0), feed(0)]
    assert not is_counted(check(counted(condition, **settings), feeds))


def test_all_steps_of_a_counted_loop_share_a_schedule():
    exe = asc.compile(counted(CONDITIONS["as floats"], np.int32), mode="sink", threads=1)
    exe.run(feed(40, kind=np.int32))
    assert exe.stats()["schedule_entries"] < 8


@pytest.mark.parametrize("device", ["null", "sim", "timed"])
def test_devices_without_fused_kernels_count_too(device):
    made = counted(CONDITIONS["next below"])
    exe = asc.compile(made, mode="sink", device=device)
    assert is_counted(exe)
    for limit, start in ((5, 0), (9, 3), (0, 0)):
        got, want = exe.run(feed(limit, start)), asc.compile(made, threads=1).run(feed(limit, start))
        assert got["pieces"].shape == want["pieces"].shape


def test_without_fusion_the_condition_is_asked():
    exe = asc.compile(counted(CONDITIONS["next below"]), options=asc.Options(fuse=False))
    assert not is_counted(exe)


def test_a_saved_loop_counts_as_before(tmp_path: Path):
    exe = asc.compile(counted(CONDITIONS["both"]), mode="sink", threads=1)
    exe.save(tmp_path / "m.asc")
    again = asc.load(tmp_path / "m.asc")
    assert is_counted(again)
    for one in (feed(5), feed(30, 2), feed(0), feed(3, go=False)):
        got, want = again.run(one), exe.run(one)
        for name in want:
            np.testing.assert_array_equal(got[name], want[name])
