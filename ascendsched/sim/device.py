"""The device "sim" as users name it: a cost profile, with figures of theirs in place of some of its own."""

from __future__ import annotations

from ascendsched.errors import AscendSchedError, DeviceError
from ascendsched.sim.cost_profile import CostProfile, load_profile

DEFAULT = "ascend-910b"
#: What the core takes besides costs.
SETTINGS = ("float_bytes", "workers")
# Costs of clusters, which the device does not simulate.
CLUSTER = ("link_gbps", "collective_us")


def sim_device(profile: CostProfile, float_bytes: float = 4, workers: float = 0) -> str:
    """The device's name as the core reads it."""
    costs = {name: value for name, value in profile.costs.items() if name not in CLUSTER}
    settings = {**costs, "float_bytes": float_bytes, "workers": workers}
    return "sim:" + ",".join(f"{name}={value!r}" for name, value in settings.items())


def resolve_device(device: str, workers: int) -> str:
    """Completes "sim", "sim:PROFILE" or "sim:PROFILE,launch_us=5" with the profile's costs.

    Parameters
    ----------
    device : str
        PROFILE is the name of a cost profile or its file; left out, it is that of an Ascend 910B.
    workers : int
        Threads that make tilings, of the pipeline that is simulated; 0 or less: one thread does all.

    Raises
    ------
    DeviceError
        For an unknown profile, or an option that is not understood.
    """
    name, *options = device.partition(":")[2].split(",")
    if "=" in name:
        name, options = "", [name, *options]
    given: dict[str, float] = {}
    for option in options:
        key, _, text = option.partition("=")
        try:
            given[key] = float(text)
        except ValueError:
            raise DeviceError(
                f"[device] sim: option {option!r} is not understood; write sim:{DEFAULT},launch_us=4"
            ) from None
    settings = {key: given.pop(key) for key in SETTINGS if key in given}
    try:
        profile = load_profile(name or DEFAULT).replaced(**given)
    except AscendSchedError as error:
        raise DeviceError(f"[device] sim: {error}") from None
    return sim_device(profile, settings.get("float_bytes", 4), settings.get("workers", max(0, workers)))
