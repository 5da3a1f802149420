"""Settings that come from the environment: what they may hold, and who is named where they hold something else."""

from __future__ import annotations

import pytest

import ascendsched as asc

from . import onnx_models as models


@pytest.mark.parametrize("text", ["abc", "0", "", "-1", "1.5", "1025", "9" * 30])
def test_a_variable_for_threads_that_is_no_number_of_threads_is_named(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("ASCENDSCHED_THREADS", text)
    with pytest.raises(asc.PlanError, match=f"ASCENDSCHED_THREADS='{text}'; set it to 1 to 1024"):
        asc.compile(models.mlp(width=8, layers=1))
    assert asc.compile(models.mlp(width=8, layers=1), threads=1)  # the argument wins


def test_an_instruction_set_that_there_is_not_is_refused_and_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDSCHED_ISA", "avx2")
    with pytest.raises(asc.PlanError, match="ASCENDSCHED_ISA='avx2'; set it to one of base, v3, v4"):
        asc.compile(models.mlp(width=8, layers=1))
    for known in ("base", ""):
        monkeypatch.setenv("ASCENDSCHED_ISA", known)
        assert asc.compile(models.mlp(width=8, layers=1))


def test_threads_are_a_number_and_no_text() -> None:
    with pytest.raises(asc.PlanError, match="threads: '2'"):
        asc.compile(models.mlp(width=8, layers=1), threads="2")  # type: ignore[arg-type]
