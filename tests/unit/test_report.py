"""The HTML report: its data is the JSON's, its names are text, and a browser shows what the data says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendsched.cli import main
from ascendsched.errors import WriteError
from ascendsched.profile import Profile, report
from ascendsched.profile.html import page, write_html
from ascendsched.profile.importers.read import read_profiles
from ascendsched.profile.job import diagnose_job

from . import profile_files as files
from .profile_logs import host_mode_log

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium in PATH")
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">\u2028<!--"
FACTORS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def steps_and_stacks() -> list[files.Event]:
    """Late launches in two steps, one wait with a stack, and hostile names wherever a profile has names."""
    events = files.late_launches()
    events += [files.span(i * 1000, 1000, f"ProfilerStep#{i}", "user_annotation") for i in range(2)]
    events.append(files.span(92, 60, "cudaDeviceSynchronize", "cuda_runtime"))
    events.append(files.span(91, 70, f"train.py(3): {HOSTILE}", "python_function"))
    for event in events:
        if event.get("name") in {"gemm", "aten::mm"}:
            event["name"] += HOSTILE
    return events


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return files.kineto(tmp_path / "trace.json", steps_and_stacks())


def data_of(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, flags=re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_page_holds_the_numbers_of_the_json(trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    told = run("diagnose", trace, "--what-if", "--compare", trace, "--html", target, "--json")
    held = data_of(target.read_text(encoding="utf-8"))
    for key in ("schema", "html"):
        told.pop(key)
    assert held["ranks"][held["main"]]["what_if"] == told.pop("what_if")
    assert held["comparison"] == told.pop("comparison")
    assert held["job"] == told
    assert {key: told[key] for key in held["ranks"][0]["diagnosis"]} == held["ranks"][0]["diagnosis"]


def test_names_cannot_leave_the_data(trace: Path, tmp_path: Path) -> None:
    html = page(report.make_report(diagnose_job(read_profiles([trace]))))
    assert html.count("</script>") == 2, "the data's and the page's own"
    assert "<img" not in html
    assert "\u2028" not in html
    assert any(HOSTILE in name for name in data_of(html)["ranks"][0]["timeline"]["names"])


def test_the_page_refers_to_nothing_outside(trace: Path) -> None:
    html = page(report.make_report(diagnose_job(read_profiles([trace]))))
    outside = re.sub(r'<script type="application/json".*?</script>', "", html, flags=re.DOTALL)
    allowed = {"http://www.w3.org/2000/svg"}  # the name of a language, never fetched
    assert set(re.findall(r"https?://[^\s\"']+", outside)) <= allowed
    assert "default-src 'none'" in html
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(", outside)


def test_gaps_come_with_neighbours_and_the_stack_of_the_wait(trace: Path) -> None:
    gaps = data_of(page(report.make_report(diagnose_job(read_profiles([trace])))))["ranks"][0]["top_gaps"]
    behind = [gap for gap in gaps if gap["call"] == "cudaDeviceSynchronize"]
    assert len(behind) == 1
    assert behind[0]["stack"][0].startswith("train.py(3)")
    assert all(gap["before"].startswith("gemm") and gap["after"].startswith("gemm") for gap in gaps)
    assert all(sum(gap["parts_us"].values()) == pytest.approx(gap["us"]) for gap in gaps)


def test_of_too_many_events_the_shortest_are_left_out(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_EVENTS", 30)
    timeline = report.make_report(diagnose_job(read_profiles([trace])))["ranks"][0]["timeline"]
    drawn = len(timeline["device"]["start_ns"]) + len(timeline["host"]["start_ns"])
    assert drawn == 30
    assert len(timeline["device"]["start_ns"]) == 20
    assert timeline["left_out"] > 0


def test_a_report_of_a_rank_without_a_device_can_be_made(tmp_path: Path) -> None:
    path = files.kineto(tmp_path / "trace.json", [files.span(0, 10, "aten::mm"), files.call(1, 2, 1)])
    made = report.make_report(diagnose_job(read_profiles([path])))
    assert made["ranks"][0]["timeline"] is None
    assert "insufficient_evidence" in page(made)


def test_own_runs_show_cache_hits_run_by_run(tmp_path: Path) -> None:
    profile = Profile(host_mode_log(count=16, tiling=100, launch=20))
    held = data_of(Path(profile.save_html(tmp_path / "own.html")).read_text(encoding="utf-8"))
    assert held["ranks"][0]["reuse"] == {"run": [1], "pct": [0.0]}
    assert held["ranks"][0]["diagnosis"]["sentence"] == profile.verdict.sentence


def test_a_missing_folder_is_named(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="create it first"):
        write_html(report.make_report(diagnose_job(read_profiles([trace]))), tmp_path / "none" / "report.html")


TIMES = st.integers(0, 10**13) | st.sampled_from([0, 4 * 10**15, 10**9])


@settings(max_examples=80, deadline=None)
@given(rows=st.lists(st.tuples(TIMES, TIMES, st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=30))
def test_any_times_end_in_a_report(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int, int]]
) -> None:
    made = []
    for start, length, correlation, kind in rows:
        if kind == 0:
            made.append(files.kernel(start, length, correlation or None, stream=correlation % 3))
        elif kind == 1:
            made.append(files.call(start, length, correlation, tid=correlation % 2))
        else:
            name = ("cudaDeviceSynchronize", "enumerate(DataLoader)", "ProfilerStep#1")[kind - 2]
            made.append(files.span(start, length, name, "cuda_runtime" if kind == 2 else "user_annotation"))
    path = files.kineto(tmp_path_factory.mktemp("any") / "trace.json", made)
    held = data_of(page(report.make_report(diagnose_job(read_profiles([path])))))
    for rank in held["ranks"]:
        if rank["what_if"] is not None:
            assert abs(rank["what_if"]["replay_error_pct"]) < 1e-6


class Shown(HTMLParser):
    """What a browser made of the page: numbers by path, elements, texts by id."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self._open: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in {"meta", "br", "img", "input"}:
            self._open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._open:
            return
        path, shape = self._open[-1][1].get("data-path"), self._open[-1][1].get("data-format")
        if path and shape:
            self.numbers.append((path, shape, data))
        for _, attributes in self._open:
            if attributes.get("id"):
                name = str(attributes["id"])
                self.texts[name] = self.texts.get(name, "") + data


