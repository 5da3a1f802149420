"""How the package sits in a process: threads, signals, the end of Python, interpreter options, other processes."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ascendsched as asc

X = np.ones(4, np.float32)
PRELUDE = """
import os, signal, sys, threading
import numpy as np
import ascendsched as asc

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell starts in the background
x = np.ones(4, np.float32)

def relu():
    g = asc.Graph("relu")
    g.output(g.op("Relu", g.input("x", "float32", ("n",))), "y")
    return g
"""
ENDLESS = """
import onnx
from onnx import TensorProto as T, helper as h

def endless():
    info = h.make_tensor_value_info
    nodes = [h.make_node("Identity", ["c"], ["co"]), h.make_node("Add", ["v", "v"], ["vo"])]
    taken = [info("i", T.INT64, []), info("c", T.BOOL, []), info("v", T.FLOAT, [2])]
    body = h.make_graph(nodes, "body", taken, [info("co", T.BOOL, []), info("vo", T.FLOAT, [2])])
    loop = h.make_node("Loop", ["", "goes_on", "x"], ["y"], body=body)
    inputs = [info("goes_on", T.BOOL, []), info("x", T.FLOAT, [2])]
    graph = h.make_graph([loop], "g", inputs, [info("y", T.FLOAT, [2])])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)

feeds = {"goes_on": np.array(True), "x": np.ones(2, np.float32)}
"""


def relu() -> asc.Graph:
    g = asc.Graph("relu")
    g.output(g.op("Relu", g.input("x", "float32", ("n",))), "y")
    return g


def run_python(body: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler", *options, "-c", PRELUDE + body]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=variables)


def ends_well(body: str, *options: str, **environment: str) -> str:
    ran = run_python(body, *options, **environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.parametrize("options", [("-O",), ("-OO",), ("-W", "error"), ("-X", "dev", "-W", "error")], ids=str)
def test_every_way_to_start_python_works_without_a_warning(options: tuple[str, ...], tmp_path: Path) -> None:
    body = f"exe = asc.compile(relu()); exe(x); exe.save({str(tmp_path / 'm.asc')!r})\n"
    body += f"print(asc.load({str(tmp_path / 'm.asc')!r})(x).sum())"
    assert ends_well(body, *options) == "4.0\n"


BUSY = """
def work():
    started.set()
    while True:
        RUN

started = threading.Event()
threading.Thread(target=work, daemon=True).start()
started.wait()
RUN
"""
WAYS = {
    "runs": ("exe = asc.compile(relu(), threads=1)", "exe(x)"),
    "runs of a device": ("exe = asc.compile(relu(), device='timed:us=20000')", "exe.run_async({'x': x}).wait()"),
    "compilations": ("", "asc.compile(relu(), threads=1)(x)"),
    "host calls": ("import tempfile; exe = asc.compile(by_python(), threads=1)", "exe(x)"),
}
BY_PYTHON = """
@asc.op("my::twice", infer_shape=lambda x: x)
def twice(x):
    return x * 2

def by_python():
    g = asc.Graph("g")
    g.output(g.op("my::twice", g.input("x", "float32", ("n",))), "y")
    return g
"""


@pytest.mark.parametrize("way", sorted(WAYS))
def test_python_ends_while_a_daemon_thread_is_busy(way: str) -> None:
    """Python ends such threads when they ask for its lock, which must not happen inside the core."""
    prepare, run = WAYS[way]
    for _ in range(3):
        ends_well((BY_PYTHON if way == "host calls" else "") + prepare + BUSY.replace("RUN", run))


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_python_ends_while_a_daemon_thread_is_in_an_endless_loop(mode: str) -> None:
    body = f"exe = asc.compile(endless(), mode={mode!r}, threads=1)\n"
    body += "threading.Thread(target=exe.run, args=(feeds,), daemon=True).start()"
    assert ends_well(ENDLESS + body) == ""


def test_python_ends_with_runs_in_flight() -> None:
    body = "exe = asc.compile(relu(), device='timed:us=100000')\nruns = [exe.run_async({'x': x}) for _ in range(3)]"
    assert ends_well(body) == ""


def test_handlers_of_the_end_still_run_models() -> None:
    body = "import atexit\nexe = asc.compile(relu(), threads=1)\natexit.register(lambda: print(exe(x).sum()))"
    assert ends_well(body) == "4.0\n"
    before = "import atexit\natexit.register(lambda: print(exe(x).sum()))\n"
    ran = subprocess.run(
        [sys.executable, "-c", before + PRELUDE + "exe = asc.compile(relu(), threads=1)"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "4.0\n", "")


@pytest.mark.parametrize("mode", ["host", "sink"])
def test_ctrl_c_ends_an_endless_loop_and_the_executable_goes_on(mode: str) -> None:
    body = f"""
exe = asc.compile(endless(), mode={mode!r}, threads=1)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    exe.run(feeds)
except KeyboardInterrupt:
    print("interrupted", exe.run({{**feeds, "goes_on": np.array(False)}})["y"].tolist())
