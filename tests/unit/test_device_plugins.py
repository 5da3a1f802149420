"""Devices of packages run models like built-in ones; those that misbehave get a clear error and harm nothing."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendsched as asc
from ascendsched import plugins
from tests.unit.plugin_build import HAS_COMPILER, build_library, capsule

pytestmark = [pytest.mark.sanitize, pytest.mark.skipif(not HAS_COMPILER, reason="there is no C++ compiler")]

_NAME = ctypes.create_string_buffer(b"ascendsched.device")  # capsules keep the pointer
MODES = ["host", "sink", "auto"]
KEEPS = {"complete_never", "synchronize_fail"}  # what may still run keeps what it was given


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = build_library(Path(__file__).with_name("device_plugin.cc"), tmp_path_factory.mktemp("device"))
    assert plugins.register(capsule(built, "whole", _NAME)) == "wild"
    return built


@pytest.fixture
def nothing_is_left(library: ctypes.CDLL) -> Iterator[None]:
    """Whatever happens, what the plug-in gave is given back, and other devices go on."""
    before = library.left_over()
    yield
    gc.collect()
    assert library.left_over() == before
    check_others()


def check_others() -> None:
    x = np.full((2, 3), -1, np.float32)
    for device in ("cpu", "wild"):
        assert chain(device=device)(x).tolist() == [[-1] * 3] * 2


def chain(ops: str = "Neg Relu Neg", device: str = "wild", mode: str = "auto", **options: Any) -> Any:
    """-relu(-x) of (n, 3), or what `ops` say."""
    g = asc.Graph()
    value = g.input("x", "float32", ("n", 3))
    for i, op in enumerate(ops.split()):
        value = g.op(op, value, name=f"{op.lower()}{i}")
    g.output(value)
    return asc.compile(g, device=device, mode=mode, threads=1, **options)


def wild(fault: str, mode: str = "auto", **options: Any) -> Any:
    return chain(device=f"wild:fault={fault}", mode=mode, **options)


def run_often(exe: Any, n: int) -> None:
    """What a plug-in reports once too often shows in a later run."""
    for _ in range(1000):
        assert exe(np.ones((n, 3), np.float32)).tolist() == [[0] * 3] * n


@pytest.mark.usefixtures("nothing_is_left")
class TestWellBehaved:
    @pytest.mark.parametrize("mode", MODES)
    def test_models_run(self, mode: str) -> None:
        exe = chain(mode=mode)
        for n in (1, 4, 4, 0, 2, 4):
            x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
            np.testing.assert_array_equal(exe(x), chain(device="cpu")(x))

    def test_runs_in_flight_have_their_own_results(self) -> None:
        exe = chain("Neg Neg")
        arrays = [np.full((1 + i % 3, 3), i, np.float32) for i in range(100)]
        for x, run in [(x, exe.run_async({"x": x})) for x in arrays]:
            (got,) = run.wait(60).values()
            assert np.array_equal(got, x)

    def test_shapes_that_depend_on_data_come_from_the_kernel(self) -> None:
        g = asc.Graph()
        g.output(g.op("NonZero", g.input("x", "float32", ("n",))))
        for mode in MODES:
            exe = asc.compile(g, device="wild", mode=mode)
            for values in ([0, 1, 0, 2], [1, 1], [0], [0, 1, 0, 2]):
                assert exe(np.array(values, np.float32)).tolist() == [np.flatnonzero(values).tolist()]

    def test_values_that_shapes_depend_on_reach_the_tiling(self) -> None:
        g = asc.Graph()
        g.output(g.op("Expand", g.input("x", "float32", (1,)), g.input("s", "int64", (1,)), name="grow"))
        exe = asc.compile(g, device="wild")
        assert exe(np.ones(1, np.float32), np.array([3])).tolist() == [1, 1, 1]
        with pytest.raises(asc.UnsupportedError, match="Expand 'grow': != 3"):
            exe(np.ones(1, np.float32), np.array([4]))

    def test_attributes_reach_the_tiling_and_other_types_have_no_kernel(self) -> None:
        g = asc.Graph()
        g.output(g.op("Transpose", g.input("x", "float32", (2, 3)), perm=[1, 0]))
        assert asc.compile(g, device="wild")(np.arange(6, dtype=np.float32).reshape(2, 3)).tolist()[1] == [1, 4]
        g = asc.Graph()
        g.output(g.op("Transpose", g.input("x", "int32", (2, 3)), name="turn"))
        with pytest.raises(asc.UnsupportedError, match=r"device 'wild' has no kernel for: Transpose 'turn' on int32"):
            asc.compile(g, device="wild")

    def test_refused_tilings_name_the_node_and_the_reason(self) -> None:
        for rank, text in ((3, "rank 3 is too much"), (4, "threw an exception")):
            g = asc.Graph()
            g.output(g.op("Neg", g.input("x", "float32", [None] * rank), name="mine"))
            exe = asc.compile(g, device="wild")
            for _ in range(2):
                with pytest.raises(asc.UnsupportedError, match=f"Neg 'mine': .*{text}"):
                    exe(np.ones((1,) * rank, np.float32))
        g = asc.Graph()
        g.output(g.op("Transpose", g.input("x", "float32", (2, 3)), perm=[0, 1], name="mine"))
        with pytest.raises(asc.UnsupportedError, match="tiling failed with 7"):
            asc.compile(g, device="wild")(np.ones((2, 3), np.float32))

    def test_device_is_listed_and_limits_its_memory(self) -> None:
        assert {d.name: d.description for d in asc.devices()}["wild"] == "misbehaves on demand"
        exe = chain(device="wild:fault=small")
        exe(np.ones((4, 3), np.float32))
        with pytest.raises(asc.OutOfMemoryError, match="4096"):
            exe(np.ones((4000, 3), np.float32))
        assert exe(np.ones((4, 3), np.float32)).shape == (4, 3)

    def test_results_of_a_device_that_computes_nothing_count_for_nothing(self) -> None:
        assert chain(device="wild:fault=computes_nothing")(np.ones((1, 3), np.float32)).shape == (1, 3)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
    @pytest.mark.skipif("ASCENDSCHED_SANITIZE" in os.environ, reason="sanitizers do not follow forks of threads")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_forked_child_is_told_and_can_compile_again(self) -> None:
        exe = chain()
        x = np.ones((1, 3), np.float32)
        exe(x)
        child = os.fork()
        if child == 0:
            try:
                exe(x)
            except asc.DeviceError as error:
                os._exit(0 if "fork" in str(error) and chain()(x).shape == (1, 3) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.usefixtures("nothing_is_left")
class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "text"),
        [
            ("open_null", "open: it gave no device"),
            ("open_fail", "open: the chip is on fire"),
            ("open_long", "open: x{255};"),
            ("open_throw", "open: it threw an exception"),
            ("describe_fail", "describe: who am I"),
            ("threads", "describe: -4 threads"),
            ("deadline", "describe: a deadline of 0 ms"),
            ("stream_null", "create_stream: it gave no stream"),
            ("stream_fail", "create_stream: no stream today"),
        ],
    )
    def test_device_that_does_not_open_says_why(self, fault: str, text: str) -> None:
        for _ in range(2):
            with pytest.raises(asc.DeviceError, match=rf"\[device 'wild'\] {text}"):
                wild(fault)

    def test_device_that_is_not_there_is_unavailable(self) -> None:
        with pytest.raises(asc.DeviceUnavailableError, match="no chip in this machine"):
            wild("unavailable")

    @pytest.mark.parametrize(
        ("fault", "mode", "text"),
        [
            ("allocate_null", "host", "allocate: it gave no memory"),
            ("allocate_fail", "sink", "allocate: no bank is free"),
            ("allocate_throw", "host", "allocate: it threw an exception"),
            ("allocate_odd", "sink", "allocate: its memory is not aligned to 64 bytes"),
            ("allocate_odd", "host", "allocate: its memory is not aligned to 64 bytes"),
            ("allocate_same", "host", "allocate: its memory overlaps"),
            ("chain_null", "sink", "load_chain: it gave no chain"),
            ("chain_fail", "sink", "load_chain: no room for chains"),
            ("launch_fail", "host", "launch: the queue is closed"),
            ("launch_throw", "host", "launch: it threw an exception"),
            ("launch_second", "host", "launch: it failed with 12345"),
            ("submit_fail", "sink", "submit: no chains here"),
            ("record_fail", "host", "record: no events left"),
            ("record_fail", "sink", "record: no events left"),
            ("record_throw", "sink", "record: it threw an exception"),
            ("task_null", "host", "run_task without a task"),
            ("table_null", "sink", "run_task without a task"),
            ("complete_early", "host", "complete: it completed a run that is not recorded"),
        ],
    )
    def test_function_that_fails_is_named(self, fault: str, mode: str, text: str) -> None:
        exe = wild(fault, mode)
        for n in (1, 2):
            with pytest.raises(asc.DeviceError, match=text):
                run_often(exe, n)

    def test_out_of_memory_is_told_apart(self) -> None:
        with pytest.raises(asc.OutOfMemoryError, match="allocate"):
            wild("allocate_oom")(np.ones((2, 3), np.float32))

    def test_failure_without_a_reason_says_so(self) -> None:
        with pytest.raises(asc.DeviceError, match=r"Neg 'neg0': the plug-in gave no reason"):
            wild("fail_silent")(np.ones((2, 3), np.float32))

    @pytest.mark.parametrize("fault", ["complete_twice", "complete_other", "fail_late"])
    @pytest.mark.parametrize("mode", MODES)
    def test_run_that_is_reported_once_too_often_shows_in_a_later_one(self, fault: str, mode: str) -> None:
        exe = wild(fault, mode)
        with pytest.raises(asc.DeviceError, match=r"\[device 'wild'\] (complete|fail): it (completed|reports)"):
            run_often(exe, 2)

    @pytest.mark.parametrize("fault", ["destroy_throw", "release_throw"])
    def test_exceptions_at_the_end_are_kept_in(self, fault: str) -> None:
        assert wild(fault)(np.ones((1, 3), np.float32)).shape == (1, 3)

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("value", "error", "text"),
        [
            (100, asc.DeviceError, "100 is not liked"),
            (101, asc.DeviceError, "threw an exception"),
            (102, asc.GraphError, "kernel failed with 3"),
            (103, asc.OutOfMemoryError, "kernel failed with 2"),
        ],
    )
    def test_failing_kernel_names_the_node_and_the_device_stays_usable(
        self, mode: str, value: float, error: type[Exception], text: str
    ) -> None:
        exe = wild("none", mode)
        bad = np.full((1, 3), value, np.float32)
        for _ in range(3):
            with pytest.raises(error, match=rf"Neg 'neg0': .*{text}"):
                exe(bad)
            assert exe(np.full((1, 3), -2, np.float32)).tolist() == [[-2] * 3]

    def test_extents_beyond_the_bound_are_refused(self) -> None:
        g = asc.Graph()
        g.output(g.op("NonZero", g.input("x", "float32", ("n",)), name="find"))
        exe = asc.compile(g, device="wild")
        with pytest.raises(asc.DeviceError, match="NonZero 'find' reported extent 1000 beyond 2"):
            exe(np.array([100, 1], np.float32))
        assert exe(np.array([0, 1], np.float32)).tolist() == [[1]]


@pytest.mark.parametrize("fault", sorted(KEEPS))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("library")
def test_stream_that_cannot_be_seen_to_end_is_given_up(fault: str, mode: str) -> None:
    exe = wild(fault, mode)
    x = np.ones((2, 3), np.float32)
    references = sys.getrefcount(x)
    text = r"record: (nothing has ended within its deadline of 200 ms|no events left)"
    with pytest.raises(asc.DeviceError, match=text):
        exe(x)
    assert sys.getrefcount(x) > references  # the device may still read it
    for _ in range(2):
        with pytest.raises(asc.DeviceError, match=text):
            exe.run_async({"x": x}).wait(60)
    del exe
    check_others()


@pytest.mark.usefixtures("library")
def test_run_that_nobody_waits_for_ends_too() -> None:
    exe = wild("complete_never")
    runs = [exe.run_async({"x": np.ones((2, 3), np.float32)}) for _ in range(3)]
    del exe, runs
    gc.collect()
    check_others()


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("twin", "'wild'] another device of this name"),
        ("old", "version 0, expected 1"),
        ("small", "16 bytes"),
        ("nameless", "its name is not made of"),
        ("shouting", "its name is not made of"),
        ("taken", "one of our own"),
        ("closeless", "function close is missing"),
        ("recordless", "'recordless'] the plug-in: function record is missing"),
        ("kernelless", "kernels is null"),
        ("narrow", "kernels of 8 bytes"),
        ("greedy", "4294967295 kernels"),
        ("kernel_operator", "kernel 0 has no operator"),
        ("kernel_launch", "Relu: function launch is missing"),
        ("kernel_type", "no element type"),
        ("kernel_unknown", "there is no operator 'Frobnicate'"),
    ],
)
def test_device_that_is_not_whole_is_refused(library: ctypes.CDLL, symbol: str, text: str) -> None:
    for _ in range(2):
        with pytest.raises(asc.DeviceError) as caught:
            plugins.register(capsule(library, symbol, _NAME))
        assert text in str(caught.value)


def test_the_same_device_may_be_registered_again_and_a_longer_one_at_all(library: ctypes.CDLL) -> None:
    assert plugins.register(capsule(library, "whole", _NAME)) == "wild"
    assert plugins.register(capsule(library, "newer", _NAME)) == "newer"
    check_others()


@pytest.mark.parametrize("thing", [None, 3, "wild", object()])
def test_other_things_than_capsules_are_refused(thing: Any) -> None:
    with pytest.raises(asc.DeviceError, match="no capsule"):
        plugins.register(thing)


class Entry:
    """A package's entry point."""

    def __init__(self, name: str, value: str, made: Any) -> None:
        self.name, self.value, self._made = name, value, made

    def load(self) -> Any:
        if isinstance(self._made, Exception):
            raise self._made
        return lambda: self._made


