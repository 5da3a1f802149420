"""The simulated device: what the scheduler does, charged to a virtual clock."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.errors import DeviceError
from ascendsched.profile.trace import write_trace
from ascendsched.sim.comparison import Subject
from ascendsched.sim.cost_profile import load_profile
from ascendsched.sim.decoder import DecoderSize, build
from ascendsched.sim.device import sim_device
from ascendsched.sim.engine import MODES, Mode, simulate
from ascendsched.sim.models import Model
from ascendsched.sim.plans import shared_feeds
from ascendsched.sim.work import kernel_ns, work_of
from tests.unit import onnx_models

ASCEND = load_profile("ascend-910b")
SUBJECT = Subject("resnet-50", ASCEND)
PLAIN = {"memo": False, "pipeline_workers": 0}


def small(is_int8: bool = False) -> Model:
    size = DecoderSize(layers=2, width=32, heads=4, feed_forward=48, vocabulary=64, is_int8=is_int8)
    return Model("small", *build(size, 1, 1, 6), 2, 1, "tokens")


def profiled(model: Model, mode: str, runs: int = 1, device: str | None = None, warm: bool = True, **options):
    """The recording of some runs, after one that is not recorded."""
    device = device or sim_device(ASCEND, model.float_bytes, max(0, options.get("pipeline_workers", 0)))
    executable = asc.compile(model.graph, device=device, mode=mode, threads=1, options=asc.Options(**options))
    feeds = shared_feeds(model, executable)
    if warm:
        executable.run(feeds)
    with executable.profile() as profile:
        for _ in range(runs):
            executable.run(feeds)
    return profile.recording


def columns(spans) -> np.ndarray:
    table = np.array([spans.start, spans.end, spans.stage, spans.node, spans.worker])
    return table[:, np.lexsort(table[::-1])]


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        (MODES["host"], PLAIN),
        (MODES["host-uncached"], {**PLAIN, "tiling_cache_bytes": 0}),
        (MODES["host-pipelined"], {**PLAIN, "pipeline_workers": 1}),
        (Mode("wide", workers=14), {**PLAIN, "pipeline_workers": 14}),
        (MODES["sink"], {}),
    ],
    ids=lambda value: value.name if isinstance(value, Mode) else "",
)
def test_the_device_and_the_simulation_of_clusters_agree_to_the_nanosecond(mode: Mode, options):
    model, tasks = SUBJECT.plan(1)
    found = profiled(model, "sink" if mode.is_sink else "host", **options)
    expected = simulate(SUBJECT.workload(), ASCEND, mode, steps=1, records=True).recording
    numbers = np.array([task.number for task in tasks])
    device = columns(found.device)
    assert (device[:2] == columns(expected.device)[:2]).all()
    assert (np.sort(device[3]) == np.sort(numbers)).all()
    host = [np.delete(columns(r.host), 3, axis=0) for r in (found, expected)]
    assert host[0].shape == host[1].shape
    assert (host[0][:, np.lexsort(host[0][::-1])] == host[1][:, np.lexsort(host[1][::-1])]).all()


def test_traces_are_byte_equal_on_one_and_on_two_cpus_at_any_width(tmp_path: Path):
    cpus = sorted(os.sched_getaffinity(0))
    texts: list[list[bytes]] = []
    try:
        for chosen in ({cpus[0]}, set(cpus[:2]), set(cpus[:2])):
            os.sched_setaffinity(0, chosen)
            texts.append([])
            for mode, workers in (("host", 0), ("host", 1), ("host", 4), ("host", 14), ("sink", 0)):
                recording = profiled(small(), mode, 3, warm=False, pipeline_workers=workers)
                texts[-1].append(Path(write_trace(recording, tmp_path / "t.json")).read_bytes())
    finally:
        os.sched_setaffinity(0, cpus)
    assert texts[0] == texts[1] == texts[2]
    assert len(set(texts[0])) == len(texts[0])


def test_only_what_the_scheduler_does_is_charged():
    first, second = (profiled(small(), "host", warm=warm, pipeline_workers=0).host for warm in (False, True))
    assert np.isin(first.stage, (0, 1)).sum() >= len(first.node[first.stage == 3])  # shapes inferred, tilings made
    assert not np.isin(second.stage, (0, 1)).any()
    assert (second.stage == 3).sum() == (first.stage == 3).sum()


@pytest.mark.parametrize("is_int8", [False, True])
def test_kernels_take_what_the_roofline_of_their_task_says(is_int8: bool):
    model = small(is_int8)
    executable = asc.compile(model.graph, device="sim:float_bytes=2", mode="host", threads=1)
    with executable.profile() as profile:
        executable.run(shared_feeds(model, executable))
    device = profile.recording.device
    took = dict(zip(device.node.tolist(), (device.end - device.start).tolist(), strict=True))
    tasks = executable.tasks()
    assert len(tasks) == len(took) > 20
    assert {t.name: took[t.number] for t in tasks} == {t.name: kernel_ns(work_of(t, 2), ASCEND) for t in tasks}


def test_a_sync_point_costs_the_host_its_wait():
    executable = asc.compile(onnx_models.nonzero(), device="sim", mode="host", threads=1)
    with executable.profile() as profile:
        executable.run({"x": np.ones((3, 4), np.float32)})
    host = profile.recording.host
    assert (host.stage == 7).sum() == 2  # in the run, and at its end
    assert len(profile.recording.device) > 1
    assert profile.verdict.verdict


def test_the_profile_of_a_device_is_chosen_by_name_and_changed_by_options(tmp_path: Path):
    ways = ["sim", "sim:ascend-910b", "sim:cuda-a100", "sim:ascend-910b,launch_us=40", "sim:launch_us=40,float_bytes=2"]
    spans = [int(profiled(small(), "host", device=way).device.end.max()) for way in ways]
    assert spans[0] == spans[1] != spans[2]
    assert spans[3] > spans[1]
    path = tmp_path / "mine.json"
    from ascendsched.sim.cost_profile import profile_bytes

    path.write_bytes(profile_bytes(ASCEND))
    assert int(profiled(small(), "host", device=f"sim:{path}").device.end.max()) == spans[0]


@pytest.mark.parametrize(
    ("device", "part"),
    [
        ("sim:abacus", "no device 'abacus'"),
        ("sim:ascend-910b,coffee_us=1", "coffee_us"),
        ("sim:launch_us=fast", "not understood"),
        ("sim:launch_us=-1", "launch_us"),
        ("sim:launch_us=nan", "launch_us"),
        ("sim:workers=99", "workers"),
        ("sim:queue_depth=0", "queue_depth"),
        ("sim:float_bytes=0", "float_bytes"),
        ("sim:ascend-910b,", "not understood"),
    ],
)
def test_devices_that_cannot_be_are_refused(device: str, part: str):
    with pytest.raises(DeviceError, match=part):
        asc.compile(onnx_models.mlp(), device=device)


def test_runs_without_a_profile_leave_the_clock_alone():
    model = small()
    executable = asc.compile(model.graph, device="sim", mode="sink", threads=1)
    feeds = shared_feeds(model, executable)
    lengths = []
    for runs in (1, 3):
        for _ in range(runs):
            executable.run(feeds)
        with executable.profile() as profile:
            executable.run_async(feeds).wait(60)
        lengths.append(int(profile.recording.device.end.max()))
    assert lengths[0] == lengths[1]
