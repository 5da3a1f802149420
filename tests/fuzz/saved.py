"""Saved executables as cases: a file, mutated; it is refused, built anew from its model, or as good as any model."""

from __future__ import annotations

import contextlib
import logging
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx

import ascendsched as asc
from tests.fuzz import cases, mutate_saved
from tests.fuzz import feeds as feeding
from tests.fuzz.seeds import seed_models
from tests.fuzz.seeds_saved import network_models

OPTIONS = (
    asc.Options(memory_limit_bytes=cases.LIMIT_BYTES),
    asc.Options(memory_limit_bytes=cases.LIMIT_BYTES, fuse=False),
)


def source(seed: int, index: int) -> tuple[random.Random, onnx.ModelProto, onnx.ModelProto]:
    """The random numbers of a case, the model of its file, one in three a network, and that of a second file."""
    r = random.Random(f"{seed}:saved:{index}")
    return r, r.choice(network_models() if r.random() < 0.35 else seed_models()), r.choice(seed_models())


class SavedCases:
    """Files of the seeds, written once each."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz")
        self.folder = Path(self._folder.name)
        self._files: dict[tuple[int, int], bytes | None] = {}
        logging.getLogger("ascendsched").addHandler(logging.NullHandler())  # standard error may be a pipe that fills

    def file_of(self, model: onnx.ModelProto, variant: int) -> bytes | None:
        """A model saved behind two runs, alone (0) or with its own file beside it (1); None where we do not run it."""
        key = (id(model), variant)
        if key not in self._files:
            self._files[key] = self._save(model, variant)
        return self._files[key]

    def model_file(self, model: onnx.ModelProto) -> Path:
        """Where the model of a file lies."""
        path = self.folder / f"{id(model)}.onnx"
        if not path.exists():
            onnx.save(model, path)
        return path

    def _save(self, model: onnx.ModelProto, variant: int) -> bytes | None:
        r = random.Random(7)
        path = self.folder / "seed.asc"
        try:
            exe = asc.compile(self.model_file(model) if variant else model, threads=1, options=OPTIONS[0])
            for _ in range(2):
                with contextlib.suppress(asc.AscendSchedError):
                    exe.run(feeding.fitting(r, exe.inputs))
            exe.save(path)
        except asc.UnsupportedError:
            return None
        return path.read_bytes()

    def mutated(self, seed: int, index: int) -> tuple[random.Random, onnx.ModelProto, int, bytes | None, bool]:
        """(random numbers, model, variant, file, whether its checksums are right); no file: a seed that is not run."""
        r, model, other = source(seed, index)
        variant = r.randrange(2)
        good, second = self.file_of(model, variant), self.file_of(other, 0)
        if good is None:
            return r, model, variant, None, False
        way, second = r.random(), good if second is None else second
        if way < 0.15:
            return r, model, variant, mutate_saved.damaged(r, good, second), False
        if way < 0.2:
            return r, model, variant, mutate_saved.lengths(r, good), False
        return r, model, variant, mutate_saved.forged(r, good, second), True

    def run(self, seed: int, index: int) -> str:
        """Loads and runs one mutated file in both modes."""
        r, model, variant, bad, is_sealed = self.mutated(seed, index)
        if bad is None:
            return "not supported"
        is_sealed = is_sealed or bad in self._files.values()  # what is left of two files may be one of them
        path = self.folder / "case.asc"
        path.write_bytes(bad)
        feed_seed = r.randrange(2**32)
        if is_sealed:
            return run_file(path, OPTIONS[r.random() < 0.2], 1 + index % 2, feed_seed)
        return self._run_damaged(path, model, variant, feed_seed)

    def _run_damaged(self, path: Path, model: onnx.ModelProto, variant: int, feed_seed: int) -> str:
        """What the checksums tell must not be used: only what a new compilation gives."""
        given = self.model_file(model) if variant else model
        with rebuilt() as notes:
            exe = asc.load(path, model=given, threads=1, options=OPTIONS[0])
        if not notes:
            raise cases.FindingError("a damaged file was used")
        try:
            asc.load(path, threads=1, options=OPTIONS[0])
        except asc.GraphError as e:
            cases.check_message(e)
        else:
            if not variant:
                raise cases.FindingError("a damaged file without its model was used")
        results = [
            cases.run_thrice(each, random.Random(feed_seed))
            for each in (exe, asc.compile(given, mode=exe.mode, threads=1, options=OPTIONS[0]))
        ]
        if results[0] != results[1]:
            raise cases.FindingError(f"built anew it gives {results[0][:300]}, compiled {results[1][:300]}")
        return "built anew"


@contextlib.contextmanager
def rebuilt() -> Iterator[list[str]]:
    """The warnings of files that are not used, while it lasts."""
    notes: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "compiling the model instead" in record.getMessage():
                notes.append(record.getMessage())

    logger, handler = logging.getLogger("ascendsched"), Handler()
    logger.addHandler(handler)
    try:
        yield notes
    finally:
        logger.removeHandler(handler)


def run_file(path: Path, options: asc.Options, threads: int, feed_seed: int) -> str:
    """Loads a file in both modes, warming up as it says, and runs it on feeds that fit and odd ones."""
    outcomes = []
    for mode in cases.MODES:
        try:
            exe = asc.load(path, mode=mode, threads=threads, options=options)
        except asc.AscendSchedError as e:
            cases.check_message(e)
            outcomes.append(f"load {type(e).__name__}")
            continue
        outcomes.append(cases.run_thrice(exe, random.Random(feed_seed)))
    if cases.without_classes(outcomes[0]) != cases.without_classes(outcomes[1]):
        raise cases.FindingError(f"host and sink mode differ: {outcomes[0][:300]} and {outcomes[1][:300]}")
    return outcomes[0].split(" [")[0]
