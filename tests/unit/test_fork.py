"""After fork() an old executable raises in the child and never hangs; a new one works; the parent goes on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()")

PRELUDE = """
import gc, os, sys
import numpy as np
import ascendsched as asc

def relu():
    g = asc.Graph("relu")
    g.output(g.op("Relu", g.input("x", "float32", ("n",))), "y")
    return g

x = np.ones(4, np.float32)

def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0

def must_refuse(call):
    try:
        call()
    except asc.DeviceError as e:
        assert "fork" in str(e)
    else:
        raise AssertionError("worked in the child")
"""

IDLE = """
exe = asc.compile(relu(), threads=2)
exe.run_async({"x": x}).wait(60)

def child():
    global exe
    must_refuse(lambda: exe(x))
    must_refuse(lambda: exe.stats())
    new = asc.compile(relu(), threads=2)
    assert new.run_async({"x": x}).wait(60)["y"].sum() == 4
    exe = None

in_child(child)
assert exe(x).sum() == 4
"""

IN_FLIGHT = """
exe = asc.compile(relu(), device="timed:us=300000")
run = exe.run_async({"x": x})

def child():
    global exe, run
    must_refuse(lambda: run.wait(60))
    exe = run = None

in_child(child)
assert run.wait(60)["y"].shape == (4,)
"""

PIPELINED = """
options = asc.Options(pipeline_workers=2)
exe = asc.compile(relu(), mode="host", options=options)
exe.run_async({"x": x}).wait(60)
bound = exe.bind({"x": x})
for _ in range(4):
    bound.run()

def child():
    global exe, bound
    must_refuse(lambda: exe.run_async({"x": x}))
    must_refuse(lambda: bound.run())
    new = asc.compile(relu(), mode="host", options=options)
    assert new.run_async({"x": x}).wait(60)["y"].sum() == 4
    exe = bound = None

in_child(child)
assert exe.run_async({"x": x}).wait(60)["y"].sum() == 4
"""


@pytest.mark.parametrize("body", [IDLE, IN_FLIGHT, PIPELINED], ids=["idle", "in flight", "pipelined"])
def test_a_forked_child_is_refused_and_harms_nobody(body):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELUDE + body]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