@pytest.fixture
def announce(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_entries(*entries: Entry) -> None:
        monkeypatch.setattr(
            plugins, "entry_points", lambda group, name=None: [e for e in entries if name in (None, e.name)]
        )

    return set_entries


def test_package_that_fails_to_load_is_named_and_the_others_are_listed(announce: Any) -> None:
    announce(Entry("broken", "broken.package:devices", ImportError("no such library")))
    for _ in range(2):
        with pytest.raises(asc.DeviceUnavailableError, match=r"broken\.package.*no such library"):
            chain(device="broken:with=options")
    listed = {d.name: d.description for d in asc.devices()}
    assert "no such library" in listed["broken"]
    assert {"cpu", "null", "timed"} <= listed.keys()


def test_unknown_device_lists_those_of_packages_that_were_not_used_yet(
    announce: Any, library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(plugins, "_load", lambda name, entry: loaded.append(name))
    announce(Entry("seldom", "a:devices", []))
    with pytest.raises(asc.DeviceUnavailableError, match="known devices"):
        chain(device="selmod")
    assert loaded == ["seldom"]


def test_the_cpu_is_listed_with_the_threads_that_it_has_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDSCHED_THREADS", "3")
    assert {d.name: d.description for d in asc.devices()}["cpu"] == "CPU, 3 threads"


def test_two_packages_with_one_name_are_refused(announce: Any) -> None:
    announce(Entry("double", "a:devices", []), Entry("double", "b:devices", []))
    with pytest.raises(asc.DeviceError, match="two packages announce 'double': 'a:devices' and 'b:devices'"):
        chain(device="double")


def test_package_that_brings_another_device_is_refused(announce: Any, library: ctypes.CDLL) -> None:
    announce(Entry("other", "a:devices", [capsule(library, "whole", _NAME)]))
    with pytest.raises(asc.DeviceError, match=r"gives \['wild'\], not 'other'"):
        chain(device="other")
    announce(Entry("half", "a:devices", [capsule(library, "old", _NAME)]))
    with pytest.raises(asc.DeviceError, match=r"a:devices.*version 0"):
        chain(device="half")


def test_unknown_device_lists_those_that_are_known(library: ctypes.CDLL) -> None:
    with pytest.raises(asc.DeviceUnavailableError, match=r"'nothing' is not available; known devices: cpu.*wild"):
        chain(device="nothing")


def test_the_header_is_shipped_and_is_c(library: ctypes.CDLL) -> None:
    header = Path(asc.get_include()) / "ascendsched" / "device.h"
    assert "ASC_DEVICE_VERSION" in header.read_text(encoding="utf-8")
