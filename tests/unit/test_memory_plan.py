"""Memory plans: tiny problems against brute force, made ones at their known optimum, files and limits of `memplan`."""

from __future__ import annotations

import csv
import itertools
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ascendsched.cli import main
from ascendsched.errors import PlanError
from ascendsched.memory_plan import Buffer, plan_buffers, read_buffers

core = pytest.importorskip("ascendsched._core", reason="the extension is not built")

EXAMPLE = "id,lower,upper,size,note\na,0,3,4,first\nb,3,9,4,\nc,0,9,4,\nd,9,21,4,\ne,0,21,4,last\n"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["memplan", *map(str, arguments)])


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def brute_force_height(buffers: list[Buffer]) -> int:
    """The least height over all orders in which buffers can be stacked."""
    best = sum(size for _, _, size in buffers)
    for order in itertools.permutations(buffers):
        ends: list[tuple[Buffer, int]] = []
        for buffer in order:
            below = (end for other, end in ends if other[0] < buffer[1] and buffer[0] < other[1])
            ends.append((buffer, max(below, default=0) + buffer[2]))
        best = min(best, max(end for _, end in ends))
    return best


def random_buffers(rng: random.Random, count: int, times: int, sizes: int) -> list[Buffer]:
    buffers = []
    for _ in range(count):
        lower = rng.randrange(times)
        buffers.append((lower, rng.randint(lower + 1, times), rng.randint(1, sizes)))
    return buffers


def cut_rectangle(rng: random.Random, count: int, times: int, height: int) -> list[Buffer]:
    """Buffers that fill a rectangle of time and memory without a gap: the optimum is its height."""
    pieces = [(0, times, 0, height)]
    while len(pieces) < count:
        lower, upper, low, high = pieces.pop(rng.randrange(len(pieces)))
        if upper - lower > 1 and (rng.random() < 0.5 or high - low < 2):
            cut = rng.randint(lower + 1, upper - 1)
            pieces += [(lower, cut, low, high), (cut, upper, low, high)]
        elif high - low > 1:
            cut = rng.randint(low + 1, high - 1)
            pieces += [(lower, upper, low, cut), (lower, upper, cut, high)]
        else:
            pieces.append((lower, upper, low, high))
    rng.shuffle(pieces)
    return [(lower, upper, high - low) for lower, upper, low, high in pieces]


# --- the solver ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_tiny_problems_are_solved_as_brute_force_solves_them(seed: int) -> None:
    rng = random.Random(seed)
    buffers = random_buffers(rng, rng.randint(1, 7), rng.randint(2, 8), rng.choice([3, 10, 1000]))
    plan = plan_buffers(buffers)
    assert plan.is_optimal
    assert plan.height == brute_force_height(buffers), buffers


@pytest.mark.parametrize("seed", range(30))
def test_a_height_below_the_optimum_is_proved_impossible(seed: int) -> None:
    buffers = random_buffers(random.Random(1000 + seed), 7, 5, 9)
    optimum = brute_force_height(buffers)
    plan = plan_buffers(buffers, capacity=optimum - 1)
    assert plan.lower_bound == optimum or plan.lower_bound > optimum - 1
    assert plan.height >= optimum


@pytest.mark.parametrize("seed", range(10))
def test_perfect_packings_are_found(seed: int) -> None:
    buffers = cut_rectangle(random.Random(seed), 60, 80, 10_000)
    assert plan_buffers(buffers, capacity=10_000, steps=200_000).height == 10_000


def test_a_budget_in_steps_gives_the_same_plan_every_time() -> None:
    buffers = cut_rectangle(random.Random(3), 200, 200, 100_000)
    assert plan_buffers(buffers, steps=5_000) == plan_buffers(buffers, steps=5_000)


def test_thousands_of_nested_buffers_that_greedy_plans_miss_are_placed_at_their_bound() -> None:
    n = 1000
    first = [(i, 2 * n - i, 64 * (1 + i * 7 % 13)) for i in range(n)]
    second = [(n + i, 3 * n - i, 64 * (1 + i * 5 % 11)) for i in range(n)]
    assert not plan_buffers(first + second, steps=0).is_optimal
    assert plan_buffers(first + second, steps=1000).is_optimal


def test_a_problem_whose_time_runs_backwards_is_solved_as_fast() -> None:
    forwards = cut_rectangle(random.Random(7), 90, 40, 500)
    backwards = [(-upper, -lower, size) for lower, upper, size in forwards]
    for buffers in (forwards, backwards):
        assert plan_buffers(buffers, steps=20_000).height == 500


def test_offsets_are_aligned() -> None:
    buffers = random_buffers(random.Random(5), 40, 30, 1000)
    plan = plan_buffers(buffers, alignment=64, steps=2_000)
    assert all(offset % 64 == 0 for offset in plan.offsets)


