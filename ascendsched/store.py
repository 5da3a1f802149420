"""Saved executables: `save` writes one, `load` reads it, or rebuilds it where the file is stale or damaged.

A file holds the folded graph, its constants where they can be used without a copy, the settings, and the shapes that
ran last. Nothing that depends on the machine is stored: tilings and schedules are computed again. Layout: a header with
size and checksum of three sections; structure of the graph; JSON; constants. Every byte is under a checksum.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ascendsched._version import __version__
from ascendsched.bounded import shortened
from ascendsched.errors import AscendSchedError, GraphError, PlanError, UnsupportedError
from ascendsched.executable import Executable, build, compile
from ascendsched.graph import Graph
from ascendsched.native import core as _core
from ascendsched.options import Options, options_from
from ascendsched.packed import is_known
from ascendsched.setup import Setup, SourceFile
from ascendsched.warmup import check_shapes, recent_shapes, warm_again
from ascendsched.whole_files import replacing, write_error

if TYPE_CHECKING:
    Model = str | os.PathLike[str] | bytes | Graph | Any

_LOG = logging.getLogger("ascendsched")
_SCHEMA = "ascendsched.saved/1"
_HEADER_BYTES = _core.SAVED_HEADER_BYTES
_ALIGNMENT = 64
_BLOCK_BYTES = 2 << 20  # what systems keep of a file in one piece, and map as one page, where it is written at once
_STAMP_TYPES = [int] * 5
_NOT_IN_USE = "compile the model again and save it"
_decode = json.JSONDecoder().raw_decode  # what follows the JSON are spaces


class _UnusableError(Exception):
    """Why a file is not used as it is; never leaves this module."""


class _Saved:
    """The readable parts of a file.

    Attributes
    ----------
    setup : Setup
        The settings; options that this version does not know are left out.
    origin : dict, optional
        Version and build that wrote the file; None where they are those that run.
    model_path : str, optional
        Where the model was, seen from the file; None for a model that came from memory.
    """

    def __init__(self, path: str, file: _core.SavedFile, meta: dict[str, Any], origin: dict[str, Any] | None) -> None:
        self.file = file
        self.meta = meta
        self.origin = origin
        source, options = meta["source"], meta["options"]
        self.model_path: str | None = None
        files: tuple[SourceFile, ...] = ()
        if source is not None:
            self.model_path = os.path.normpath(os.path.join(os.path.dirname(path), source["path"]))
            files = self._files(self.model_path)
        if options is not None:
            options = options_from(options)
        results = {name: tuple(shape) for name, shape in meta["results"].items()}
        self.setup = Setup(meta["device"], meta["mode"], meta["threads"], options, files, meta["kinds"], results)

    def _files(self, model: str) -> tuple[SourceFile, ...]:
        """The files of the model, if it lies at `model`."""
        first, *others = self.meta["source"]["files"]
        if not others:
            return (_file_of(model, first),)
        folder = os.path.dirname(model)
        return (_file_of(model, first), *(_file_of(os.path.join(folder, entry["path"]), entry) for entry in others))

    def difference(self, model: str | None = None) -> str | None:
        """How the model's files differ from those that the executable was compiled from; None where they do not."""
        if self.model_path is None:
            return "the executable was compiled from a model in memory, to which no file can be compared"
        for file in self.setup.files if model is None else self._files(model):
            try:
                if not file.is_unchanged():
                    return f"'{file.path}' has changed"
            except (OSError, GraphError, ValueError):  # the last for what is no path at all
                return f"'{file.path}' is not there"
        return None


def save(core: _core.Executable, setup: Setup, path: str | os.PathLike[str]) -> None:
    """Do what `Executable.save` does."""
    target = Path(os.path.abspath(os.fsdecode(path)))
    structure, constants, data_bytes = _core.graph_bytes(core)
    text = _origin(__version__, _core.build_info) + json.dumps(_describe(core, setup, target.parent))[1:]
    meta = text.encode()
    # Spaces after the JSON put the constants at a multiple of the alignment.
    meta += b" " * (-(_HEADER_BYTES + len(structure) + len(meta)) % _ALIGNMENT)
    try:
        with replacing(target) as file:
            blocks = _Blocks(file)
            blocks.write(bytes(_HEADER_BYTES) + structure + meta)
            written = 0
            for offset, array in constants:
                blocks.write(bytes(offset - written))
                blocks.write(array)
                written = offset + array.nbytes
            blocks.write(bytes(data_bytes - written))
            blocks.flush()
            header = _core.saved_header(os.fsencode(file.name), len(structure), len(meta))
            file.seek(0)
            file.write(header)
    except (OSError, ValueError) as error:  # the last for what is no path at all
        raise write_error("save", target, error) from None


