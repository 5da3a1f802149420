"""The small file in which tuned settings are kept: ``compile(options="tuned.json")`` reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ascendsched.bounded import SETTINGS_BYTES, read_text, reason
from ascendsched.errors import AscendSchedError, PlanError
from ascendsched.options import Options, check_threads, options_from
from ascendsched.whole_files import write_whole

SCHEMA = "ascendsched.tuned/1"
MODES = ("host", "sink", "auto")


@dataclass(frozen=True)
class Settings:
    """What `compile` is given: mode, threads and options. `about` says where they come from, for readers."""

    mode: str = "auto"
    threads: int | None = None
    options: Options = field(default_factory=Options)
    about: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file; options at their defaults are left out.

        Raises
        ------
        WriteError
            Where it cannot be written; what was there stays.
        """
        changed = {
            setting.name: asdict(self.options)[setting.name]
            for setting in fields(Options)
            if getattr(self.options, setting.name) != getattr(Options(), setting.name)
        }
        values = {"schema": SCHEMA, "mode": self.mode, "threads": self.threads, "options": changed, **self.about}
        write_whole(path, json.dumps(values, indent=2) + "\n", "tune")


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """What `Settings.save` wrote.

    Raises
    ------
    PlanError
        For a file that is not there or holds something else.
    """
    where = f"[options] '{os.fspath(path)}'"
    try:
        values = json.loads(read_text(path, SETTINGS_BYTES))
    except OSError as error:
        raise PlanError(f"{where}: {reason(error)}; write it with ascendsched tune") from None
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{where}: {error}; write the file with ascendsched tune") from None
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        raise PlanError(f"{where} is no file of settings with schema {SCHEMA}; write it with ascendsched tune")
    mode, threads, options = values.get("mode", "auto"), values.get("threads"), values.get("options", {})
    if mode not in MODES or not isinstance(options, dict):
        raise PlanError(f"{where}: mode {mode!r}, options {str(options)[:80]}; expected {', '.join(MODES)}, an object")
    known = {setting.name for setting in fields(Options)}
    if unknown := sorted(options.keys() - known):
        raise PlanError(f"{where}: unknown options {unknown}; this version knows {', '.join(sorted(known))}")
    try:
        return Settings(mode, None if threads is None else check_threads(threads), options_from(options))
    except (AscendSchedError, TypeError) as error:
        raise PlanError(f"{where}: {error}") from None
