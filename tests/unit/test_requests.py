"""Traces of requests: every format that is read, and what else such a file may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendsched.errors import GraphError
from ascendsched.tuning.batching import DecodeStep, decode_steps
from ascendsched.tuning.requests import Request, read_requests

HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def read(tmp_path: Path, text: str | bytes) -> list[Request]:
    path = tmp_path / "trace"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_requests(path)


def test_csv_is_read_with_times_from_the_first_request(tmp_path: Path) -> None:
    text = HEAD + "2023-11-16 18:17:04.5000000,7,2\n2023-11-16 18:17:03.0000000,5,1\n"
    assert read(tmp_path, text) == [Request(0.0, 5, 1), Request(1.5, 7, 2)]


def test_time_zones_do_not_matter(tmp_path: Path) -> None:
    text = HEAD + "2024-05-10 00:00:00.009930+00:00,2162,5\n"
    assert read(tmp_path, text) == [Request(0.0, 2162, 5)]


def test_json_lines_are_in_milliseconds(tmp_path: Path) -> None:
    lines = '{"timestamp": 500, "input_length": 8, "output_length": 2}\n\n{"timestamp": 0, "input_length": 9, '
    assert read(tmp_path, lines + '"output_length": 1}\n') == [Request(0.0, 9, 1), Request(0.5, 8, 2)]


def test_a_length_a_line_will_do(tmp_path: Path) -> None:
    assert [request.prompt for request in read(tmp_path, "\ufeff5\n\n7\n")] == [5, 7]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no request"),
        (HEAD, "no request"),
        (HEAD + "yesterday,1,1\n", "line 2"),
        (HEAD + "2023-11-16 18:17:04,-1,1\n", "prompt -1"),
        (HEAD + "2023-11-16 18:17:04,1\n", "line 2"),
        ("a,b\n1,2\n", "TIMESTAMP"),
        ('{"timestamp": 1}\n', "input_length"),
        ('{"timestamp": 1e999, "input_length": 1, "output_length": 1}\n', "finite"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}\n', "finite"),
        ('{"timestamp": 1, "input_length": 1.5, "output_length": 1}\n', "whole"),
        ('{"timestamp": 1, "input_length": true, "output_length": 1}\n', "whole"),
        ('{"timestamp": 1, "input_length": 1e400, "output_length": 1}\n', "line 1"),
        ('{"timestamp": [], "input_length": 1, "output_length": 1}\n', "line 1"),
        ('{"timestamp"\n', "line 1"),
        ("{}" + "[" * 100_000, "line 1"),
        ("12\nx\n", "line 2: 'x' is no whole number"),
        ("0\n", "prompt 0"),
        ("9" * 5000, "line 1"),
        (b"\xff\xfe\x00", "it is no text; give a CSV"),
    ],
)
def test_other_files_give_an_error_with_the_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        read(tmp_path, text)


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="cannot read"):
        read_requests(tmp_path)


def test_a_batch_grows_and_shrinks_with_its_requests() -> None:
    requests = [Request(0.0, 10, 4), Request(0.02, 20, 3)]
    steps = list(decode_steps(requests, step_s=0.01))
    assert steps == [DecodeStep(1, 11), DecodeStep(1, 12), DecodeStep(2, 21), DecodeStep(1, 22)]


def test_the_batch_is_bounded_and_the_rest_waits() -> None:
    steps = list(decode_steps([Request(0.0, 1, 3)] * 5, max_batch=2))
    assert [step.batch for step in steps] == [2, 2, 2, 2, 1, 1]


def test_silence_is_skipped_and_single_tokens_need_no_step() -> None:
    assert list(decode_steps([Request(0.0, 1, 2), Request(1e6, 5, 2)])) == [DecodeStep(1, 2), DecodeStep(1, 6)]
    assert list(decode_steps([Request(0.0, 1, 1), Request(0.0, 1, 0)])) == []
