"""Host and device work at the same time: read off the spans of runs in flight on the timed device."""

from __future__ import annotations

import numpy as np
import pytest

import ascendsched as asc
from ascendsched.profile import STAGES

from . import onnx_models

pytestmark = pytest.mark.sanitize

IN_FLIGHT = 4
TASK_US = 500


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_runs_in_flight_overlap_host_and_device(mode):
    exe = asc.compile(onnx_models.mlp(layers=4), device=f"timed:us={TASK_US}", mode=mode, threads=1)
    feeds = [{"x": np.ones((n, 16), np.float32)} for n in range(1, IN_FLIGHT + 1)]
    with exe.profile() as profile:
        runs = [exe.run_async(f) for f in feeds]
        for run in runs:
            run.wait(60)
    host, device = profile.recording.host, profile.recording.device
    assert np.bincount(device.run).tolist() == [0] + [8] * IN_FLIGHT
    hand_over = np.isin(host.stage, [STAGES.index("launch"), STAGES.index("submit")])
    for run in range(2, IN_FLIGHT + 1):
        handed = host.end[hand_over & (host.run == run)].max()
        before = device.end[device.run == run - 1].max()
        assert handed < before, "the host prepared the next run only after the device had finished the last"
    assert (device.start[1:] >= device.end[:-1]).all(), "one stream executes one task at a time"
    assert profile.verdict.figures["busy_ns"] >= IN_FLIGHT * 8 * TASK_US * 1000 * 0.99


def test_a_full_queue_holds_the_host_back():
    exe = asc.compile(onnx_models.mlp(layers=160), device="timed:us=200", mode="host", threads=1)
    with exe.profile() as profile:
        exe.run({"x": np.ones((1, 16), np.float32)})
    host = profile.recording.host
    assert (host.stage == STAGES.index("queue_full")).any()