class _Blocks:
    """Writes a file from its beginning, in whole blocks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._block = bytearray()

    def write(self, data: Any) -> None:
        """Take bytes, or a flat array of them."""
        rest = memoryview(data)
        while rest:
            part = rest[: _BLOCK_BYTES - len(self._block)]
            self._block += part
            rest = rest[len(part) :]
            if len(self._block) == _BLOCK_BYTES:
                self.flush()

    def flush(self) -> None:
        """Write what is left."""
        self._file.write(self._block)
        self._file.flush()
        self._block.clear()


@cache
def _origin(version: str, build_info: Callable[[], dict[str, str]]) -> str:
    """Return how a description begins: a file that says the same was written by what runs now."""
    return json.dumps({"schema": _SCHEMA, "version": version, "build": build_info()})[:-1] + ", "


def _describe(core: _core.Executable, setup: Setup, folder: Path) -> dict[str, Any]:
    source = None
    if setup.files:
        own = Path(os.path.abspath(setup.files[0].path))
        # External data lies in the model's folder, which may be reached through a link.
        bases = [own.parent, own.parent.resolve()]
        entries = []
        for file in [file.hashed() for file in setup.files]:
            place = Path(file.path)
            base = next((b for b in bases if place.is_absolute() and place.is_relative_to(b)), None)
            entries.append(
                {
                    "path": str(place.relative_to(base)) if base else place.name,
                    "hash": file.hash,
                    "stamp": file.stamp,
                    "settled": file.is_settled,
                }
            )
        source = {"path": os.path.relpath(own, folder), "files": entries}
    return {
        "device": setup.device,
        "mode": setup.mode,
        "threads": setup.threads,
        "options": None if setup.options is None else asdict(setup.options),
        "source": source,
        "kinds": setup.kinds,
        "results": setup.results,
        "shapes": recent_shapes(core),
    }


def load(
    path: str | os.PathLike[str],
    model: Model | None = None,
    *,
    device: str | None = None,
    mode: str | None = None,
    threads: int | None = None,
    options: Options | None = None,
    warm: bool = True,
) -> Executable:
    """Loads what `Executable.save` wrote.

    A file that is damaged, or was written by another version or for another CPU or kernel library, or whose model has
    changed, is never used: the executable is compiled again, with a warning of the logger ``ascendsched`` that says
    why. The file stays as it is; save again to replace it.

    Parameters
    ----------
    path
        The file. It may be replaced, but must not be changed in place while the executable lives, which uses the
        constants where they lie.
    model
        The model, as for `compile`, if it is no longer where it was; by default the saved executable serves alone
        where its model is not found.
    device, mode, threads, options
        Replace the settings of the saved executable.
    warm
        Whether to warm up for the shapes that ran last; else their first run resolves them.

    Returns
    -------
    Executable
        One that computes what the saved one did.

    Raises
    ------
    GraphError
        Where there is no such file, or it cannot be used and its model is not found unchanged and not given.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise GraphError(f"[load] a saved executable is a path, got {type(path).__name__}")
    place = os.path.abspath(os.fsdecode(path))
    given = {"device": device, "mode": mode, "threads": threads, "options": options}
    changes = {name: value for name, value in given.items() if value is not None}
    saved = None
    try:
        saved = _open(place)
        _check(saved, model)
        exe = _restore(saved, changes)
    except _UnusableError as reason:
        exe = _rebuild(place, saved, model, shortened(reason), changes)
    if warm and saved is not None and saved.meta["shapes"]:
        warm_again(exe._core, exe.inputs, saved.meta["shapes"])
    return exe


