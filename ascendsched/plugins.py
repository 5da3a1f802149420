"""Devices in C: from capsules, or from packages that announce them under the entry point group ``ascendsched.devices``.

Experimental: the interface (``ascendsched/device.h``) may change until a real accelerator uses it.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ascendsched.errors import DeviceError, DeviceUnavailableError
from ascendsched.native import core as _core

GROUP = "ascendsched.devices"

_OURS = ("cpu", "null", "timed")
_loaded: set[str] = set()


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


def announced() -> list[str]:
    """Names of the devices that packages announce, whether they can be loaded or not."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


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
