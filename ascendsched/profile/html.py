"""Writes a report as one page that needs no network: the data as JSON, and the scripts that draw it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ascendsched.whole_files import write_whole

SCRIPTS = ("format.js", "lanes.js", "timeline.js", "charts.js", "page.js")
# A page that may load nothing cannot leak what it shows, whatever its data holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
# In JSON these may stand as escapes; left as they are they could end the element that holds the data.
ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def embed(report: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(report, separators=(",", ":"), allow_nan=False).translate(ESCAPES)


def page(report: Mapping[str, Any]) -> str:
    """The whole page."""
    scripts = "\n".join(_part(name) for name in SCRIPTS)
    return (
        _part("page.html")
        .replace("{{policy}}", POLICY)
        .replace("{{style}}", _part("page.css"))
        .replace("{{script}}", scripts)
        .replace("{{data}}", embed(report))
    )


def write_html(report: Mapping[str, Any], path: str | os.PathLike[str]) -> str:
    """Writes the page and returns its path. The file appears whole or not at all.

    Raises
    ------
    WriteError
        Where the file cannot be written.
    """
    return write_whole(path, page(report), "profile")


def _part(name: str) -> str:
    return (resources.files("ascendsched.profile") / "page" / name).read_text(encoding="utf-8")
