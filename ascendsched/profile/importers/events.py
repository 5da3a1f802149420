"""Trace events from Chrome trace JSON: the few fields that profiles need, with times exact to the nanosecond.

Format: "Trace Event Format" of the Chromium project; times are microseconds. A float cannot hold a profiler's
1,700,000,000,000,000.123 us, so that times are read from their digits.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec

from ascendsched.profile.importers.files import NoProfileError, fail

# Times beyond this are not a clock's: 73 years in ns. The sum of two fits in 64 bits.
MAX_NS = 1 << 61
MAX_DIGITS = 19


class Args(msgspec.Struct, gc=False, dict=False):
    """The arguments that any of the importers reads; values are whatever the file holds."""

    name: Any = None
    labels: Any = None
    correlation: Any = None
    external: Any = msgspec.field(default=None, name="External id")
    device: Any = None
    stream: Any = None
    connection: Any = msgspec.field(default=None, name="connection_id")
    task_type: Any = msgspec.field(default=None, name="Task Type")
    call_stack: Any = msgspec.field(default=None, name="Call stack")
    model: Any = msgspec.field(default=None, name="Model Id")
    item: Any = msgspec.field(default=None, name="item_id")
    run: Any = None
    sequence: Any = None
    node: Any = None
    op: Any = None


class Event(msgspec.Struct, gc=False):
    """One trace event. `ts` and `dur` are the JSON text of the value."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    id: int | str | None = None
    ts: msgspec.Raw = msgspec.Raw()
    dur: msgspec.Raw = msgspec.Raw()
    args: Args | None = None


class Document(msgspec.Struct):
    """A trace file: its events and the fields beside them that importers read."""

    events: list[Event] = msgspec.field(name="traceEvents")
    schema: Any = None
    other: Any = msgspec.field(default=None, name="otherData")
    base_ns: Any = msgspec.field(default=None, name="baseTimeNanoseconds")
    distributed: Any = msgspec.field(default=None, name="distributedInfo")
    with_stack: Any = None
    hip_version: Any = msgspec.field(default=None, name="hip_runtime_version")
    roctracer_version: Any = None
    warnings: Any = msgspec.field(default=None, name="WARNING")
    errors: Any = msgspec.field(default=None, name="ERROR")
    malformed: int = 0  # events that the lenient reader left out


NO_ARGS = Args()
_DOCUMENT = msgspec.json.Decoder(Document)
_EVENT = msgspec.json.Decoder(Event)
_EVENTS = msgspec.json.Decoder(list[Event])


def read_document(path: Path, data: bytes) -> Document:
    """Decodes a trace file's bytes: an object with "traceEvents", or a bare list of events.

    What is not strictly JSON (bytes that are no UTF-8, control characters, NaN) or holds malformed events among good
    ones is read leniently; malformed events are counted.

    Raises
    ------
    AscendSchedError
        Where it is no JSON, is cut short, nests too deeply, or holds no trace events.
    """
    try:
        if data[:256].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            return Document(_EVENTS.decode(data))
        return _DOCUMENT.decode(data)
    except RecursionError:
        raise fail(path, "nests too deeply for a trace", "record it again") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _read_leniently(path, data)


def parse_ns(raw: Any) -> int | None:
    """Nanoseconds from the JSON text of microseconds, a number or a string with stray white space; None if neither."""
    text = bytes(raw)
    whole, _, fraction = text.partition(b".")
    if whole.isdigit() and (fraction.isdigit() or not fraction) and len(whole) < MAX_DIGITS:
        return (int(whole + (fraction + b"0000")[:4]) + 5) // 10
    return _parse_unusual(text)


def _parse_unusual(text: bytes) -> int | None:
    # Ascend writes times as strings that end in a tab, which JSON spells \t.
    bare = text.decode("ascii", "replace").strip('"').replace("\\t", "").strip()
    if bare != text.decode("ascii", "replace"):
        return parse_ns(bare.encode())
    if bare.startswith("-") and not bare.startswith("--"):
        value = parse_ns(bare[1:].encode())
        return None if value is None else -value
    if "e" not in bare.lower():
        return None
    try:
        number = float(bare)
    except ValueError:
        return None
    return round(number * 1e3) if math.isfinite(number) and abs(number) < MAX_NS / 1e3 else None


def interval_of(event: Event) -> tuple[int, int] | None:
    """Start and end in ns, or None where the event has no valid time or a negative duration."""
    start = parse_ns(event.ts)
    length = parse_ns(event.dur) if event.dur else 0
    if start is None or length is None or length < 0 or abs(start) + length > MAX_NS:
        return None
    return start, start + length


def _read_leniently(path: Path, data: bytes) -> Document:
    try:
        loaded = json.loads(
            data.decode("utf-8-sig", "replace"), strict=False, parse_float=str, parse_int=_int, parse_constant=str
        )
    except RecursionError:
        raise fail(path, "nests too deeply for a trace", "record it again") from None
    except ValueError as error:
        where = f"at byte {getattr(error, 'pos', 0)} of {len(data)}"
        raise fail(path, f"is no JSON {where}", "it may be cut short: copy or record it again") from None
    rows = loaded.get("traceEvents") if isinstance(loaded, dict) else loaded
    if not isinstance(rows, list):
        raise NoProfileError(str(fail(path, "is JSON without trace events", "pass a profiler's trace file or folder")))
    events, malformed = [], 0
    for row in rows:
        try:
            events.append(_EVENT.decode(json.dumps(row)))
        except msgspec.DecodeError:
            malformed += 1
    fields = loaded if isinstance(loaded, dict) else {}
    document = _DOCUMENT.decode(json.dumps({**fields, "traceEvents": []}))
    document.events, document.malformed = events, malformed
    return document


def _int(text: str) -> int | str:
    return int(text) if len(text) <= MAX_DIGITS else text
