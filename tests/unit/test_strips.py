"""Strips show who worked when: as wide as the terminal, on one scale, with letters where there is no colour."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ascendsched.profile import STAGES, Recording
from ascendsched.profile.strips import LEGEND, Strip, Strips, lanes

from .profile_logs import host_mode_log, make_log, sink_mode_log


def draw(*strips: Strip, width: int = 60, **options: Any) -> list[str]:
    console = Console(file=io.StringIO(), width=width, legacy_windows=False, **options)
    console.print(Strips(strips))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def strip(log: dict[str, Any], title: str = "before") -> Strip:
    return Strip.of_run(title, Recording.from_log(log))


def test_every_stage_has_a_colour_and_a_letter_of_its_own() -> None:
    assert tuple(LEGEND) == STAGES
    assert (
        len({letter for _, letter in LEGEND.values()}) == len({colour for colour, _ in LEGEND.values()}) == len(STAGES)
    )


def test_a_slot_shows_its_longest_stage_and_its_share_of_kernels() -> None:
    host = [(0, 50, 1, 0, 0, "tiling"), (50, 60, 1, 0, 0, "launch"), (60, 100, 1, 1, 1, "infer_shape")]
    log = make_log(host, [(75, 200, 1, 0, 0, "kernel")])
    host_lane, device_lane = lanes(strip(log), 4)
    assert [STAGES[s] if s >= 0 else "" for s in host_lane] == ["tiling", "infer_shape", "", ""]
    np.testing.assert_allclose(device_lane, [0, 0.5, 1, 1])


def test_the_host_lane_of_an_inline_run_leaves_out_its_kernels() -> None:
    log = make_log([(0, 100, 1, 0, 0, "launch")], [(50, 100, 1, 0, 0, "kernel")], inline=True)
    host_lane, device_lane = lanes(strip(log), 2)
    assert host_lane.tolist() == [STAGES.index("launch"), -1]
    assert device_lane.tolist() == [0, 1]


def test_a_pipe_gets_plain_letters() -> None:
    text = draw(strip(host_mode_log(tiling=300, launch=100)))
    assert all(line.isascii() for line in text)
    assert set(text[1].removeprefix("host    |").removesuffix("|")) == {"t", "l", "w"}
    assert "t=tiling" in text[3]
    assert "#=kernel" in text[3]


def test_a_terminal_gets_colours() -> None:
    text = "\n".join(draw(strip(sink_mode_log()), force_terminal=True, color_system="standard"))
    assert "█" in text
    assert "\x1b[" in text


@pytest.mark.parametrize("width", [30, 80, 200])
def test_lanes_fill_the_width(width: int) -> None:
    text = draw(strip(host_mode_log(tiling=300, launch=100)), width=width)
    assert len(text[1]) == len(text[2]) == width


def test_before_and_after_share_one_scale() -> None:
    before, after = strip(host_mode_log(tiling=284, launch=16)), strip(sink_mode_log(), "after")
    text = draw(before, after, width=110)
    long, short = (line.count("") - len("host    ||") - 1 for line in (text[1], text[4]))
    assert long == 100
    assert short == pytest.approx(100 * after.length_ns / before.length_ns, abs=1)
    assert text[3].startswith("after: 1.6 us")


def test_a_strip_of_several_runs_ends_where_the_next_begins() -> None:
    recording = Recording.from_log(sink_mode_log(runs=6, count=4, kernel_ns=100, pause_ns=90))
    assert Strip.of_runs("two", recording, 2).length_ns == 2 * (10 + 400 + 90)
    assert Strip.of_runs("all", recording, 6).length_ns == 6 * 500 - 90
    assert Strip.of_runs("none", Recording.from_log(make_log([], [])), 2).window == (0, 0)


def test_an_empty_window_draws_without_failing() -> None:
    assert draw(Strip("nothing", Recording.from_log(make_log([], [])), (0, 0)))[0] == "nothing: 0.0 us"
    assert draw() == [""] or draw() == []
