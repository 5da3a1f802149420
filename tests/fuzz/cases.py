"""One case of the fuzzer: made from its number alone, then run; the outcome is a word, a finding is an exception."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import ascendsched as asc
from tests.fuzz import feeds as feeding
from tests.fuzz import mutate
from tests.fuzz.seeds import seed_models

LIMIT_BYTES = 64 << 20
MODES = ("host", "sink")
DRAWS = re.compile(r"task Random\w+Like (?!.*seed=)")  # other numbers at every run: nothing to compare


class FindingError(Exception):
    """What should not be: results that differ between modes, memory without bound, an executable left unusable."""


def source(kind: str, seed: int, index: int) -> tuple[random.Random, onnx.ModelProto]:
    """The random numbers of a case and the model that it starts from."""
    r = random.Random(f"{seed}:{kind}:{index}")
    return r, r.choice(seed_models())


def may_be_endless(model: onnx.ModelProto) -> bool:
    """Whether the model has a loop: nothing bounds its time, only its memory."""
    return any(n.op_type in ("Loop", "Scan") for g in mutate.graphs(model.graph) for n in g.node)


def model_of(r: random.Random, model: onnx.ModelProto) -> onnx.ModelProto | bytes:
    """The mutated model: one case in ten as damaged bytes."""
    if r.random() < 0.1:
        return mutate.damaged(r, model.SerializeToString())
    return mutate.mutated(r, model)


def options_of(kind: str, seed: int, index: int) -> asc.Options:
    """The options of a case: one model in ten has the default limit of memory, which is that of the machine."""
    is_default = kind == "model" and random.Random(f"{seed}:options:{index}").random() < 0.1
    return asc.Options() if is_default else asc.Options(memory_limit_bytes=LIMIT_BYTES)


def run_model_case(seed: int, index: int) -> str:
    """Compiles and runs one mutated model in both modes."""
    r, model = source("model", seed, index)
    broken = model_of(r, model)
    return run_model(broken, options_of("model", seed, index), 1 + index % 2, r.randrange(2**32))


def run_model(model: onnx.ModelProto | bytes, options: asc.Options, threads: int, feed_seed: int) -> str:
    """Compiles and runs a model in both modes, on feeds that fit and odd ones."""
    outcomes = []
    for mode in MODES:
        try:
            exe = asc.compile(model, mode=mode, threads=threads, options=options)
        except asc.AscendSchedError as e:
            outcomes.append(f"compile {type(e).__name__}")
            check_message(e)
            continue
        outcomes.append(run_thrice(exe, random.Random(feed_seed)))
    if without_classes(outcomes[0]) != without_classes(outcomes[1]):
        raise FindingError(f"host and sink mode differ: {str(outcomes[0])[:300]} and {str(outcomes[1])[:300]}")
    return str(outcomes[0]).split(" [")[0]


def without_classes(outcome: str) -> str:
    """Of several faults the modes may meet another one first: sink mode resolves all nodes before it launches any."""
    return re.sub(r"\w+Error", "Error", outcome.split(" [", 1)[-1])


def run_thrice(exe: asc.Executable, r: random.Random) -> str:
    """The outcomes of three runs, results included, so that modes can be compared."""
    words, digests = [], []
    for is_wild in (False, True, False):
        try:
            results = exe.run(feeding.fitting(r, exe.inputs, is_wild))
        except asc.AscendSchedError as e:
            check_message(e)
            words.append(type(e).__name__)
        else:
            words.append("ok")
            try:
                digests.append(digest(results))
            except MemoryError:  # results that fit once, but not twice
                digests.append([])
    if DRAWS.search(exe.plan.text()):
        return "run with random numbers"
    return f"run {','.join(sorted(set(words)))} [{','.join(words)}] {digests}"


def digest(results: dict[str, np.ndarray]) -> list[Any]:
    """Equal for equal bits: names, types, shapes and values, NaN being equal to NaN."""
    found: list[Any] = []
    for name, array in results.items():
        if array is None or isinstance(array, list):
            found.append((name, array if array is None else [digest({"": each}) for each in array]))
            continue
        values = array
        if array.dtype.kind == "f" and array.size:
            values = np.where(np.isnan(array), array.dtype.type(0.123), array)
        found.append((name, str(array.dtype), array.shape, _hash(values)))
    return found


def _hash(array: np.ndarray) -> int:
    if array.dtype.kind == "O":
        return hash(repr(array.ravel().tolist()))
    return hash(np.ascontiguousarray(array).tobytes())


def check_message(error: asc.AscendSchedError) -> None:
    text = str(error)
    if not text.startswith("[") or len(text) < 12:
        raise FindingError(f"a message that says too little: {text!r}")


class FeedCases:
    """Executables of the seeds, reused from case to case: each must stay usable."""

    def __init__(self) -> None:
        self._cache: dict[tuple[int, str], asc.Executable] = {}

    def run(self, seed: int, index: int) -> str:
        """Runs one executable on mutated feeds, then on good ones."""
        r, model = source("feed", seed, index)
        mode = MODES[index % 2]
        key = (id(model), mode)
        exe = self._cache.get(key)
        if exe is None:
            options = asc.Options(memory_limit_bytes=LIMIT_BYTES)
            try:
                exe = self._cache[key] = asc.compile(model, mode=mode, threads=1, options=options)
            except asc.UnsupportedError:  # a seed for later: model cases use it already
                return "not supported"
        good = feeding.fitting(r, exe.inputs)
        expected = self._outcome(exe, good)
        bad, is_same = feeding.mutated(r, good)
        got = self._attempt(exe, bad, r)
        if is_same and got != expected:
            raise FindingError(f"the same values in another layout: {got} instead of {expected}")
        self._outcome(exe, feeding.fitting(r, exe.inputs, True))
        again = self._outcome(exe, good)
        if again != expected:
            raise FindingError(f"after a bad feed, good ones give {again} instead of {expected}")
        return "same values" if is_same else got if isinstance(got, str) else "ok"

    def _outcome(self, exe: asc.Executable, feeds: dict[Any, Any]) -> Any:
        try:
            return digest(exe.run(feeds))
        except asc.AscendSchedError as e:
            check_message(e)
            return type(e).__name__

    def _attempt(self, exe: asc.Executable, feeds: dict[Any, Any], r: random.Random) -> Any:
        way = r.randrange(4)
        try:
            if way == 0:
                return digest(exe.run_async(feeds).wait(15))
            if way == 1:
                return digest(exe.bind(feeds).run())
            if way == 2 and list(feeds) == [i.name for i in exe.inputs]:
                results = exe(*feeds.values())
                results = results if isinstance(results, tuple) else (results,)
                return digest(dict(zip([o.name for o in exe.outputs], results, strict=True)))
            return digest(exe.run(feeds))
        except asc.AscendSchedError as e:
            check_message(e)
            return type(e).__name__


def reset_peak() -> None:
    """Lets `peak_bytes` start again from what is resident now."""
    with contextlib.suppress(OSError):  # a kernel without it: the peak of the whole process is judged then
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(process: int | str = "self") -> int:
    """The most memory that a process had resident since `reset_peak`; 0 where it has ended."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
        return int(text.split("VmHWM:")[1].split()[0]) * 1024
    return 0
