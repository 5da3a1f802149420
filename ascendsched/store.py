"""Saved executables: `save` writes one, `load` reads it, or rebuilds it where the file is stale or damaged.

A file holds the folded graph, its constants where they can be used without a copy, the settings, and the shapes that
ran last. Nothing that depends on the machine is stored: tilings and schedules are computed again. Layout: a header with
place, size and checksum of three sections; structure of the graph; JSON; constants. Every byte is under a checksum.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import tempfile
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ascendsched._version import __version__
from ascendsched.errors import AscendSchedError, GraphError, PlanError, UnsupportedError
from ascendsched.executable import Executable, build, compile
from ascendsched.graph import Graph
from ascendsched.native import core as _core
from ascendsched.options import Options, options_from
from ascendsched.setup import Setup, SourceFile
from ascendsched.warmup import check_shapes, recent_shapes, warm_again

if TYPE_CHECKING:
    Model = str | os.PathLike[str] | bytes | Graph | Any

_LOG = logging.getLogger("ascendsched")
_MAGIC = b"ASCEXE\r\n"  # a transfer in text mode changes it
_FORMAT = 1
_SCHEMA = "ascendsched.saved/1"
_HEADER = struct.Struct("<8sQ9Q")  # magic, format, then offset, bytes and hash of each section
_HASH = struct.Struct("<Q")  # of the header
_HEADER_BYTES = _HEADER.size + _HASH.size
_ALIGNMENT = 64
_NOT_IN_USE = "compile the model again and save it"


class _Section(NamedTuple):
    offset: int
    bytes: int
    hash: int


class _UnusableError(Exception):
    """Why a file is not used as it is; never leaves this module."""


@dataclass(frozen=True)
class _Saved:
    """The readable parts of a file."""

    path: Path
    structure: _Section
    data: _Section
    meta: dict[str, Any]

    @cached_property
    def setup(self) -> Setup:
        """The settings; options that this version does not know are left out."""
        options = self.meta["options"]
        if options is not None:
            options = options_from(options)
        kinds = self.meta["kinds"]
        return Setup(
            self.meta["device"], self.meta["mode"], self.meta["threads"], options, self._own_files or (), kinds
        )

    @cached_property
    def model_path(self) -> Path | None:
        """Where the model was, seen from the file; None for a model that came from memory."""
        source = self.meta["source"]
        if source is None:
            return None
        return Path(os.path.normpath(os.path.join(os.path.dirname(self.path), source["path"])))

    @cached_property
    def _own_files(self) -> tuple[SourceFile, ...] | None:
        return self.files(None)

    def files(self, model: Path | None) -> tuple[SourceFile, ...] | None:
        """The files of the model, if it lies at `model`, by default where it was; None for a model from memory."""
        own = model or self.model_path
        if own is None:
            return None
        entries = self.meta["source"]["files"]
        paths = [own, *(own.parent / entry["path"] for entry in entries[1:])]
        stamps = [tuple(int(part) for part in entry["stamp"]) for entry in entries]
        return tuple(
            SourceFile(p, (s[0], s[1], s[2], s[3], s[4]), e["hash"], e["settled"] is True)
            for p, s, e in zip(paths, stamps, entries, strict=True)
        )

    def difference(self, model: Path | None = None) -> str | None:
        """How the model's files differ from those that the executable was compiled from; None where they do not."""
        files = self._own_files if model is None else self.files(model)
        if files is None:
            return "the executable was compiled from a model in memory, to which no file can be compared"
        for file in files:
            try:
                if not file.is_unchanged():
                    return f"'{file.path}' has changed"
            except (OSError, GraphError):
                return f"'{file.path}' is not there"
        return None