@pytest.mark.parametrize("seed", range(10))
def test_explicit_conflicts_keep_buffers_apart(seed: int) -> None:
    rng = random.Random(seed)
    buffers = random_buffers(rng, 30, 40, 100)
    conflicts = [(a, b) for a in range(30) for b in range(a) if rng.random() < 0.2]
    plan = plan_buffers(buffers, conflicts=conflicts, steps=2_000)
    assert core.find_memory_fault(buffers, 1, conflicts, plan.offsets, plan.height) == ""
    for a, b in conflicts:
        assert plan.offsets[a] + buffers[a][2] <= plan.offsets[b] or plan.offsets[b] + buffers[b][2] <= plan.offsets[a]


def test_more_buffers_than_a_search_can_nest_are_planned() -> None:
    rng = random.Random(9)
    buffers = [(t, t + rng.randint(1, 20), rng.randint(1, 500)) for t in range(12_000)]
    plan = plan_buffers(buffers, steps=50)
    assert plan.lower_bound <= plan.height < 1.5 * plan.lower_bound


def test_nothing_to_place_and_empty_buffers_take_no_memory() -> None:
    assert plan_buffers([]).height == 0
    plan = plan_buffers([(0, 5, 0), (0, 5, 3), (0, 5, 0)])
    assert (plan.offsets, plan.height, plan.is_optimal) == ([0, 0, 0], 3, True)


@pytest.mark.parametrize(
    ("buffers", "what"),
    [
        ([(0, 1, 4), (3, 3, 4)], "buffer 1: lifetime"),
        ([(0, 1, -4)], "negative"),
        ([(0, 1, 2**62), (0, 1, 2**62)], "2\\^62"),
        ([(0, 1, 2**70)], "64 bits"),
        ([(0, 1)], "64 bits"),
    ],
)
def test_malformed_buffers_are_refused(buffers: list[Buffer], what: str) -> None:
    with pytest.raises(PlanError, match=what):
        plan_buffers(buffers)


@pytest.mark.parametrize("conflict", [(0, 2), (1, 1)])
def test_conflicts_that_name_no_two_buffers_are_refused(conflict: tuple[int, int]) -> None:
    with pytest.raises(PlanError, match="conflict of buffers"):
        plan_buffers([(0, 1, 1), (0, 1, 1)], conflicts=[conflict])


# --- the validator ---------------------------------------------------------------------------------------------------


def test_the_validator_rejects_every_tampered_plan() -> None:
    buffers = cut_rectangle(random.Random(1), 20, 20, 100)  # full: no buffer can be anywhere else
    plan = plan_buffers(buffers)
    assert plan.height == 100
    for i in range(len(buffers)):
        for change in (-1, 1):
            offsets = list(plan.offsets)
            offsets[i] += change
            assert core.find_memory_fault(buffers, 1, [], offsets, plan.height)


def test_the_validator_says_what_is_wrong() -> None:
    buffers = [(0, 2, 4), (1, 3, 4), (2, 4, 4)]
    assert core.find_memory_fault(buffers, 1, [], [0, 4, 0], 8) == ""
    assert "overlaps" in core.find_memory_fault(buffers, 1, [], [0, 3, 0], 8)
    assert "above the height" in core.find_memory_fault(buffers, 1, [], [0, 4, 0], 7)
    assert "aligned" in core.find_memory_fault(buffers, 4, [], [0, 6, 0], 16)
    assert "conflicts" in core.find_memory_fault(buffers, 1, [(0, 2)], [0, 4, 0], 8)
    assert "2 offsets for 3" in core.find_memory_fault(buffers, 1, [], [0, 4], 8)


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_output_has_the_columns_of_the_input_and_the_offset(tmp_path: Path) -> None:
    table, out = write(tmp_path / "in.csv", EXAMPLE), tmp_path / "out.csv"
    result = invoke(table, "--capacity", "12", "--out", out)
    assert result.exit_code == 0
    assert "capacity 12: met" in result.output
    with open(table, newline="") as before, open(out, newline="") as after:
        want, got = list(csv.DictReader(before)), list(csv.DictReader(after))
    assert [{**row, "offset": got[i]["offset"]} for i, row in enumerate(want)] == got
    assert list(got[0]) == ["id", "lower", "upper", "size", "note", "offset"]


def test_a_plan_can_be_planned_again(tmp_path: Path) -> None:
    table, out = write(tmp_path / "in.csv", EXAMPLE), tmp_path / "out.csv"
    assert invoke(table, "--out", out).exit_code == 0
    assert invoke(out, "--out", out).exit_code == 0
    assert read_buffers(out).columns.count("offset") == 1


