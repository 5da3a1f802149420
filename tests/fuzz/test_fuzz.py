"""The fuzzer at work for some seconds, each time with new mutations; `python -m tests.fuzz.run` is the long version."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import ascendsched as asc
from tests.fuzz import run

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize(("kind", "count"), [("model", 300), ("feed", 300), ("saved", 300)])
def test_mutations_end_in_results_or_our_errors(kind, count, tmp_path):
    seed = int(os.environ.get("ASCENDSCHED_FUZZ_SEED") or random.SystemRandom().randrange(2**31))
    print(f"seed {seed}: python -m tests.fuzz.run --seed {seed} --kind {kind} --index N repeats a case")
    assert run.run_all(seed, kind, count, tmp_path) == 0, f"seed {seed}"


@pytest.mark.parametrize("model", sorted(CORPUS.glob("*.onnx")), ids=lambda path: path.stem)
def test_models_that_were_findings_are_none_any_more(model):
    """Each of them once crashed, hung or ended in an error of another class."""
    from tests.fuzz import cases

    for threads in (1, 2):
        for feed_seed in range(20):
            options = asc.Options(memory_limit_bytes=cases.LIMIT_BYTES)
            assert cases.run_model(model.read_bytes(), options, threads, feed_seed)


def test_a_case_is_its_number():
    from tests.fuzz import cases

    first, again = (cases.model_of(*cases.source("model", 3, 5)) for _ in range(2))
    assert first == again
