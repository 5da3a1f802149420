"""Requests of a serving trace: when they arrive, how long prompt and answer are."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from ascendsched.bounded import TABLE_BYTES, read_text, reason
from ascendsched.errors import GraphError

FORMS = "give a CSV, JSON lines, or a length a line"
MAX_LENGTH = 1 << 40  # of a prompt or an answer; more is a mistake


class Request(NamedTuple):
    """One request; `arrival_s` counts from the first one of its trace."""

    arrival_s: float
    prompt: int
    answer: int


def read_requests(path: str | os.PathLike[str]) -> list[Request]:
    """The requests of a trace, by arrival.

    Parameters
    ----------
    path
        CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens (Azure's LLM traces), JSON lines with
        timestamp in ms, input_length and output_length (Mooncake's traces), or text with one prompt length a line.

    Raises
    ------
    GraphError
        For a file that cannot be read, holds something else, or no request.
    """
    try:
        lines = read_text(path, TABLE_BYTES).splitlines()
    except UnicodeDecodeError:
        raise GraphError(f"[trace] cannot read '{os.fspath(path)}': it is no text; {FORMS}") from None
    except (OSError, ValueError) as error:
        raise GraphError(f"[trace] cannot read '{os.fspath(path)}': {reason(error)}; {FORMS}") from None
    first = next((line.strip() for line in lines if line.strip()), "")
    read = _json_lines if first.startswith("{") else _csv_rows if "," in first else _lengths
    try:
        requests = [_checked(path, number, make) for number, make in read(lines)]
    except csv.Error as error:
        raise GraphError(f"[trace] '{os.fspath(path)}' is no CSV: {error}; give one request a line") from None
    if not requests:
        raise GraphError(f"[trace] '{os.fspath(path)}' holds no request; {FORMS}")
    start = min(request.arrival_s for request in requests)
    return sorted(request._replace(arrival_s=request.arrival_s - start) for request in requests)


_Made = Iterator[tuple[int, Callable[[], Request]]]


def _json_lines(lines: list[str]) -> _Made:
    def make(line: str) -> Request:
        entry: dict[str, Any] = json.loads(line)
        return Request(float(entry["timestamp"]) / 1e3, _whole(entry["input_length"]), _whole(entry["output_length"]))

    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, lambda line=line: make(line)  # type: ignore[misc]


def _csv_rows(lines: list[str]) -> _Made:
    def make(row: dict[str, str]) -> Request:
        # Fractions finer than a microsecond are more than datetime reads.
        text = row["TIMESTAMP"].strip().removesuffix("+00:00").removesuffix("Z")[:26]
        arrival = (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()
        return Request(arrival, _whole(row["ContextTokens"]), _whole(row["GeneratedTokens"]))

    for number, row in enumerate(csv.DictReader(lines), 2):
        yield number, lambda row=row: make(row)  # type: ignore[misc]


def _lengths(lines: list[str]) -> _Made:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, lambda line=line, number=number: Request(float(number), _whole(line), 1)  # type: ignore[misc]


def _whole(value: Any) -> int:
    try:
        number = int(value)
        if isinstance(value, bool) or number != float(value):
            raise ValueError
    except (OverflowError, ValueError):
        raise ValueError(f"{value!r} is no whole number") from None
    return number


def _checked(path: str | os.PathLike[str], number: int, make: Callable[[], Request]) -> Request:
    where = f"[trace] '{os.fspath(path)}', line {number}"
    try:
        request = make()
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        what = f"column {error} is missing" if isinstance(error, KeyError) else str(error)[:120]
        raise GraphError(f"{where}: {what}; expected arrival, prompt and answer length") from None
    if not (abs(request.arrival_s) < 1e15 and 0 < request.prompt <= MAX_LENGTH and 0 <= request.answer <= MAX_LENGTH):
        got = f"time {request.arrival_s:g} s, prompt {request.prompt}, answer {request.answer}"
        raise GraphError(f"{where}: {got}; expected a finite time, and a prompt of 1 or more")
    return request
