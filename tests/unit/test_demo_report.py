"""The demo refuses wrong results, and its closing sentence follows from the figures."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ascendsched.demo.report import closing_sentence, print_report, to_dict
from ascendsched.demo.rows import Row, host_share, time_in_turn
from ascendsched.demo.run import Result
from ascendsched.demo.serving import FixedEngine, GrowingEngine, Server, Workload
from ascendsched.errors import AscendSchedError
from ascendsched.profile import Profile

from .profile_logs import host_mode_log, sink_mode_log


def row(model: str, label: str, us: float, log: dict[str, Any], busy_share: float) -> Row:
    made = Row(model, label, "run", lambda count: None, times_us=[us] * 3, max_error=1e-6)
    made.shares = made.overlap = Profile(log)
    made.host_share_pct = 100 * (1 - busy_share)
    return made


def result(*rows: Row) -> Result:
    return Result(rows, 1, 12.3, Path("traces"))


def pair(model: str, host_us: float, host_busy: float, sink_us: float, sink_busy: float) -> tuple[Row, Row, Row]:
    tiled = host_mode_log(tiling=400, launch=30)
    return (
        row(model, "host, caches off", 2 * host_us, tiled, 0.1),
        row(model, "host", host_us, tiled, host_busy),
        row(model, "sink", sink_us, sink_mode_log(), sink_busy),
    )


def test_the_closing_sentence_says_what_sinking_gained() -> None:
    text = closing_sentence(result(*pair("decoder", 300, 0.25, 100, 0.75)))
    assert text == (
        "Sinking made the decoder 3.0 times as fast (300 to 100 us per run): the host's share went from 75 to 25 %."
    )


def test_the_closing_sentence_says_why_sinking_gained_little() -> None:
    text = closing_sentence(result(*pair("decoder", 300, 0.5, 290, 0.9), *pair("ResNet-18", 1000, 0.97, 990, 0.99)))
    assert "gained little on the decoder (300 to 290 us per run): the host's share went from 50 to 10 %" in text
    assert "kernels went from 150 to 261 us" in text
    assert text.endswith("and it gained little on ResNet-18 (1,000 to 990 us per run): "
                         "kernels took 97 % of the time in host mode already.")  # fmt: skip


def test_the_report_holds_table_verdicts_strips_and_conclusion() -> None:
    console = Console(file=io.StringIO(), width=120)
    demo = result(*pair("decoder", 300, 0.25, 100, 0.75))
    print_report(demo, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for words in ("us/run", "300.0", "Host bound: ", "before: decoder, host", "after: decoder, sink", "host    |"):
        assert words in text
    assert " ".join(text.split()).endswith(closing_sentence(demo))
    assert [entry["label"] for entry in to_dict(demo)["rows"]] == ["host, caches off", "host", "sink"]


@pytest.mark.parametrize("value", [0.1, np.nan, np.inf])
def test_a_wrong_result_stops_the_demo(value: float) -> None:
    with pytest.raises(AscendSchedError, match="decoder, host: error"):
        Row("decoder", "host", "token", lambda count: None).check(np.full(3, value, np.float32), np.zeros(3))


def test_rows_are_timed_in_turn() -> None:
    order: list[str] = []
    rows = [Row("m", name, "run", lambda count, name=name: order.append(name), units_per_call=2) for name in "ab"]
    time_in_turn(rows, calls=4, blocks=2)
    assert order == ["a", "a", "b", "b"] * 2
    assert [len(r.times_us) for r in rows] == [4, 4]


@pytest.mark.parametrize(
    ("counters", "hits"),
    [
        ({}, None),
        ({"tiling_hits": 2, "nodes_skipped": 1, "tiling_misses": 1}, 75),
        ({"schedule_hits": 1, "schedule_misses": 1, "tiling_misses": 9}, 50),
        ({"nodes_resolved": 9}, 0),
        ({"nodes_skipped": 9}, 100),
    ],
    ids=["nothing asked", "host", "sink", "caches off", "all remembered"],
)
def test_hits_are_those_of_the_cache_that_was_asked(counters: dict[str, int], hits: float | None) -> None:
    made = Row("m", "l", "run", lambda count: None, counters=counters)
    assert made.hit_pct == hits


def test_the_host_share_is_what_kernels_leave_of_a_run() -> None:
    assert host_share(Profile(sink_mode_log(count=16, kernel_ns=100)), wall_ns=2_000) == pytest.approx(20)
    assert host_share(Profile({}), wall_ns=2_000) == 100


@pytest.mark.parametrize("capacity", [None, 32], ids=["growing", "fixed"])
def test_serving_in_turn_gives_the_logits_of_whole_sequences(capacity: int | None) -> None:
    ort = pytest.importorskip("onnxruntime", reason="runs the decoder in this test")
    from ascendsched.demo.models import decoder, decoder_reference

    sizes = {"vocab": 50, "d": 16, "layers": 2, "heads": 2, "kv_heads": 1, "ff": 24}
    session = ort.InferenceSession(
        decoder(**sizes, capacity=capacity).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    executable = OrtExecutable(session)
    workload = Workload.create((3, 6), rounds=8, vocab=50)
    logits: list[Any] = []
    server = Server(GrowingEngine(executable) if capacity is None else FixedEngine(executable), workload)
    server.serve(2, logits)
    server.serve_overlapped(3, logits)
    server.serve(3, logits)
    for request, (tokens, prompt) in enumerate(zip(workload.tokens, workload.prompts, strict=True)):
        expected = decoder_reference(tokens[None], **sizes)[0, prompt:]
        np.testing.assert_allclose(np.stack(logits[request::2]), expected, rtol=0, atol=1e-4)


class OrtExecutable:
    """Looks like an executable; runs in onnxruntime."""

    def __init__(self, session: Any) -> None:
        types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
        self.session = session
        self.inputs = [SimpleNamespace(name=v.name, dtype=types[v.type], shape=v.shape) for v in session.get_inputs()]
        self.outputs = session.get_outputs()

    def run(self, feeds: dict[str, Any]) -> dict[str, Any]:
        return dict(zip([v.name for v in self.outputs], self.session.run(None, feeds), strict=True))

    def run_async(self, feeds: dict[str, Any]) -> Any:
        results = self.run(feeds)
        return SimpleNamespace(is_done=True, wait=lambda: results)
