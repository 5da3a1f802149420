"""msprof's exports of one device or host: `msprof_*.json` timelines, and tables where there is no timeline."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ascendsched.profile.importers import ascend, msprof_db
from ascendsched.profile.importers.builder import RankBuilder
from ascendsched.profile.importers.events import parse_ns, read_document
from ascendsched.profile.importers.files import fail, read_bytes, shown
from ascendsched.profile.importers.tasks import kind_of_task
from ascendsched.profile.timeline import COMMUNICATION, Rank

TIMELINES = "msprof_*.json"
MARKERS = "msprof_tx_"  # the user's marks alone, which the timeline holds too
TABLES = ("kernel_details*.csv", "op_summary*.csv", "task_time*.csv")
DATABASES = ("msprof_*.db", "ascend_pytorch_profiler*.db")
STAMP = re.compile(r"_(\d{14,20})\.")

# What the versions of the exports call their columns, in lower case and without units.
COLUMNS = {
    "name": ("name", "op name", "kernel_name"),
    "type": ("accelerator core", "task type", "kernel_type"),
    "start": ("start time", "task start time", "task_start", "task start", "start"),
    "end": ("task_stop", "task stop time", "end time"),
    "length": ("duration", "task duration", "task_time", "task time"),
    "stream": ("stream id", "stream_id"),
    "device": ("device_id", "device id"),
}
# Of api_statistic*.csv.
API_COLUMNS = {"level": ("level",), "name": ("api name",), "time": ("time",), "count": ("count",)}
MAX_APIS = 10
HCCL_NAME = re.compile(r"hcom_|hccl|allreduce|allgather|reducescatter|alltoall", re.IGNORECASE)


def has_exports(folder: Path) -> bool:
    """Whether a folder holds any of the exports directly."""
    return any(next(folder.glob(pattern), None) is not None for pattern in (TIMELINES, *TABLES, *DATABASES))


def read_folder(folder: Path, profile: Path) -> Rank:
    """Reads the newest export in a folder: the timeline with all its slices, else the database, else the tables.

    Parameters
    ----------
    folder : Path
        Where the files lie.
    profile : Path
        The profile as a whole: its database lies beside the folder.
    """
    timelines = _newest(sorted(p for p in folder.glob(TIMELINES) if not p.name.startswith(MARKERS)))
    if timelines:
        builder = RankBuilder(shown(profile), "ascend")
        documents = [read_document(path, read_bytes(path)) for path in timelines]
        builder.dropped = sum(document.malformed for document in documents)
        # Arrows may lead from one slice to another: the slices are one list of events.
        ascend.add_events(builder, [event for document in documents for event in document.events])
        return builder.build()
    databases = [path for place in (folder, profile) for pattern in DATABASES for path in place.glob(pattern)]
    if databases:
        return msprof_db.read_database(_newest(sorted(databases))[-1])
    for pattern in TABLES:
        tables = _newest(sorted(folder.glob(pattern)))
        if tables:
            return read_tables(tables, profile)
    raise fail(folder, "holds no timeline, database or table of msprof", "run: msprof --export=on --output=DIR")


def _newest(paths: list[Path]) -> list[Path]:
    """The files of the last export; each export stamps its files with its time."""
    stamps = {path: _stamp(path) for path in paths}
    newest = max(stamps.values(), default="")
    return [path for path in paths if stamps[path] == newest]


def _stamp(path: Path) -> str:
    found = STAMP.search(path.name)
    return found.group(1) if found else ""


def read_tables(paths: Sequence[Path], profile: Path) -> Rank:
    """Reads device entries from tables. They hold no launches: idle time stays unattributed.

    Raises
    ------
    AscendSchedError
        Where a table lacks the columns of name, start and duration.
    """
    builder = RankBuilder(shown(profile), "ascend")
    for path in paths:
        for row in _rows(path, COLUMNS, ("name", "start")):
            _add_row(builder, row)
    builder.notes.append("read from a table: it holds no launches and no host; pass the timeline (JSON) to see causes")
    return builder.build()


def read_api_times(folder: Path) -> list[dict[str, Any]]:
    """The host calls that took most time, from the newest `api_statistic*.csv`; none where there is no such table."""
    found: list[dict[str, Any]] = []
    for path in _newest(sorted(folder.glob("api_statistic*.csv"))):
        for row in _rows(path, API_COLUMNS, ("name", "time")):
            total = parse_ns(row["time"].encode())
            if total is not None:
                count = row.get("count", "")
                calls = int(count) if count.isdecimal() and len(count) < 18 else None
                found.append({"level": row.get("level", ""), "name": row["name"], "us": total / 1e3, "calls": calls})
    return sorted(found, key=lambda call: -call["us"])[:MAX_APIS]


def _rows(path: Path, columns: Mapping[str, tuple[str, ...]], needed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """A table's rows, under our names for its columns."""
    reader = csv.reader(io.StringIO(read_bytes(path).decode("utf-8-sig", "replace")))
    try:
        header = [re.sub(r"\s*\(.*\)", "", column).strip().lower() for column in next(reader, [])]
        place = {key: next((header.index(n) for n in names if n in header), -1) for key, names in columns.items()}
        if any(place[key] < 0 for key in needed) or max(place.get("length", 0), place.get("end", 0)) < 0:
            shown_columns = ", ".join(header[:8])
            what = f"has no columns of {', '.join(needed)} and duration ({shown_columns})"
            raise fail(path, what, "pass a table of device tasks, or the timeline")
        for fields in reader:
            if len(fields) > max(place[key] for key in needed):
                yield {key: fields[i].strip() for key, i in place.items() if 0 <= i < len(fields)}
    except csv.Error as error:
        raise fail(path, f"is no table ({error})", "export the profile again") from None


def _add_row(builder: RankBuilder, row: dict[str, str]) -> None:
    start = parse_ns(row.get("start", "").encode())
    length = parse_ns(row.get("length", "").encode())
    end = parse_ns(row.get("end", "").encode())
    if start is not None and length is None and end is not None:
        length = end - start
    name = row.get("name", "")
    if start is None or length is None or length < 0 or not name:
        builder.dropped += 1
        return
    task_type = row.get("type", "")
    is_collective = task_type.upper() in {"HCCL", "COMMUNICATION"} or HCCL_NAME.match(name) is not None
    kind = COMMUNICATION if is_collective else kind_of_task(task_type, name)
    stream, device = (
        int(v) if v.isdecimal() and len(v) < 18 else 0 for v in (row.get("stream", ""), row.get("device", ""))
    )
    builder.entries.append((start, start + length, kind, device, stream, builder.name(name), -1))