def show(path: Path, folder: Path) -> Shown:
    """Loads the page in a headless browser and returns its document."""
    assert BROWSER is not None
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    done = subprocess.run(
        [BROWSER, *flags, "--window-size=1280,800", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    shown = Shown()
    shown.feed(done.stdout)
    return shown


def at(held: Any, path: str) -> Any:
    for key in path.split("/"):
        held = held[int(key)] if isinstance(held, list) else held[key]
    return held


def check_numbers(shown: Shown, held: Any) -> None:
    for path, shape, text in shown.numbers:
        value = at(held, path)
        found = re.fullmatch(r"([+-]?[\d,]*\.?\d+) ?(ns|us|ms|s|%)?", text)
        assert found is not None, (path, text)
        digits = found.group(1).replace(",", "")
        factor = FACTORS.get(found.group(2) or "", 1.0) / (1e3 if shape == "us" else 1.0)
        step = 10.0 ** -len(digits.partition(".")[2]) * factor
        assert abs(float(digits) * factor - value) <= step * 0.501, (path, text, value)


@needs_browser
def test_every_number_that_a_browser_shows_is_the_datas(trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    run("diagnose", trace, "--compare", trace, "--html", target, "--json")
    held = data_of(target.read_text(encoding="utf-8"))
    shown = show(target, tmp_path)
    check_numbers(shown, held)
    paths = {path for path, _, _ in shown.numbers}
    expected = {"idle_pct", "window_us", "launch_calls", "idle_split_pct/host_late.framework", "top_kernels/0/us"}
    assert {f"ranks/0/diagnosis/{key}" for key in expected} <= paths
    assert {"ranks/0/what_if/measured_us", "ranks/0/what_if/predictions/0/us", "ranks/0/top_gaps/0/us"} <= paths
    assert "comparison/rows/0/before" in paths
    assert shown.texts["verdict"].startswith("Host bound")
    assert "confidence" in shown.texts["verdict"]


@needs_browser
def test_hostile_names_stay_text_in_a_browser(trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    run("diagnose", trace, "--html", target, "--json")
    shown = show(target, tmp_path)
    assert "img" not in shown.tags
    assert "owned" not in shown.texts.get("title", "")
    assert shown.tags.count("script") == 2
    assert "onerror" in shown.texts["panels"], "the names are shown as they are"


@needs_browser
def test_a_browser_shows_a_hundred_thousand_events(tmp_path: Path) -> None:
    path = files.kineto(tmp_path / "trace.json", files.late_launches(33_000))
    target = tmp_path / "report.html"
    run("diagnose", path, "--html", target, "--json")
    held = data_of(target.read_text(encoding="utf-8"))
    assert sum(len(held["ranks"][0]["timeline"][side]["start_ns"]) for side in ("device", "host")) > 90_000
    assert target.stat().st_size < 16 << 20
    shown = show(target, tmp_path)
    assert ("ranks/0/diagnosis/device_activities", "count", "33,000") in shown.numbers
    assert "this page needs no network" in shown.texts["footer"]


@needs_browser
def test_ranks_can_be_chosen_in_a_browser(tmp_path: Path) -> None:
    paths = [files.kineto(tmp_path / f"rank{n}.json", files.late_launches(period=100 + 50 * n)) for n in range(2)]
    target = tmp_path / "report.html"
    run("diagnose", *paths, "--html", target, "--json")
    held = data_of(target.read_text(encoding="utf-8"))
    shown = show(target, tmp_path)
    check_numbers(shown, held)
    assert shown.texts["rank"] == "".join(rank["label"] for rank in held["ranks"])
    assert {"ranks/0/diagnosis/idle_pct", "ranks/1/diagnosis/idle_pct"} <= {path for path, _, _ in shown.numbers}