def test_the_exit_status_says_whether_the_capacity_is_met(tmp_path: Path) -> None:
    table = write(tmp_path / "in.csv", EXAMPLE)
    result = invoke(table, "--capacity", "11", "--json")
    assert result.exit_code == 1
    document = json.loads(result.output)
    assert document["schema"] == "ascendsched.memplan/1"
    assert (document["height"], document["lower_bound"], document["capacity_met"]) == (12, 12, False)
    assert "impossible" in invoke(table, "--capacity", "11").output


def test_no_time_still_gives_a_plan(tmp_path: Path) -> None:
    result = invoke(write(tmp_path / "in.csv", EXAMPLE), "--time-limit", "0", "--json")
    assert result.exit_code == 0
    assert json.loads(result.output)["height"] >= 12


def test_memplan_is_one_of_the_tools(tmp_path: Path) -> None:
    table = write(tmp_path / "in.csv", EXAMPLE)
    result = CliRunner().invoke(main, ["tools", "memplan", str(table), "--json"])
    assert json.loads(result.output)["optimal"] is True


def test_the_picture_shows_every_buffer_and_escapes_its_name(tmp_path: Path) -> None:
    text = "id,lower,upper,size\n<a&b>,0,3,4\nb,1,9,4\n"
    assert invoke(write(tmp_path / "in.csv", text), "--svg", tmp_path / "plan.svg").exit_code == 0
    svg = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert svg.count("<title>") == 2
    assert "&lt;a&amp;b&gt;" in svg


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no column id, lower, upper, size"),
        ("id,lower,upper\na,0,1\n", "no column size"),
        ("id,lower,upper,size,size\na,0,1,2,3\n", "'size' occurs twice"),
        ("id,lower,upper,size\na,0,1\n", "line 2: 3 fields"),
        ("id,lower,upper,size\na,0,1,2,3\n", "line 2: 5 fields"),
        ("id,lower,upper,size\na,0,1,2\na,0,1,2\n", "line 3: id 'a' was used before"),
        ("id,lower,upper,size\na,x,1,2\n", "lower is 'x'"),
        ("id,lower,upper,size\na,0,1,1.5\n", "size is '1.5'"),
        ("id,lower,upper,size\na,0,1," + "9" * 5000 + "\n", "expected an integer of 64 bits"),
        ("id,lower,upper,size\na,0,1,9223372036854775808\n", "expected an integer of 64 bits"),
        ("id,lower,upper,size\na,5,5,2\n", "is empty"),
        ("id,lower,upper,size\na,5,4,2\n", "is empty"),
        ("id,lower,upper,size\na,0,1,-2\n", "size is -2"),
        ('id,lower,upper,size\n"a,0,1,2\n', "not a CSV file"),
        ("id,lower,upper,size\na,0,1,9223372036854775807\n", "2^62"),
    ],
)
def test_a_bad_table_is_one_clear_line(tmp_path: Path, text: str, what: str) -> None:
    result = invoke(write(tmp_path / "in.csv", text), "--capacity", "5")
    assert result.exit_code == 1
    assert what in result.output
    assert result.output.startswith("ascendsched: [memplan]")
    assert result.output.count("\n") == 1


def test_files_that_are_no_text_or_not_there_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"\xff\xfe\x00id\x00")
    assert "not a CSV file" in invoke(tmp_path / "in.csv").output
    assert invoke(tmp_path / "none.csv").output.startswith("ascendsched: [memplan] cannot read")
    table = write(tmp_path / "good.csv", EXAMPLE)
    assert "no folder" in invoke(table, "--out", tmp_path / "none" / "out.csv").output
    assert invoke(table, "--time-limit", "nan").exit_code == 2


def test_tables_of_spreadsheets_are_read(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes("\ufeffid,size,upper,lower\r\na, 4,3,0\r\n\r\nb,4,9,3\r\n".encode())
    assert read_buffers(tmp_path / "in.csv").buffers == [(0, 3, 4), (3, 9, 4)]


def test_times_may_be_any_of_64_bits_and_blank_lines_are_no_buffers(tmp_path: Path) -> None:
    text = f"\n \nid,lower,upper,size\n\na,{-(2**63)},{2**63 - 1},5\n   \nb,0,1,6\n\n"
    assert read_buffers(write(tmp_path / "in.csv", text)).buffers == [(-(2**63), 2**63 - 1, 5), (0, 1, 6)]
    assert plan_buffers([(-(2**63), 2**63 - 1, 5), (0, 1, 6)]).height == 11


@pytest.mark.parametrize("option", ["--out", "--svg"])
def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path, option: str) -> None:
    result = invoke(write(tmp_path / "in.csv", EXAMPLE), option, tmp_path)
    assert result.exit_code == 1
    assert "[memplan] cannot write" in result.output
