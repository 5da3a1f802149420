"""`--device NAME`: the devices that the checks run on, instead of our own."""

from __future__ import annotations

import pytest

OURS = ["cpu", "null", "sim", "timed:us=1"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", action="append", metavar="NAME", help="check this device; may be given several times")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", metafunc.config.getoption("--device", default=None) or OURS, scope="module")
