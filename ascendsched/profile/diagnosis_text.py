"""A job's diagnosis as text for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ascendsched.profile.diagnosis import Diagnosis, top_kernels
from ascendsched.profile.gaps import HOST_CAUSES
from ascendsched.profile.job import Job

COLOURS = {
    "host_bound": "red",
    "device_bound": "green",
    "communication_bound": "magenta",
    "dependency_bound": "yellow",
    "balanced": "cyan",
    "insufficient_evidence": "dim",
}
BAR_WIDTH = 30
TOP_GAPS = 5
TOP_COLLECTIVES = 5
NAME_WIDTH = 36
LONG_NAME_WIDTH = 92


def print_job(job: Job, console: Console) -> None:
    """Prints the verdict, what the device did, why it idled, the ranks, the checks and the advice."""
    main = job.main
    console.print(Text(main.sentence, style=f"bold {COLOURS[main.verdict]}"))
    console.print(f"{main.rank.label}, {main.rank.system}; confidence {main.confidence}")
    if main.device is not None:
        _print_device(main, console)
        _print_causes(main, console)
        _print_gaps(main, console)
        _print_kernels(main, console)
    if len(job.ranks) > 1:
        _print_ranks(job, console)
    if job.by_step:
        _print_steps(job, console)
    if main.checks:
        console.print("\nWhat limits these figures", style="bold")
        for check in main.checks:
            console.print(Padding(f"- {check.sentence}", (0, 0, 0, 2)))
    _print_advice(job, console)


def _print_device(main: Diagnosis, console: Console) -> None:
    figures = main.figures
    plural = "" if figures["streams"] == 1 else "s"
    parts = [
        f"device {figures['device']:.0f}: {figures['device_activities']:.0f} activities in "
        f"{figures['streams']:.0f} stream{plural} and {figures['window_us'] / 1e3:.3f} ms",
        f"busy {figures['busy_pct']:.2f} %, idle {figures['idle_pct']:.2f} %",
        f"{figures['launch_calls']:.0f} launch calls ({figures['graph_launches']:.0f} of graphs)",
    ]
    if figures["communication_us"]:
        exposed = figures["communication_not_overlapped_us"]
        parts.append(f"communication {figures['communication_us'] / 1e3:.3f} ms, {exposed / 1e3:.3f} ms of it alone")
    console.print("; ".join(parts))


def _print_causes(main: Diagnosis, console: Console) -> None:
    table = Table(title="Why the device idled", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("cause", no_wrap=True)
    table.add_column("share", justify="right")
    table.add_column("time", justify="right")
    table.add_column("")
    for name, pct in main.idle_split_pct.items():
        bar = Text("█" * round(pct / 100 * BAR_WIDTH), style="red" if name in HOST_CAUSES else "yellow")
        table.add_row(name, f"{pct:.1f} %", f"{main.causes[name] / 1e6:.3f} ms", bar)
    for name, value in main.stages_us().items():
        if isinstance(value, str):
            table.add_row(f"host_late.{name}", "", "", value)
    if table.row_count:
        console.print()
        console.print(table)


def _print_gaps(main: Diagnosis, console: Console) -> None:
    gaps, device = main.gaps, main.device
    if gaps is None or device is None or not len(gaps.start) or main.rank.extra.get("recording") is not None:
        return
    table = Table(title="Longest gaps", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("at", "length"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("cause", no_wrap=True)
    for column in ("after", "before"):
        table.add_column(column, no_wrap=True, overflow="ellipsis", max_width=NAME_WIDTH)
    causes, work = gaps.main_causes(), device.work
    for row in sorted(range(len(causes)), key=lambda i: -int(gaps.length[i]))[:TOP_GAPS]:
        names = [_short(main.rank.names[int(work.name[int(side[row])])]) for side in (gaps.before, gaps.after)]
        at = (int(gaps.start[row]) - int(work.start[0])) / 1e6
        table.add_row(f"{at:.3f} ms", f"{int(gaps.length[row]) / 1e3:.1f} us", causes[row], *names)
    console.print()
    console.print(table)


def _print_kernels(main: Diagnosis, console: Console) -> None:
    if main.device is None:
        return
    table = Table(title="Longest work", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("time", "share", "count"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("name", no_wrap=True, overflow="ellipsis")
    for row in top_kernels(main.rank, main.device):
        cells = (f"{row['us'] / 1e3:.3f} ms", f"{row['share_pct']:.1f} %", str(row["count"]))
        table.add_row(*cells, _short(row["name"], LONG_NAME_WIDTH))
    console.print()
    console.print(table)


def _short(name: str, width: int = NAME_WIDTH) -> str:
    text = name.replace("(anonymous namespace)::", "").removeprefix("void ").partition("(")[0]
    return (text or name)[:width]


def _print_ranks(job: Job, console: Console) -> None:
    table = Table(title="Ranks", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("rank", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for column in ("idle", "computing", "communication", "alone"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("main cause", no_wrap=True)
    for diagnosis in job.ranks:
        figures = diagnosis.figures
        if not figures:
            table.add_row(diagnosis.rank.label, diagnosis.verdict, "", "", "", "", "")
            continue
        times = ("computing_us", "communication_us", "communication_not_overlapped_us")
        cells = [f"{figures[key] / 1e3:.3f} ms" for key in times]
        cause = next(iter(diagnosis.idle_split_pct), "")
        table.add_row(diagnosis.rank.label, diagnosis.verdict, f"{figures['idle_pct']:.1f} %", *cells, cause)
    console.print()
    console.print(table)
    if job.skew is None:
        return
    if job.skew_sentence():
        console.print(Text(job.skew_sentence(), style="bold"))
    longest = sorted(job.skew.arrivals, key=lambda arrival: -arrival.skew_ns)[:TOP_COLLECTIVES]
    for arrival in longest:
        if arrival.skew_ns:
            text = f"collective {arrival.index} {_short(arrival.name)}: {arrival.late_rank} last by "
            console.print(f"  {text}{arrival.skew_ns / 1e3:.1f} us; {arrival.stage}")
    for note in (job.skew.clock, *job.skew.notes):
        console.print(f"  ({note})")


def _print_steps(job: Job, console: Console) -> None:
    table = Table(title="Steps", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("step", "rank", "verdict"):
        table.add_column(column)
    for column in ("window", "idle"):
        table.add_column(column, justify="right")
    table.add_column("main cause")
    for number, diagnosis in job.by_step:
        figures = diagnosis.figures
        window = f"{figures['window_us'] / 1e3:.3f} ms" if figures else ""
        idle = f"{figures['idle_pct']:.1f} %" if figures else ""
        cause = next(iter(diagnosis.idle_split_pct), "")
        table.add_row(str(number), diagnosis.rank.label, diagnosis.verdict, window, idle, cause)
    console.print()
    console.print(table)


def _print_advice(job: Job, console: Console) -> None:
    advice = job.advice()
    if not advice:
        return
    console.print("\nWhat would help", style="bold")
    for item in advice:
        gain = f"at most {item.gain_pct:.0f} % of the window; " if item.gain_pct else ""
        console.print(Padding(f"- {item.action}", (0, 0, 0, 2)))
        console.print(Padding(f"{item.because} ({gain}confidence {item.confidence})", (0, 0, 0, 4)), style="dim")
        for detail in item.details:
            console.print(Padding(detail, (0, 0, 0, 6)), style="dim")
