"""Finds out what a path holds and reads it: a trace file, a profiler's folder, or a folder with the ranks of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ascendsched.profile.importers import ascend, kineto, msprof, msprof_db, own
from ascendsched.profile.importers.builder import RankBuilder
from ascendsched.profile.importers.events import read_document
from ascendsched.profile.importers.files import NoProfileError, fail, read_bytes, shown
from ascendsched.profile.timeline import Rank, Timeline

# Bounds on a search: deeper or wider folders hold something else.
MAX_DEPTH = 5
MAX_FILES = 4096

OUTPUT = "ASCEND_PROFILER_OUTPUT"
MSPROF_OUTPUT = "mindstudio_profiler_output"
RANK_IN_NAME = re.compile(r"rank[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)
RANK_OF_INFO = re.compile(r"(?:profiler_info|ascend_pytorch_profiler)_(\d{1,6})\.(?:json|db)\Z")
TRACE_SUFFIXES = (".json", ".json.gz", ".pt.trace.json.gz", ".trace")


def read_profiles(paths: Sequence[Path]) -> Timeline:
    """Reads every rank that the paths hold, in order of rank.

    Parameters
    ----------
    paths : sequence of Path
        Trace files, profilers' output folders, or folders that hold several of either.

    Raises
    ------
    AscendSchedError
        Where a path is missing, damaged, or no profile.
    """
    ranks = [rank for path in paths for rank in _read(path)]
    order = sorted(range(len(ranks)), key=lambda i: (ranks[i].number is None, ranks[i].number or 0, i))
    ordered = [ranks[i] for i in order]
    numbers = [rank.number for rank in ordered]
    if len(set(numbers)) < len(numbers):  # the same rank twice, or several that say no rank: they go by their source
        ordered = [_renamed(rank) if numbers.count(rank.number) > 1 else rank for rank in ordered]
    return Timeline(tuple(ordered))


def _renamed(rank: Rank) -> Rank:
    """The rank under the name of its source; one that another has too cannot be compared with the others."""
    return replace(rank, number=None, extra={**rank.extra, "is_repeated": rank.number is not None})


def _read(path: Path) -> list[Rank]:
    if not path.exists():
        raise fail(path, "does not exist", "pass a profile's file or folder")
    if not path.is_dir():
        return [_read_file(path)]
    units = list(_units(path, 0, []))
    if not units:
        raise fail(path, "holds no profile", "pass a trace file or a profiler's output folder")
    ranks, refused = [], []
    for unit in units:
        try:
            ranks.append(_read_unit(unit))
        except NoProfileError as error:  # a folder may hold other JSON beside its traces
            refused.append(error)
    if not ranks:
        raise refused[0]
    return ranks


def _units(folder: Path, depth: int, seen: list[Path]) -> Iterator[Path]:
    """Files and folders that are one rank each; `seen` counts what the whole search has met."""
    if (folder / OUTPUT).is_dir():
        yield folder / OUTPUT
        return
    if _is_unit(folder):
        yield folder
        return
    try:
        children = sorted(folder.iterdir())
    except OSError as error:
        raise fail(folder, f"cannot be listed ({error.strerror})", "check its permissions") from None
    seen += children
    if len(seen) > MAX_FILES:
        raise fail(
            folder, f"and the folders around it hold more than {MAX_FILES} files", "pass the profiles themselves"
        )
    _refuse_raw(folder, children)
    for child in children:
        if child.is_dir() and depth < MAX_DEPTH:
            yield from _units(child, depth + 1, seen)
        elif child.is_file() and child.name.endswith(TRACE_SUFFIXES):
            yield child


def _is_unit(folder: Path) -> bool:
    return (folder / ascend.TRACE_FILE).is_file() or (folder / MSPROF_OUTPUT).is_dir() or msprof.has_exports(folder)


def _refuse_raw(folder: Path, children: list[Path]) -> None:
    """Raises for what a profiler collected but nobody exported, with the command that does."""
    names = {child.name for child in children if child.is_dir()}
    if folder.name.startswith("PROF_") or (any(n.startswith("device_") for n in names) and "host" in names):
        raise fail(
            folder,
            "is raw msprof data that was never exported",
            f"run: msprof --export=on --output={shown(folder)}",
        )
    if folder.name.endswith("_ascend_pt") and not any(_is_unit(child) for child in folder.glob("PROF_*")):
        call = f"from torch_npu.profiler.profiler import analyse; analyse('{shown(folder)}')"
        raise fail(folder, "was collected but never analysed", f'run: python -c "{call}"')


def _read_unit(path: Path) -> Rank:
    if path.is_file():
        return _read_file(path)
    output, trace = path / MSPROF_OUTPUT, path / ascend.TRACE_FILE
    if output.is_dir():
        rank = msprof.read_folder(output, path)
    elif trace.is_file():
        rank = _read_file(trace)
    else:
        rank = msprof.read_folder(path, path)
    rank.extra["host_apis"] = msprof.read_api_times(output if output.is_dir() else path)
    return _numbered(path, rank)


def _read_file(path: Path) -> Rank:
    if msprof_db.is_database(path):
        return _numbered(path, msprof_db.read_database(path))
    if path.suffix == ".csv":
        return _numbered(path, msprof.read_tables([path], path))
    document = read_document(path, read_bytes(path))
    if own.is_own(document):
        return own.read_own(document, shown(path))
    if ascend.is_ascend(document.events):
        builder = RankBuilder(shown(path), "ascend")
        builder.dropped = document.malformed
        ascend.add_events(builder, document.events)
        return _numbered(path, builder.build())
    if kineto.is_kineto(document):
        return _numbered(path, kineto.read_kineto(document, shown(path)))
    raise NoProfileError(
        f"[diagnose] {shown(path)}: no trace of PyTorch (Kineto), Ascend or ascendsched; pass one of these"
    )


def _numbered(path: Path, rank: Rank) -> Rank:
    """The rank with its number, from the profile, else from the names of files beside it or of its folders."""
    if rank.number is not None:
        return rank
    places = [path] if path.is_file() else [path, *_siblings(path)]
    for place in places:
        found = RANK_OF_INFO.search(place.name) or RANK_IN_NAME.search(place.name)
        if found:
            return replace(rank, number=int(found.group(1)))
    for folder in path.absolute().parents[:2]:
        found = RANK_IN_NAME.search(folder.name)
        if found:
            return replace(rank, number=int(found.group(1)))
    return rank


def _siblings(folder: Path) -> list[Path]:
    """Where an Ascend profile keeps its rank: in names beside its output folder."""
    beside = folder.parent.glob("profiler_info_*.json") if folder.name == OUTPUT else []
    return sorted([*folder.glob("ascend_pytorch_profiler_*.db"), *beside])