def _open(path: str) -> _Saved:
    """Read and check everything but the graph."""
    file = _core.SavedFile(os.fsencode(path))
    if file.fault:
        raise _UnusableError(file.fault)
    try:
        text, begin = file.description, _origin(__version__, _core.build_info)
        is_own = text.startswith(begin)
        meta = _decode("{" + text[len(begin) :] if is_own else text)[0]
        _check_meta(meta)
        return _Saved(path, file, meta, None if is_own else _check_origin(meta))
    except (AscendSchedError, AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        raise _UnusableError("its description is not one that this version reads") from None


def _file_of(path: str, entry: dict[str, Any]) -> SourceFile:
    return SourceFile(path, tuple(entry["stamp"]), entry["hash"], entry["settled"] is True)


def _check_meta(meta: Any) -> None:
    """Raise any of the errors that `_open` takes for damage."""
    kinds = meta["kinds"]
    if not (isinstance(meta["device"], str) and isinstance(meta["mode"], str) and isinstance(meta["shapes"], list)):
        raise TypeError
    if kinds != {} and not all(map(is_known, kinds.values())):
        raise TypeError
    for shape in meta["results"].values():
        if type(shape) is not list or not all(dim is None or type(dim) in {int, str} for dim in shape):
            raise TypeError
    if meta["source"] is not None:
        if not meta["source"]["files"]:
            raise ValueError
        for entry in meta["source"]["files"]:
            if not (isinstance(entry["path"], str) and isinstance(entry["hash"], str)):
                raise TypeError
            if [*map(type, entry["stamp"])] != _STAMP_TYPES:
                raise TypeError
    check_shapes(meta["shapes"])


def _check_origin(meta: dict[str, Any]) -> dict[str, Any]:
    """Return what wrote the file; raise any of the errors that `_open` takes for damage."""
    kinds = {"schema": str, "version": str, "build": dict}
    if not all(isinstance(meta[key], kind) for key, kind in kinds.items()) or meta["schema"] != _SCHEMA:
        raise ValueError
    return {key: meta[key] for key in kinds}


def _check(saved: _Saved, model: Model | None) -> None:
    """Refuse a file of another version, build or model."""
    if saved.origin is not None:
        _check_build(saved.origin["version"], saved.origin["build"])
    if model is None:
        own = saved.model_path
        difference = None if own is None else saved.difference()
        if difference and own and not os.path.isfile(own):  # gone: the executable serves alone
            return
    elif isinstance(model, (str, os.PathLike)):
        difference = saved.difference(os.path.abspath(os.fsdecode(model)))
    else:
        difference = "the given model lies in memory, and cannot be compared with the saved one"
    if difference:
        raise _UnusableError(difference)


def _check_build(version: str, then: dict[str, Any]) -> None:
    if version != __version__:
        raise _UnusableError(f"it was saved by version {version}, this is {__version__}")
    now = _core.build_info()
    if now != then:
        name = next(name for name in sorted(now.keys() | then.keys()) if now.get(name) != then.get(name))
        raise _UnusableError(f"it was saved with {name} {then.get(name)}, here it is {now.get(name)}")


def _restore(saved: _Saved, changes: dict[str, Any]) -> Executable:
    try:
        return build(saved.file.graph(), replace(saved.setup, **changes) if changes else saved.setup)
    except (GraphError, PlanError, UnsupportedError, UnicodeDecodeError) as error:
        raise _UnusableError(str(error)) from None


def _rebuild(place: str, saved: _Saved | None, model: Model | None, reason: str, changes: dict[str, Any]) -> Executable:
    if model is None:
        model = saved.model_path if saved is not None else None
        difference = saved.difference() if saved is not None and model is not None else None
        if model is None or difference:
            found = shortened(difference) if difference and shortened(difference) != reason else None
            raise GraphError(
                f"[load] '{place}' is not used: {reason}{'; ' + found if found else ''}; pass model= to build it anew, "
                f"or {_NOT_IN_USE}"
            )
    _LOG.warning("[load] '%s' is not used: %s; compiling the model instead, save it again", place, reason)
    setup = replace(saved.setup if saved is not None else Setup("cpu", "auto", None, None), **changes)
    return compile(model, setup.device, setup.mode, setup.threads, setup.options)
