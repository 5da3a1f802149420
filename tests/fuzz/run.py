"""Fuzzes the package with mutated models, feeds and saved executables.

    python -m tests.fuzz.run --models 20000 --feeds 20000 --saved 20000 --seed 1

Cases run in worker processes with a limit of time and of address space, so that a crash or a hang is seen, saved and
counted like any other finding. A case is its number: `--seed S --kind model --index N` repeats one in this process.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import os
import random
import resource
import selectors
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.cases import peak_bytes

if TYPE_CHECKING:
    import onnx

ROOT = Path(__file__).resolve().parents[2]
ADDRESS_SPACE = 6 << 30
RESIDENT = 3 << 30  # one case may have this much resident on top of the memory limit that applies to it
SECONDS = 20.0
STARTUP_SECONDS = 120.0
LOOP_SECONDS = 3.0  # loops may be endless; only their memory is judged then
KINDS = ("model", "feed", "saved")
BATCH = 400  # cases to a process: memory that grows from case to case then shows


def source(kind: str, seed: int, index: int) -> tuple[random.Random, list[onnx.ModelProto]]:
    """The random numbers of a case and the models that it starts from, the first one before all."""
    from tests.fuzz import cases, saved

    r, *models = saved.source(seed, index) if kind == "saved" else cases.source(kind, seed, index)
    return r, models


def runner(kind: str) -> Callable[[int, int], str]:
    """What runs a case of a kind, given seed and index."""
    from tests.fuzz import cases, saved

    if kind == "model":
        return cases.run_model_case
    return saved.SavedCases().run if kind == "saved" else cases.FeedCases().run


def work(seed: int, kind: str, first: int, last: int) -> None:
    """In the worker: runs cases and prints one line of JSON for each, before and after."""
    import warnings

    from tests.fuzz import cases

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    run_case = runner(kind)
    for index in range(first, last):
        is_loop = any(map(cases.may_be_endless, source(kind, seed, index)[1]))
        bound = RESIDENT + cases.options_of(kind, seed, index).memory_limit_bytes
        cases.reset_peak()
        print(json.dumps({"start": index, "loop": is_loop, "bound": bound}), flush=True)
        finding = ""
        try:
            outcome = run_case(seed, index)
        except Exception:
            outcome, finding = "finding", traceback.format_exc(limit=-6)
        if (peak := cases.peak_bytes()) > bound:
            outcome, finding = "finding", f"resident memory reached {peak} bytes, the limit allows {bound}"
            print(json.dumps({"end": index, "outcome": outcome, "finding": finding}), flush=True)
            return
        print(json.dumps({"end": index, "outcome": outcome, "finding": finding}), flush=True)


class Worker:
    """A worker process on one range of cases, restarted behind each case that ended it."""

    def __init__(self, seed: int, kind: str, first: int, last: int) -> None:
        self.seed, self.kind, self.next, self.last = seed, kind, first, last
        self.results: list[dict[str, Any]] = []
        self.is_loop, self.bound = False, 0
        self._running: int | None = None

    def run(self) -> None:
        while self.next < self.last:
            self._run_some()

    def _run_some(self) -> None:
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.run", "--worker", self.kind]
        command += ["--seed", str(self.seed), "--first", str(self.next), "--last", str(self.last)]
        environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONPATH=str(ROOT))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment) as p:
            running, is_late = self._follow(p)
            peak = peak_bytes(p.pid) if is_late else 0
            if is_late:
                p.kill()
            errors = p.stderr.read()[-3000:].decode(errors="replace") if p.stderr else ""
            p.wait()
        if running is not None:
            what = f"{'too slow' if is_late else f'died with status {p.returncode}'}, {peak} bytes"
            outcome = "hang" if is_late else "crash"
            if is_late and self.is_loop and peak <= self.bound:
                outcome, what, errors = "endless loop", "", ""
            self.results.append({"end": running, "outcome": outcome, "finding": what + errors})
            self.next = running + 1
        elif p.returncode != 0:
            raise SystemExit(f"the worker does not start or end: status {p.returncode}: {errors}")

    def _follow(self, p: subprocess.Popen[bytes]) -> tuple[int | None, bool]:
        """The case that was running when the output ended or time was up, and whether time was up."""
        assert p.stdout is not None
        self._running, rest = None, b""
        with selectors.DefaultSelector() as selector:
            selector.register(p.stdout, selectors.EVENT_READ)
            while True:
                seconds = LOOP_SECONDS if self.is_loop else SECONDS
                if not selector.select(seconds if self._running is not None else STARTUP_SECONDS):
                    return self._running, True
                data = os.read(p.stdout.fileno(), 1 << 16)
                if not data:
                    return self._running, False
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._note(json.loads(line))

    def _note(self, message: dict[str, Any]) -> None:
        if "start" in message:
            self._running, self.is_loop, self.bound = message["start"], message["loop"], message["bound"]
        else:
            self.results.append(message)
            self.next, self._running = message["end"] + 1, None


def save(folder: Path, seed: int, kind: str, result: dict[str, Any]) -> None:
    """Writes a finding: its report, and the model it came from."""
    from tests.fuzz import cases, saved

    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{kind}-{seed}-{result['end']}"
    r, models = source(kind, seed, result["end"])
    model = models[0]
    text = f"{result['outcome']}\n{result['finding']}\n"
    if kind == "saved":
        stem.with_suffix(".asc").write_bytes(saved.SavedCases().mutated(seed, result["end"])[3] or b"")
        text += str(model)[:5000]
    elif kind == "model":
        broken = cases.model_of(r, model)
        text += "" if isinstance(broken, bytes) else str(broken)
        stem.with_suffix(".onnx").write_bytes(broken if isinstance(broken, bytes) else broken.SerializeToString())
    else:
        text += str(model)[:5000]
    stem.with_suffix(".txt").write_text(text)


def run_all(seed: int, kind: str, count: int, folder: Path, first: int = 0, report: bool = True) -> int:
    """Runs cases; returns the number of findings."""
    outcomes: collections.Counter[str] = collections.Counter()
    findings = 0
    for start in range(first, first + count, BATCH):
        worker = Worker(seed, kind, start, min(start + BATCH, first + count))
        worker.run()
        for result in worker.results:
            outcomes[result["outcome"]] += 1
            if result["finding"]:
                findings += 1
                save(folder, seed, kind, result)
                print(f"{kind} {result['end']}: {result['outcome']}: {result['finding'].strip()[-300:]}", flush=True)
    if report:
        print(f"{count} {kind} cases, seed {seed}, {findings} findings")
        for outcome, n in outcomes.most_common():
            print(f"  {n:6} {outcome}")
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000, help="mutated models")
    parser.add_argument("--feeds", type=int, default=1000, help="mutated feeds")
    parser.add_argument("--saved", type=int, default=1000, help="mutated saved executables")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--last", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--worker", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=KINDS, default="model", help="with --index")
    parser.add_argument("--index", type=int, help="repeat this case here, without limits")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz", help="folder of what is found")
    a = parser.parse_args()
    if a.worker:
        work(a.seed, a.worker, a.first, a.last)
    elif a.index is not None:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        print(runner(a.kind)(a.seed, a.index))
    else:
        counts = zip(KINDS, (a.models, a.feeds, a.saved), strict=True)
        findings = sum(run_all(a.seed, kind, count, a.out, a.first) for kind, count in counts)
        raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()
