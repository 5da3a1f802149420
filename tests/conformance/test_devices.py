"""What every device must do, whatever its kernels compute."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit import onnx_models

DEVICES = ["cpu", "null", "sim", "timed:us=1"]
MODES = ["host", "sink", "auto"]
pytestmark = pytest.mark.sanitize


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("device", DEVICES)
class TestDevice:
    def test_results_have_the_shapes_that_the_inputs_imply(self, device, mode):
        exe = asc.compile(onnx_models.mlp(), device=device, mode=mode, threads=1)
        for n in (1, 5, 5, 0, 2, 5):
            assert exe(np.ones((n, 16), np.float32)).shape == (n, 16)

    def test_host_values_are_computed_whatever_the_device_computes(self, device, mode):
        nodes = [
            h.make_node("Shape", ["x"], ["s"], start=0, end=1),
            h.make_node("Concat", ["s", "two"], ["t"], axis=0),
            h.make_node("Expand", ["row", "t"], ["y"]),
        ]
        constants = {"two": np.array([2]), "row": np.ones((1, 2), np.float32)}
        model = onnx_models.model(nodes, [onnx_models.info("x", shape=["n"])], [onnx_models.info("y")], constants)
        exe = asc.compile(model, device=device, mode=mode, threads=1)
        for n in (3, 1, 3, 3):
            assert exe(np.ones(n, np.float32)).shape == (n, 2)

    def test_runs_in_flight_complete_in_order(self, device, mode):
        exe = asc.compile(onnx_models.mlp(), device=device, mode=mode, threads=1)
        runs = [exe.run_async({"x": np.ones((1 + i % 3, 16), np.float32)}) for i in range(30)]
        runs[-1].wait(60)
        assert all(run.is_done for run in runs)
        for i, run in enumerate(runs):
            assert run.wait(60)["y"].shape == (1 + i % 3, 16)

    def test_executables_can_be_dropped_with_runs_in_flight(self, device, mode):
        for _ in range(10):
            exe = asc.compile(onnx_models.mlp(), device=device, mode=mode, threads=1)
            for n in (1, 2, 3):
                exe.run_async({"x": np.ones((n, 16), np.float32)})

    def test_data_dependent_shapes_stay_within_their_bounds(self, device, mode):
        exe = asc.compile(onnx_models.nonzero(), device=device, mode=mode, threads=1)
        for _ in range(3):
            got = exe.run({"x": np.ones((3, 4), np.float32)})
            assert got["where"].shape == (2, 12)
            assert got["count"].shape == ()
            assert device != "cpu" or got["count"] == 12

    def test_results_of_a_device_that_computes_nothing_are_zero(self, device, mode):
        exe = asc.compile(onnx_models.mlp(), device=device, mode=mode, threads=1)
        results = [exe(np.full((3, 16), 0.5, np.float32)) for _ in range(3)]
        assert all(np.array_equal(r, results[0]) for r in results)
        assert results[0].any() == (device == "cpu")

    def test_launches_and_submits_are_counted(self, device, mode):
        exe = asc.compile(
            onnx_models.mlp(layers=2), device=device, mode=mode, threads=1, options=asc.Options(fuse=False)
        )
        for _ in range(4):
            exe(np.ones((1, 16), np.float32))
        stats = exe.stats()
        assert (stats["launches"], stats["submits"]) == {"host": (16, 0), "sink": (0, 4), "auto": (4, 3)}[mode]


def test_devices_are_listed():
    assert [d.name for d in asc.devices()] == ["cpu", "null", "sim", "timed"]
    assert all(d.description for d in asc.devices())
