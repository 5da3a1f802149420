"""Every device does what every device must: the shipped checks, on our devices or on those named with --device."""

from __future__ import annotations

import pytest

import ascendsched as asc
from ascendsched import conformance

from .conftest import OURS

pytestmark = pytest.mark.sanitize


@pytest.mark.parametrize("check", conformance.names())
def test_device_conforms(device: str, check: str) -> None:
    outcome = conformance.run_check(check, device)
    # A device of a package may lack what it says it lacks. Ours lack nothing: there a skip would hide a loss.
    if outcome.verdict == "unsupported" and device not in OURS:
        pytest.skip(outcome.detail)
    assert outcome.verdict == "passed", outcome.detail


def test_our_devices_are_listed() -> None:
    listed = asc.devices()
    assert [d.name for d in listed][:4] == ["cpu", "null", "sim", "timed"]
    assert all(d.description for d in listed)
