"""Cost profiles: what a device and its host take for each thing they do, every figure with its source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import msgspec

from ascendsched.bounded import SETTINGS_BYTES, read_bytes
from ascendsched.errors import AscendSchedError

SCHEMA = "ascendsched.cost_profile/1"


class Figure(msgspec.Struct, forbid_unknown_fields=True):
    """A figure, the range in which it plausibly lies, and where it comes from."""

    value: float
    source: str
    low: float | None = None
    high: float | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    description: str
    host: dict[str, Figure]
    device: dict[str, Figure]
    jitter: list[tuple[float, float]]
    jitter_source: str


#: Per task of host mode in us: what comes before the stages (the framework's dispatch), and the stages.
HOST = (
    "framework_us",  # per task, outside the stages
    "run_us",  # per run, in every mode
    "infer_shape_us",
    "tiling_us",  # made anew
    "tiling_hit_us",  # found in the cache
    "alloc_us",
    "launch_us",
    "submit_us",  # a chain's one trigger
    "sync_us",  # from the end of the device's work to the host's next step
    "handover_us",  # between the workers of the pipeline
)
DEVICE = (
    "matrix_tflops",  # float16
    "matrix_int8_tops",
    "vector_tflops",
    "memory_gbps",
    "matrix_efficiency",
    "memory_efficiency",
    "kernel_us",  # the least that any kernel takes
    "queued_gap_us",  # between tasks of a stream that are queued
    "chain_gap_us",  # between tasks of a chain
    "latency_us",  # from the end of a launch to the start of its kernel on an idle device
    "queue_depth",
    "link_gbps",
    "collective_us",  # latency of one hop
)


@dataclass(frozen=True)
class CostProfile:
    """Costs by the names in `HOST` and `DEVICE`.

    Attributes
    ----------
    name, description : str
        What it describes.
    costs : dict
        Value by name.
    ranges : dict
        (low, high) by name; equal to the value where nothing is known.
    sources : dict
        Where each figure comes from.
    jitter : tuple of (float, float)
        Of a host stage's time over its median: (share of the stages, the factor that so many stay below), rising.
    """

    name: str
    description: str
    costs: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    sources: dict[str, str]
    jitter: tuple[tuple[float, float], ...]

    def ns(self, name: str) -> int:
        """A cost given in microseconds, in whole nanoseconds."""
        return round(self.costs[name] * 1000)

    def replaced(self, **costs: float) -> CostProfile:
        """The same with other figures."""
        unknown = set(costs) - set(self.costs)
        if unknown:
            raise AscendSchedError(f"[simulate] unknown costs {sorted(unknown)}; known are {', '.join(self.costs)}")
        for name, value in costs.items():
            _check(self.name, name, value)
        return CostProfile(self.name, self.description, {**self.costs, **costs}, self.ranges, self.sources, self.jitter)


def profile_names() -> list[str]:
    """The profiles that come with the package."""
    folder = resources.files("ascendsched.sim") / "profiles"
    return sorted(entry.name[: -len(".json")] for entry in folder.iterdir() if entry.name.endswith(".json"))


def load_profile(name: str) -> CostProfile:
    """Reads a profile by its name, or from a file.

    Raises
    ------
    AscendSchedError
        Where there is none of that name, or the file is not one.
    """
    known = profile_names()
    if name in known:
        data = (resources.files("ascendsched.sim") / "profiles" / f"{name}.json").read_bytes()
        return parse_profile(name, data)
    path = Path(name)
    try:
        data = read_bytes(path, SETTINGS_BYTES)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        choices = f"known are {', '.join(known)}, or pass a profile's file"
        raise AscendSchedError(f"[simulate] no device '{name[:80]}': {why}; {choices}") from None
    return parse_profile(path.stem, data)


def parse_profile(name: str, data: bytes) -> CostProfile:
    """Reads a profile from JSON; raises `AscendSchedError` where it is not one."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AscendSchedError(f"[simulate] {name}: no cost profile ({error}); see docs/guide/simulating.md") from None
    if file.schema != SCHEMA:
        raise AscendSchedError(f"[simulate] {name}: schema {file.schema!r}, this version reads {SCHEMA!r}")
    for side, names, figures in (("host", HOST, file.host), ("device", DEVICE, file.device)):
        if set(figures) != set(names):
            wrong = sorted(set(figures) ^ set(names))
            raise AscendSchedError(
                f"[simulate] {name}: {side} lacks or does not know {wrong}; it has {', '.join(names)}"
            )
    figures = {**file.host, **file.device}
    costs = {key: figure.value for key, figure in figures.items()}
    for key, figure in figures.items():
        for value in (figure.value, figure.low, figure.high):
            if value is not None:
                _check(name, key, value)
    _check_jitter(name, file.jitter)
    ranges = {
        key: (
            figure.value if figure.low is None else figure.low,
            figure.value if figure.high is None else figure.high,
        )
        for key, figure in figures.items()
    }
    sources = {key: figure.source for key, figure in figures.items()}
    return CostProfile(name, file.description, costs, ranges, sources, tuple(file.jitter))


def profile_bytes(profile: CostProfile) -> bytes:
    """The profile as its file."""

    def side(names: tuple[str, ...]) -> dict[str, Figure]:
        return {name: Figure(profile.costs[name], profile.sources[name], *profile.ranges[name]) for name in names}

    file = _File(SCHEMA, profile.description, side(HOST), side(DEVICE), list(profile.jitter), "as calibrated")
    return msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"


def _check_jitter(profile: str, jitter: list[tuple[float, float]]) -> None:
    shares, factors = [share for share, _ in jitter], [factor for _, factor in jitter]
    is_rising = sorted(shares) == shares and sorted(factors) == factors
    if (
        len(jitter) < 2
        or shares[0] != 0
        or shares[-1] != 1
        or not is_rising
        or not 0 < factors[0] <= factors[-1] <= 1e6
    ):
        raise AscendSchedError(
            f"[simulate] {profile}: jitter is {jitter}; give (share, factor) from share 0 to share 1, both rising"
        )


def _check(profile: str, name: str, value: float) -> None:
    is_rate = name in DEVICE and not name.endswith("_us")
    if not math.isfinite(value) or value < 0 or value > 1e9 or (is_rate and value <= 0):
        raise AscendSchedError(f"[simulate] {profile}: {name} is {value}; give a figure above 0, at most 1e9")
    if name == "queue_depth" and value < 1:
        raise AscendSchedError(f"[simulate] {profile}: queue_depth is {value}; a stream holds 1 task or more")
    if name.endswith("_efficiency") and value > 1:
        raise AscendSchedError(f"[simulate] {profile}: {name} is {value}; it is a share, at most 1")
