"""Every case of the suite that the onnx package brings, in both modes, but for a list of known failures."""

from __future__ import annotations

import warnings

import pytest

from tests.suite.backend import cases, known_failures

KNOWN = known_failures()


@pytest.mark.parametrize("name", list(cases()))
def test_case_passes_unless_it_is_known_to_fail(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name not in KNOWN:
            cases()[name]()
            return
        try:
            cases()[name]()
        except Exception:
            return
    pytest.fail(f"{name} passes now: take it out of tests/suite/known.txt (reason there: {KNOWN[name]})")


def test_list_of_known_failures_names_cases_of_the_suite():
    assert set(KNOWN) <= set(cases())
    assert all(KNOWN.values())
