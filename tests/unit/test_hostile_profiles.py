"""Files that are broken, foreign or malicious end in one of our errors, never in a crash, a hang or a wrong number."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendsched.errors import AscendSchedError
from ascendsched.profile.diagnosis import diagnose, to_dict
from ascendsched.profile.importers import files
from ascendsched.profile.importers.events import parse_ns
from ascendsched.profile.importers.files import redact
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.job import diagnose_job

from .profile_files import dumps, kernel, kineto, late_launches

WHOLE = dumps({"traceEvents": late_launches()}).encode()
DEEP = b'{"traceEvents":' + b"[" * 100_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\t ", "is empty"),
        (WHOLE[:-200], "is no JSON at byte .*; it may be cut short"),
        (gzip.compress(WHOLE)[:-20], "ends in the middle of its gzip data"),
        (gzip.compress(WHOLE)[:60] + b"\xff" * 200, "damaged gzip data"),
        (b"\x1f\x8b", "ends in the middle of its gzip data"),
        (b"\x89PNG\r\n\x1a\n", "is no JSON"),
        (b"null", "without trace events"),
        (b"[]", "no trace of PyTorch"),
        (b"{}", "without trace events"),
        (b'{"traceEvents": 5}', "without trace events"),
        (b'{"traceEvents": {"a": []}}', "without trace events"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "gameplay", "name": "tick", "ts": 1, "dur": 2}]}',
            "no trace of PyTorch",
        ),
        (DEEP, "nests too deeply"),
        (b"[" * 100_000, "nests too deeply"),
        (b'{"traceEvents":[{"ph":"X","args":' + b'{"a":' * 100_000, "nests too deeply"),
        (b'{"schema": "ascendsched.trace/9", "traceEvents": []}', "schema 'ascendsched.trace/9'"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_no_profile_is_an_error(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    with pytest.raises(AscendSchedError, match=message) as caught:
        read_profiles([path])
    assert str(caught.value).startswith("[diagnose] ")
    assert len(str(caught.value)) < 600


def test_a_missing_path_and_an_empty_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(AscendSchedError, match="does not exist"):
        read_profiles([tmp_path / "nothing"])
    with pytest.raises(AscendSchedError, match="holds no profile"):
        read_profiles([tmp_path])


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b" " * (64 << 20)))
    with pytest.raises(AscendSchedError, match="inflates to more than"):
        read_profiles([path])


def test_a_file_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    with pytest.raises(AscendSchedError, match="at most 100 are read"):
        read_profiles([kineto(tmp_path / "trace.json", late_launches())])


def test_gzip_members_are_read_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(WHOLE[:1000]) + gzip.compress(WHOLE[1000:]))
    assert len(read_profiles([path]).ranks[0].devices[0].work) == 20


@pytest.mark.parametrize(
    "field",
    [
        '"ts": NaN, "dur": 1',
        '"ts": Infinity, "dur": 1',
        '"ts": 1e999, "dur": 1',
        '"ts": 9e30, "dur": 1',
        '"ts": 1, "dur": -1',
        '"ts": 1, "dur": null',
        '"ts": null, "dur": 1',
        '"ts": {"a": 1}, "dur": 1',
        '"ts": ' + "9" * 5000 + ', "dur": 1',
        '"ts": 1, "dur": 1, "args": [1]',
        '"ts": 1, "dur": 1, "pid": {}',
        '"ts": "' + "\\t" * 50 + '", "dur": 1',
    ],
    ids=lambda field: field[:20],
)
def test_an_impossible_event_is_dropped_and_counted(tmp_path: Path, field: str) -> None:
    path = tmp_path / "trace.json"
    event = '{"ph": "X", "cat": "kernel", "name": "odd", ' + field + "}"
    path.write_bytes(WHOLE[:-2] + b"," + event.encode() + b"]}")
    rank = read_profiles([path]).ranks[0]
    assert len(rank.devices[0].work) == 20
    assert rank.notes == ("1 events dropped: they lack a valid time, duration or name",)


def test_odd_ids_do_not_match_each_other(tmp_path: Path) -> None:
    events = late_launches()
    for event, odd in zip(events[3::3], ([1], {"a": 1}, 1.5, None, True, "x" * 100, 10**18), strict=False):
        event["args"] = {"correlation": odd, "device": odd, "stream": odd}
    diagnosis = diagnose(read_profiles([kineto(tmp_path / "trace.json", events)]).ranks[0])
    assert json.loads(json.dumps(to_dict(diagnosis)))["verdict"]


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(WHOLE.replace(b"aten::mm", b"aten::\xff\xfe\x01m"))
    assert len(read_profiles([path]).ranks[0].devices[0].work) == 20


def test_a_stray_clock_lowers_the_confidence(tmp_path: Path) -> None:
    stray = {**kernel(0, 1, None), "ts": 0}
    diagnosis = diagnose(read_profiles([kineto(tmp_path / "trace.json", [*late_launches(), stray])]).ranks[0])
    assert diagnosis.confidence == "low"
    assert any(check.name == "clock_jumps" for check in diagnosis.checks)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1683564901548726", 1683564901548726000),
        ("1712195495521130.028", 1712195495521130028),
        ('"1736405443863674.400\\t"', 1736405443863674400),
        ('" 12.5 "', 12500),
        ("996.9599375", 996960),
        ("0.0004", 0),
        ("-3.5", -3500),
        ("1.5e3", 1500000),
        ("1e-3", 1),
        ("--1", None),
        ('"-"', None),
        ('""', None),
        ("", None),
        ("true", None),
        ("nan", None),
        ("0x10", None),
        ("1.2.3", None),
        ("١٢", None),
    ],
)
def test_times_are_parsed_from_their_digits(text: str, ns: int | None) -> None:
    assert parse_ns(text.encode()) == ns


HOMES = [
    "/home/someone/x.py",
    "/Users/someone/x.py",
    "/nfs/home/someone",
    "C:\\Users\\someone\\x.py",
    "a /home/someone/x.py(3): f",
    "<string>;\r\n/home/someone/a.py(1): f;\r\n/home/someone/b.py",
    "/root/x.py",
]


@pytest.mark.parametrize("text", HOMES)
def test_owners_of_home_folders_are_left_out(text: str) -> None:
    assert "someone" not in redact(text)
    assert "~" in redact(text)


@pytest.mark.parametrize("text", ["torch/home/x.py", "/opt/rooted/x.py", "/usr/lib/root", "a/root/b", "homes/x"])
def test_other_paths_stay(text: str) -> None:
    assert redact(text) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["ph", "cat", "name", "pid", "tid", "id", "ts", "dur", "args"])
EVENTS = st.dictionaries(KEYS, VALUES | st.sampled_from(["X", "M", "s", "f", "kernel", "cuda_runtime", "process_name"]))


@settings(max_examples=150, deadline=None)
@given(events=st.lists(EVENTS, max_size=6), at=st.integers(0, 60))
def test_any_json_ends_in_a_diagnosis_or_in_our_error(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, object]], at: int
) -> None:
    good = late_launches()
    path = kineto(tmp_path_factory.mktemp("any") / "trace.json", [*good[:at], *events, *good[at:]])
    try:
        job = diagnose_job(read_profiles([path]))
    except AscendSchedError:
        return
    split = job.to_dict()["idle_split_pct"]
    assert not split or abs(sum(split.values()) - 100) < 1e-6