"""
    assert ends_well(ENDLESS + body) == "interrupted [1.0, 1.0]\n"


def test_ctrl_c_ends_a_wait() -> None:
    body = """
exe = asc.compile(relu(), device="timed:us=3000000")
run = exe.run_async({"x": x})
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    run.wait()
except KeyboardInterrupt:
    print("interrupted", run.is_done)
run.cancel()
"""
    assert ends_well(body) == "interrupted False\n"


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_what_lives_in_one_process_says_that_it_is_not_copied(how: Callable[[object], object]) -> None:
    exe = asc.compile(relu(), threads=1)
    for thing in (exe, exe.bind({"x": X}), exe.run_async({"x": X}), relu()):
        with pytest.raises(asc.UnsupportedError, match=rf"\[pickle\] {type(thing).__name__}: it cannot be copied"):
            how(thing)
    with pytest.raises(asc.UnsupportedError, match="save it here and load it there"):
        how(exe)


@pytest.mark.parametrize("kind", [asc.GraphError, asc.OutOfMemoryError, asc.WaitTimeoutError], ids=str)
def test_errors_reach_other_processes(kind: type[Exception]) -> None:
    again = pickle.loads(pickle.dumps(kind("[run] what: values; next step")))
    assert (type(again), str(again)) == (kind, "[run] what: values; next step")


_shared: list[asc.Executable] = []  # what workers inherit


def _run_shared(count: int) -> str:
    try:
        return str(_shared[-1](np.ones(count, np.float32)).sum())
    except asc.DeviceError as error:
        return f"{type(error).__name__} {error}"


def _run_own(count: int) -> str:
    return str(asc.compile(relu(), threads=1)(np.ones(count, np.float32)).sum())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_are_refused_what_was_made_before_the_fork_and_compile_their_own() -> None:
    exe = asc.compile(relu(), threads=2)
    _shared.append(exe)
    exe.run_async({"x": X}).wait(60)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        texts = pool.map_async(_run_shared, [1, 2, 3]).get(60)
        assert all("DeviceError" in text and "fork" in text for text in texts)
        assert pool.map_async(_run_own, [1, 2, 3]).get(60) == ["1.0", "2.0", "3.0"]
    assert exe(X).sum() == 4


def test_spawned_workers_compile_their_own() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map_async(_run_own, [1, 2]).get(100) == ["1.0", "2.0"]
        with pytest.raises(asc.UnsupportedError, match="cannot be copied or pickled"):
            pool.apply_async(_run_own, [asc.compile(relu(), threads=1)]).get(60)


@pytest.mark.parametrize(
    "options", [None, asc.Options(buckets=asc.Buckets({"x": 0}, max_count=4))], ids=["plain", "padded"]
)
def test_what_was_closed_says_so_and_what_is_in_flight_completes(options: asc.Options | None, tmp_path: Path) -> None:
    with asc.compile(relu(), device="timed:us=50000", threads=1, options=options) as exe:
        binding, run = exe.bind({"x": X}), exe.run_async({"x": X})
    uses: list[Callable[[], object]] = [
        lambda: exe(X),
        lambda: exe.run({"x": X}),
        lambda: exe.run_async({"x": X}),
        lambda: exe.bind({"x": X}),
        lambda: exe.warmup([{"x": (3,)}]),
        lambda: exe.save(tmp_path / "m.asc"),
        exe.stats,
        exe.explain,
        exe.tasks,
        exe.plan.text,
        lambda: exe.resize_caches(1, 1),
        lambda: exe.resize_workers(1),
        lambda: exe.profile().__enter__(),
    ]
    for use in uses:
        with pytest.raises(asc.DeviceError, match=r"^\[executable\] it was closed; compile or load the model again$"):
            use()
    exe.close()
    assert (exe.inputs[0].name, exe.mode, repr(exe)) == ("x", "auto", "<Executable 1 inputs, 1 outputs, mode auto>")
    assert run.wait(60)["y"].shape == (4,)
    if options is None:
        assert binding.run()["y"].shape == (4,)


def test_an_executable_that_is_closed_gives_back_its_threads() -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    with asc.compile(relu(), device="timed:us=1", threads=1) as exe:
        exe.run_async({"x": X}).wait(60)
        during = threads()
    assert threads() < during


@pytest.mark.parametrize("is_imported", [False, True])
def test_another_interpreter_of_the_process_is_refused(is_imported: bool) -> None:
    pytest.importorskip("_xxsubinterpreters")
    program = "import _xxsubinterpreters as interpreters\n" + "import ascendsched.native\n" * is_imported
    program += "other = interpreters.create(isolated=False)\n"
    program += "code = 'import warnings; warnings.simplefilter(\"ignore\"); import ascendsched.native'\n"
    program += "try:\n    interpreters.run_string(other, code)\n"
    program += "except interpreters.RunFailedError as error:\n    print(error)\n"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "ImportError" in ran.stdout
    assert is_imported or "[import] ascendsched works in the main interpreter only" in ran.stdout


def test_signals_that_are_ignored_stay_ignored() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)}
    asc.compile(relu(), threads=1)(X)
    assert {number: signal.getsignal(number) for number in before} == before
