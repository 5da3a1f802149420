"""Bucket sizes: optimal against brute force, learned online, and reported for traces."""

from __future__ import annotations

import itertools
import json
import os
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from ascendsched.cli import main
from ascendsched.tuning.bucket_report import compare_buckets
from ascendsched.tuning.learner import MAX_BINS, SizeLearner
from ascendsched.tuning.partition import best_sizes, padding_of, size_for


def brute_force(histogram: dict[int, int], max_count: int) -> float:
    """The least padding over all choices of sizes."""
    lengths = sorted(histogram)
    count = min(max_count, len(lengths)) - 1
    return min(padding_of(histogram, [*low, lengths[-1]]) for low in itertools.combinations(lengths[:-1], count))


@pytest.mark.parametrize("seed", range(60))
def test_sizes_pad_as_little_as_any_choice_of_sizes(seed: int) -> None:
    chance = random.Random(seed)
    histogram = {chance.randrange(1, 60): chance.choice([1, 1, 2, 50]) for _ in range(chance.randrange(1, 12))}
    for max_count in range(1, 6):
        sizes = best_sizes(histogram, max_count)
        assert len(sizes) <= max_count
        assert sizes[-1] == max(histogram)
        assert padding_of(histogram, sizes) == pytest.approx(brute_force(histogram, max_count))


def test_lengths_without_a_count_and_empty_histograms_need_no_size() -> None:
    assert best_sizes({}, 3) == []
    assert best_sizes({5: 0, 7: 2}, 1) == [7]


def test_huge_lengths_do_not_overflow() -> None:
    histogram = {2**40 - i: 2**20 for i in range(20)}
    sizes = best_sizes(histogram, 4)
    assert padding_of(histogram, sizes) == pytest.approx(brute_force(histogram, 4))


def test_the_smallest_size_that_holds_a_length_is_taken() -> None:
    assert [size_for([4, 8], length) for length in (1, 4, 5, 8, 9)] == [4, 4, 8, 8, None]


def learned(lengths: list[int], max_count: int) -> SizeLearner:
    learner = SizeLearner(max_count)
    for length in lengths:
        learner.observe(length)
        assert size_for(learner.sizes, length) is not None
        assert len(learner.sizes) <= max_count
    return learner


def test_learned_sizes_always_hold_the_largest_length_seen() -> None:
    chance = random.Random(1)
    lengths = [chance.randrange(1, 5000) for _ in range(3000)]
    assert learned(lengths, 5).sizes[-1] == max(lengths)


def test_sizes_stay_where_new_ones_would_save_little() -> None:
    chance = random.Random(2)
    learner = learned([chance.choice([10, 20, 40]) for _ in range(2000)], 3)
    assert learner.sizes == [10, 20, 40]
    assert learner.changes <= 4


def test_sizes_follow_when_the_lengths_change() -> None:
    chance = random.Random(3)
    first = [chance.choice([100, 101, 102, 103]) for _ in range(600)]
    then = [chance.choice([10, 30, 60]) for _ in range(30_000)]
    assert {10, 30, 60} <= set(learned(first + then, 4).sizes)


def test_the_histogram_is_bounded() -> None:
    chance = random.Random(4)
    learner = learned([chance.randrange(1, 1 << 30) for _ in range(20_000)], 8)
    assert len(learner.histogram) <= 2 * MAX_BINS


def test_one_length_needs_no_padding() -> None:
    rows = compare_buckets([64] * 10, 12)
    assert [row.padding for row in rows] == [0, 0, 0, 0]


def write_trace(path: Path, lengths: list[int]) -> Path:
    rows = [f"2023-11-16 18:17:{i % 60:02}.1234567,{length},3" for i, length in enumerate(lengths)]
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("under", [[], ["tools"]])
def test_command_compares_ways_to_choose_sizes(tmp_path: Path, under: list[str]) -> None:
    trace = write_trace(tmp_path / "trace.csv", [5, 6, 100, 100, 7] * 20)
    arguments = [*under, "buckets", str(trace), "--max-count", "2"]
    text = CliRunner().invoke(main, arguments)
    assert text.exit_code == 0, text.output
    assert "optimal: 7, 100" in text.output
    result = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output)
    assert result["schema"] == "ascendsched.buckets/1"
    assert result["ways"][0]["sizes"] == [7, 100]
    assert result["requests"] == 100


SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "llm_traces"
TRACES = Path(os.environ.get("LLM_TRACES", SHARED))


@pytest.mark.skipif(not TRACES.is_dir(), reason="no traces: LLM_TRACES names their folder")
def test_twelve_buckets_suffice_for_a_code_assistants_prompts() -> None:
    from ascendsched.tuning.requests import read_requests

    lengths = [request.prompt for request in read_requests(TRACES / "azure_code_2023.csv")]
    offline, online, powers, _ = compare_buckets(lengths, 12)
    assert offline.padding <= 0.115
    assert online.padding <= 1.2 * 0.115
    assert powers.padding > 0.3
