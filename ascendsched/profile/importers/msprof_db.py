"""The SQLite form of Ascend profiles: `msprof_*.db` and `ascend_pytorch_profiler_*.db`.

Tables and columns are the vendor's documented ones; times are nanoseconds. Columns that a version lacks read as NULL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ascendsched.profile.importers.ascend import CANN_STAGES, NO_MODEL
from ascendsched.profile.importers.builder import RankBuilder
from ascendsched.profile.importers.events import MAX_NS
from ascendsched.profile.importers.files import MAX_BYTES, fail, shown
from ascendsched.profile.importers.stages import is_graph_launch, stage_of_call
from ascendsched.profile.importers.tasks import kind_of_task
from ascendsched.profile.timeline import COMMUNICATION, KERNEL, STAGE_NUMBER, Rank

MAGIC = b"SQLite format 3\x00"
NO_CONNECTION = 4294967295


def is_database(path: Path) -> bool:
    """Whether a file is SQLite."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_database(path: Path) -> Rank:
    """Reads one database.

    Raises
    ------
    AscendSchedError
        Where it is damaged or lacks the table of device tasks.
    """
    builder = RankBuilder(shown(path), "ascend")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise fail(path, f"{size} bytes, at most {MAX_BYTES} are read", "profile fewer steps")
    try:
        # Immutable: nothing is written, no journal is made beside the file, and no lock of a writer is waited for.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            tables = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "TASK" not in tables and "COMMUNICATION_OP" not in tables:
                raise fail(path, "is a database without device tasks", "pass the database that msprof exported")
            texts = dict(_select(database, tables, "STRING_IDS", ("id", "value")))
            _add_tasks(builder, database, tables, texts)
            _add_collectives(builder, database, tables, texts)
            _add_calls(builder, database, tables, texts)
            _add_operators(builder, database, tables, texts)
    except sqlite3.Error as error:
        raise fail(path, f"is a damaged database ({error})", "export the profile again") from None
    return builder.build()


def _select(
    database: sqlite3.Connection, tables: set[str], table: str, columns: tuple[str, ...]
) -> Iterator[tuple[Any, ...]]:
    """Rows of a table, NULL for columns that it lacks; none where the table is missing."""
    if table not in tables:
        return
    present = {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}
    chosen = ", ".join(column if column in present else "NULL" for column in columns)
    yield from database.execute(f"SELECT {chosen} FROM {table}")  # noqa: S608 (names are ours)


def _interval(builder: RankBuilder, start: Any, end: Any) -> tuple[int, int] | None:
    if isinstance(start, int) and isinstance(end, int) and 0 <= start <= end < MAX_NS:
        return start, end
    builder.dropped += 1
    return None


def _text(texts: dict[Any, Any], key: Any, otherwise: str) -> str:
    value = texts.get(key, key if isinstance(key, str) else None)
    return value if isinstance(value, str) else otherwise


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < MAX_NS else 0


def _connection(builder: RankBuilder, value: Any) -> int:
    return builder.key(value) if isinstance(value, int) and value != NO_CONNECTION else -1


def _add_tasks(builder: RankBuilder, database: sqlite3.Connection, tables: set[str], texts: dict[Any, Any]) -> None:
    kernels = _select(database, tables, "COMPUTE_TASK_INFO", ("globalTaskId", "name", "taskType"))
    computing = {row[0]: row[1:] for row in kernels}
    moved = {row[0] for row in _select(database, tables, "COMMUNICATION_TASK_INFO", ("globalTaskId",))}
    columns = ("startNs", "endNs", "deviceId", "streamId", "connectionId", "taskType", "globalTaskId", "modelId")
    for start, end, device, stream, connection, number, task, model in _select(database, tables, "TASK", columns):
        interval = _interval(builder, start, end)
        if interval is None or task in moved:  # parts of a collective, which has a row of its own
            continue
        kernel, kernel_type = computing.get(task, (None, None))
        task_type = _text(texts, number, "")
        name = _text(texts, kernel, task_type or "task")
        kind = kind_of_task(_text(texts, kernel_type, task_type), name)
        key = _connection(builder, connection)
        if key < 0 and kind == KERNEL and isinstance(model, int) and model != NO_MODEL:
            builder.model_tasks.append(len(builder.entries))
        builder.entries.append((*interval, kind, _whole(device), _whole(stream), builder.name(name), key))


def _add_collectives(
    builder: RankBuilder, database: sqlite3.Connection, tables: set[str], texts: dict[Any, Any]
) -> None:
    columns = ("startNs", "endNs", "opName", "connectionId", "deviceId")
    devices = {entry[3] for entry in builder.entries}
    usual = min(devices) if len(devices) == 1 else 0
    for start, end, name, connection, device in _select(database, tables, "COMMUNICATION_OP", columns):
        interval = _interval(builder, start, end)
        if interval is None:
            continue
        label = builder.name(_text(texts, name, "collective"))
        where = usual if device is None else _whole(device)
        builder.entries.append((*interval, COMMUNICATION, where, -1, label, _connection(builder, connection)))


def _add_calls(builder: RankBuilder, database: sqlite3.Connection, tables: set[str], texts: dict[Any, Any]) -> None:
    used = {entry[6] for entry in builder.entries}
    columns = ("startNs", "endNs", "name", "globalTid", "connectionId", "type")
    types = dict(_select(database, tables, "ENUM_API_TYPE", ("id", "name")))
    for start, end, number, thread, connection, level in _select(database, tables, "CANN_API", columns):
        interval = _interval(builder, start, end)
        if interval is None:
            continue
        name = _text(texts, number, "call")
        kind = str(types.get(level, level))
        where = builder.thread(_whole(thread) & 0xFFFFFFFF)
        stage = STAGE_NUMBER["launch"] if kind == "node" and "launch" in name.lower() else stage_of_call(name)
        label = builder.name(f"{kind}@{name}")
        builder.spans.append((*interval, where, stage, label, -1))
        builder.recorded |= CANN_STAGES
        key = _connection(builder, connection)
        if key >= 0 and key in used:
            builder.launches.append((*interval, where, label, key, is_graph_launch(name)))


def _add_operators(builder: RankBuilder, database: sqlite3.Connection, tables: set[str], texts: dict[Any, Any]) -> None:
    columns = ("startNs", "endNs", "name", "globalTid")
    for start, end, number, thread in _select(database, tables, "PYTORCH_API", columns):
        interval = _interval(builder, start, end)
        if interval is None:
            continue
        name = _text(texts, number, "operator")
        where = builder.thread(_whole(thread) & 0xFFFFFFFF)
        builder.spans.append((*interval, where, STAGE_NUMBER["framework"], builder.name(name), -1))
        builder.step(name, *interval)
    for number, start, end in _select(database, tables, "STEP_TIME", ("id", "startNs", "endNs")):
        if isinstance(number, int) and number not in builder.steps:
            interval = _interval(builder, start, end)
            if interval is not None:
                builder.steps[number] = interval