def save(core: _core.Executable, setup: Setup, path: str | os.PathLike[str]) -> None:
    """Do what `Executable.save` does."""
    target = Path(os.path.abspath(os.fsdecode(path)))
    structure, constants, data_bytes = _core.graph_bytes(core)
    meta = json.dumps(_describe(core, setup, target.parent)).encode()
    # Spaces after the JSON put the constants at a multiple of the alignment.
    meta += b" " * (-(_HEADER_BYTES + len(structure) + len(meta)) % _ALIGNMENT)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = file.name
            file.write(bytes(_HEADER_BYTES) + structure + meta)
            start = _HEADER_BYTES + len(structure) + len(meta)
            for offset, array in constants:
                file.seek(start + offset)
                file.write(array.data)
            file.truncate(start + data_bytes)
            file.flush()
            sections = (
                _Section(_HEADER_BYTES, len(structure), _core.bytes_hash(structure)),
                _Section(_HEADER_BYTES + len(structure), len(meta), _core.bytes_hash(meta)),
                _Section(start, data_bytes, _core.file_hash(temporary, start)),
            )
            header = _HEADER.pack(_MAGIC, _FORMAT, *sections[0], *sections[1], *sections[2])
            file.seek(0)
            file.write(header + _HASH.pack(_core.bytes_hash(header)))
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise GraphError(f"[save] cannot write '{target}': {error.strerror or error}; choose another path") from None
    except BaseException:
        _remove(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _remove(path: str | None) -> None:
    if path is not None:
        Path(path).unlink(missing_ok=True)


def _describe(core: _core.Executable, setup: Setup, folder: Path) -> dict[str, Any]:
    source = None
    if setup.files:
        own = Path(os.path.abspath(setup.files[0].path))
        # External data lies in the model's folder, which may be reached through a link.
        bases = [own.parent, own.parent.resolve()]
        entries = []
        for file in [file.hashed() for file in setup.files]:
            base = next((b for b in bases if file.path.is_absolute() and file.path.is_relative_to(b)), None)
            entries.append(
                {
                    "path": str(file.path.relative_to(base)) if base else file.path.name,
                    "hash": file.hash,
                    "stamp": file.stamp,
                    "settled": file.is_settled,
                }
            )
        source = {"path": os.path.relpath(own, folder), "files": entries}
    return {
        "schema": _SCHEMA,
        "version": __version__,
        "build": _core.build_info(),
        "device": setup.device,
        "mode": setup.mode,
        "threads": setup.threads,
        "options": None if setup.options is None else asdict(setup.options),
        "source": source,
        "kinds": setup.kinds,
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

    Raises
    ------
    GraphError
        Where there is no such file, or it cannot be used and its model is not found unchanged and not given.
    """
    place = Path(os.path.abspath(os.fsdecode(path)))
    given = {"device": device, "mode": mode, "threads": threads, "options": options}
    changes = {name: value for name, value in given.items() if value is not None}
    saved = None
    try:
        saved = _open(place)
        _check(saved, model)
        exe = _restore(saved, changes)
    except _UnusableError as reason:
        exe = _rebuild(place, saved, model, str(reason), changes)
    if warm and saved is not None:
        warm_again(exe._core, exe.inputs, saved.meta["shapes"])
    return exe


def _open(path: Path) -> _Saved:
    """Read and check everything but the graph."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEADER_BYTES)
            structure, meta, data = _sections(head, os.fstat(file.fileno()).st_size)
            file.seek(meta.offset)
            raw = file.read(meta.bytes)
    except OSError as error:
        raise GraphError(f"[load] cannot read '{path}': {error.strerror or error}; save an executable there") from None
    if len(raw) != meta.bytes or _core.bytes_hash(raw) != meta.hash:
        raise _UnusableError("the file is damaged: its description does not fit the checksum")
    try:
        saved = _Saved(path, structure, data, json.loads(raw))
        _check_meta(saved.meta)
        saved.setup  # noqa: B018
    except (AscendSchedError, AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        raise _UnusableError("its description is not one that this version reads") from None
    return saved


def _sections(head: bytes, size: int) -> tuple[_Section, _Section, _Section]:
    if head[: len(_MAGIC)] != _MAGIC:
        raise _UnusableError("it is not a saved executable, or its first bytes are damaged")
    if len(head) < _HEADER_BYTES or _HASH.unpack(head[_HEADER.size :])[0] != _core.bytes_hash(head[: _HEADER.size]):
        raise _UnusableError("the file is damaged: its header does not fit the checksum")
    _, version, *numbers = _HEADER.unpack(head[: _HEADER.size])
    if version != _FORMAT:
        raise _UnusableError(f"it has format {version}, this version reads {_FORMAT}")
    structure, meta, data = (_Section(*numbers[i : i + 3]) for i in (0, 3, 6))
    if meta.offset + meta.bytes != data.offset or data.offset + data.bytes != size:
        raise _UnusableError(f"the file is truncated or damaged: {size} bytes instead of {data.offset + data.bytes}")
    return structure, meta, data


def _check_meta(meta: Any) -> None:
    """Raise any of the errors that `_open` takes for damage."""
    kinds = {"schema": str, "version": str, "build": dict, "device": str, "mode": str, "shapes": list}
    if not all(isinstance(meta[key], kind) for key, kind in kinds.items()) or meta["schema"] != _SCHEMA:
        raise ValueError
    if not all(isinstance(kind, str) for kind in meta["kinds"].values()):
        raise TypeError
    if meta["source"] is not None:
        if not meta["source"]["files"]:
            raise ValueError
        for entry in meta["source"]["files"]:
            if not (isinstance(entry["path"], str) and isinstance(entry["hash"], str)):
                raise TypeError
    check_shapes(meta["shapes"])


def _check(saved: _Saved, model: Model | None) -> None:
    """Refuse a file of another version, build or model."""
    if saved.meta["version"] != __version__:
        raise _UnusableError(f"it was saved by version {saved.meta['version']}, this is {__version__}")
    now = _core.build_info()
    for name in sorted(now.keys() | saved.meta["build"].keys()):
        if now.get(name) != saved.meta["build"].get(name):
            raise _UnusableError(
                f"it was saved with {name} {saved.meta['build'].get(name)}, here it is {now.get(name)}"
            )
    if model is None:
        own = saved.model_path
        if own is None or not os.path.isfile(own):
            return
        difference = saved.difference()
    elif isinstance(model, (str, os.PathLike)):
        difference = saved.difference(Path(os.path.abspath(os.fsdecode(model))))
    else:
        difference = "the given model lies in memory, and cannot be compared with the saved one"
    if difference:
        raise _UnusableError(difference)


def _restore(saved: _Saved, changes: dict[str, Any]) -> Executable:
    try:
        graph = _core.map_graph(str(saved.path), saved.structure, saved.data)
        return build(graph, replace(saved.setup, **changes) if changes else saved.setup)
    except (GraphError, PlanError, UnsupportedError, UnicodeDecodeError) as error:
        raise _UnusableError(str(error)) from None


def _rebuild(
    place: Path, saved: _Saved | None, model: Model | None, reason: str, changes: dict[str, Any]
) -> Executable:
    if model is None:
        model = saved.model_path if saved is not None else None
        difference = saved.difference() if saved is not None and model is not None else None
        if model is None or difference:
            found = difference if difference and difference != reason else None
            raise GraphError(
                f"[load] '{place}' is not used: {reason}{'; ' + found if found else ''}; pass model= to build it anew, "
                f"or {_NOT_IN_USE}"
            )
    _LOG.warning("[load] '%s' is not used: %s; compiling the model instead, save it again", place, reason)
    setup = replace(saved.setup if saved is not None else Setup("cpu", "auto", None, None), **changes)
    return compile(model, setup.device, setup.mode, setup.threads, setup.options)
