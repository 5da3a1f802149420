"""The choice of the way of scheduling is a pure function with a table of costs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.tuning import choice as ways
from ascendsched.tuning.choice import WAYS, Evidence, choose

from . import onnx_models as models

DYNAMIC = Evidence(
    is_static=False, runs=1000, first_ns=100e3, repeat_ns=40e3, sunk_ns=20e3, load_ns=60e3, schedules=10, new_share=0.01
)


def cost(evidence: Evidence, way: str) -> float | None:
    return next(a.cost_ns for a in choose(evidence).alternatives if a.way == way)


def test_static_models_sink_with_and_without_evidence() -> None:
    assert choose(Evidence(is_static=True)).way == ways.SINK
    measured = Evidence(is_static=True, runs=1000, first_ns=100e3, repeat_ns=40e3, sunk_ns=20e3, load_ns=60e3)
    assert choose(measured).way == ways.SINK


def test_dynamic_models_begin_node_by_node() -> None:
    assert choose(Evidence(is_static=False)).mode == "auto"
    assert "node by node at first" in choose(Evidence(is_static=False)).reason


def test_shapes_that_never_come_back_are_not_sunk() -> None:
    chosen = choose(replace(DYNAMIC, new_share=1.0, schedules=1000))
    assert chosen.way in {ways.HOST_SERIAL, ways.SHAPE_SINK}
    assert cost(replace(DYNAMIC, new_share=1.0), ways.SINK) > 100e3


def test_shapes_that_come_back_are_sunk() -> None:
    assert choose(DYNAMIC).way in {ways.SINK, ways.SHAPE_SINK}


def test_a_working_set_beyond_the_budget_makes_sinking_dearer() -> None:
    tight = replace(DYNAMIC, schedules=1000, schedule_bytes=1e6, budget_bytes=1 << 20)
    assert cost(tight, ways.SHAPE_SINK) > cost(replace(tight, budget_bytes=1 << 40), ways.SHAPE_SINK)
    assert choose(tight).way == ways.HOST_SERIAL


def test_buckets_are_chosen_where_they_are_declared_and_shapes_are_new() -> None:
    new = replace(DYNAMIC, new_share=0.9, schedules=900)
    assert cost(new, ways.BUCKET_SINK) is None
    assert choose(replace(new, bucket_count=4, bucket_padding=0.1)).way == ways.BUCKET_SINK
    assert choose(replace(new, bucket_count=4, bucket_padding=30.0)).way != ways.BUCKET_SINK


def test_a_pipeline_needs_cpus_and_a_device_beside_the_host() -> None:
    big = replace(DYNAMIC, new_share=1.0, first_ns=5e6, repeat_ns=5e6, device_ns=1e6, load_ns=6e6)
    assert cost(big, ways.HOST_PIPELINED) is None
    assert cost(replace(big, cpus=2), ways.HOST_PIPELINED) is None
    assert choose(replace(big, cpus=2, is_inline=False)).way == ways.HOST_PIPELINED


def test_several_segments_are_sunk_one_by_one() -> None:
    assert choose(Evidence(is_static=False, segments=3)).way == ways.SEGMENT_MIX
    assert cost(replace(DYNAMIC, segments=3), ways.SEGMENT_MIX) is not None


def test_a_working_way_is_left_only_for_a_clear_gain() -> None:
    chosen = choose(DYNAMIC)
    order = [a for a in chosen.alternatives if a.cost_ns is not None]
    second = order[1]
    assert second.cost_ns is not None
    near = second.cost_ns <= (order[0].cost_ns or 0) / 0.9
    assert choose(DYNAMIC, current=second.way).way == (second.way if near else chosen.way)
    assert choose(DYNAMIC, current=ways.HOST_SERIAL).way == chosen.way
    assert "saves" in choose(DYNAMIC, current=ways.HOST_SERIAL).reason


def test_forbidden_ways_are_never_chosen() -> None:
    for count in range(len(WAYS)):
        for forbidden in itertools.combinations([way for way in WAYS if way != ways.HOST_SERIAL], count):
            for evidence in (DYNAMIC, Evidence(is_static=True), Evidence(is_static=False)):
                assert choose(evidence, forbidden=forbidden).way not in forbidden


def test_every_alternative_is_in_the_table_with_its_reason() -> None:
    chosen = choose(DYNAMIC)
    assert {a.way for a in chosen.alternatives} == set(WAYS)
    assert all(a.why in chosen.text() and a.way in chosen.text() for a in chosen.alternatives)
    assert chosen == choose(DYNAMIC)


@pytest.mark.parametrize("mode", ["host", "sink", "auto"])
def test_explain_prints_the_costs_that_runs_have_shown(mode: str) -> None:
    exe = asc.compile(models.mlp(width=8, layers=2), mode=mode, threads=1)
    assert "not known before the first run" in exe.explain()
    for i in range(200):
        exe.run({"x": np.ones((1 + i % 4, 8), np.float32)})
    text = exe.explain()
    assert "dynamic because" in text
    assert "chosen: " in text
    assert all(way in text for way in WAYS)
    stats = exe.stats()
    # All but the very first; auto may sink them at once.
    assert stats["first_segments"] in {"host": [3], "sink": [0], "auto": [0, 1, 2, 3]}[mode]
    assert stats["sampled_segments"] >= 1
