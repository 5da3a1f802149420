"""What devices there are: ours, and those in C of packages, which announce them under the entry point group
``ascendsched.devices``, or hand them over in capsules.

Experimental: the interface of the latter (``ascendsched/device.h``) may change until a real accelerator uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascendsched.errors import DeviceError, DeviceUnavailableError
from ascendsched.native import core as _core
from ascendsched.options import default_threads

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "ascendsched.devices"

_OURS = ("cpu", "null", "sim", "timed")
_loaded: set[str] = set()


@dataclass(frozen=True)
class DeviceInfo:
    """A device that `compile` accepts.

    Attributes
    ----------
    name : str
        What `compile` takes as `device`.
    description : str
        One line, or why the device cannot be used.
    """

    name: str
    description: str


def register(capsule: Any) -> str:
    """Makes a device in C known.

    Parameters
    ----------
    capsule
        A capsule named "ascendsched.device" around an ``asc_device``. It is kept for the life of the process.

    Returns
    -------
    str
        The device's name, for `compile`.

    Raises
    ------
    DeviceError
        For another object, another version of the interface, a device that lacks a function, or a second device of the
        same name.
    """
    return _core.register_device(capsule)


def entry_points(group: str, name: str | None = None) -> EntryPoints:
    """What installed packages announce; the module that reads it takes longer to import than this package."""
    from importlib import metadata

    return metadata.entry_points(group=group) if name is None else metadata.entry_points(group=group, name=name)


def load(device: str) -> None:
    """Registers what packages announce for a device, where that has not happened; `device` may have options.

    Raises
    ------
    DeviceUnavailableError
        Where a package fails to load.
    DeviceError
        Where two packages announce devices of this name, or a package's device is refused.
    """
    name = device.partition(":")[0]
    if name in _OURS or name in _loaded:
        return
    entries = list(entry_points(group=GROUP, name=name))
    if len({entry.value for entry in entries}) > 1:
        values = " and ".join(sorted(f"'{entry.value}'" for entry in entries))
        raise DeviceError(f"[device] two packages announce '{name}': {values}; remove one of them")
    for entry in entries[:1]:
        _load(name, entry)
    _loaded.add(name)
    if not entries:
        devices()  # so that the core, which refuses the name, can list those of packages


def devices() -> list[DeviceInfo]:
    """The devices that `compile` accepts, those of installed packages included.

    A package whose device cannot be loaded is listed with the reason in place of a description.
    """
    refused = []
    for name in sorted({entry.name for entry in entry_points(group=GROUP)}):
        try:
            load(name)
        except DeviceError as error:
            refused.append(DeviceInfo(name, f"not available: {error}"))
    known = [DeviceInfo(name, description) for name, description in _core.devices(default_threads())]
    return known + [info for info in refused if info.name not in {device.name for device in known}]


def _load(name: str, entry: EntryPoint) -> None:
    try:
        names = [register(capsule) for capsule in entry.load()()]
    except DeviceError as error:
        raise DeviceError(f"[device] package entry point '{entry.value}': {error}") from error
    except Exception as error:  # whatever a package's own code raises
        raise DeviceUnavailableError(
            f"[device] package entry point '{entry.value}' for '{name}' failed: {type(error).__name__}: {error}; "
            "repair or remove the package"
        ) from error
    if name not in names:
        raise DeviceError(f"[device] package entry point '{entry.value}' gives {names}, not '{name}'; correct its name")
