"""Modes side by side on one simulated device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ascendsched.profile.verdict import judge
from ascendsched.sim.cost_profile import CostProfile
from ascendsched.sim.engine import MODES, Mode, Simulation, simulate
from ascendsched.sim.models import BUILDERS, Model, build_model
from ascendsched.sim.plans import plan_tasks
from ascendsched.sim.workload import Workload, make_workload
from ascendsched.tasks import Task

STEPS = 3
# One node of eight devices shares a layer; more ranks hold copies and meet in the same collectives.
MAX_SHARDS = 8


@dataclass(frozen=True)
class Row:
    """One mode: a step in ms, items per second of the whole job, the device's and the host's shares, the verdict."""

    mode: str
    step_ms: float
    per_second: float
    idle_pct: float
    host_pct: float
    verdict: str


def shards_for(model: str, ranks: int) -> int:
    """Ranks that share one layer of a model: decoders are divided among up to eight."""
    is_decoder = model.startswith(("llama", "decoder"))
    return 1 << (min(ranks, MAX_SHARDS).bit_length() - 1) if is_decoder else 1


class Subject:
    """A model on a simulated device; what was compiled is kept per number of shards."""

    def __init__(self, name: str, profile: CostProfile, batch: int = 1, context: int = 1024) -> None:
        self.name, self.profile, self.batch, self.context = name, profile, batch, context
        self._plans: dict[int, tuple[Model, list[Task]]] = {}
        if name not in BUILDERS:
            build_model(name)  # raises

    def plan(self, ranks: int) -> tuple[Model, list[Task]]:
        """The model and its tasks as one of so many ranks runs them."""
        shards = shards_for(self.name, ranks)
        if shards not in self._plans:
            model = build_model(self.name, self.batch, self.context, shards)
            self._plans[shards] = (model, plan_tasks(model))
        return self._plans[shards]

    def on(self, profile: CostProfile) -> Subject:
        """The same model on another device; what was compiled is shared."""
        other = Subject(self.name, profile, self.batch, self.context)
        other._plans = self._plans
        return other

    def workload(self, ranks: int = 1, profile: CostProfile | None = None) -> Workload:
        """The workload of one rank."""
        model, tasks = self.plan(ranks)
        return make_workload(tasks, profile or self.profile, model.float_bytes, ranks)

    def items(self, ranks: int) -> int:
        """What all ranks produce together in one step."""
        return self.plan(ranks)[0].items * max(1, ranks // shards_for(self.name, ranks))


def run_mode(subject: Subject, mode: Mode, ranks: int = 1, profile: CostProfile | None = None) -> Simulation:
    """Simulates one mode and records rank 0; with several ranks, hosts vary by the profile's jitter."""
    chosen = profile or subject.profile
    work = subject.workload(ranks, chosen)
    return simulate(work, chosen, mode, steps=STEPS, ranks=ranks, seed=0 if ranks > 1 else None, records=True)


def make_row(subject: Subject, mode: Mode, simulation: Simulation, ranks: int = 1) -> Row:
    """What the last step of a simulation comes to."""
    step = float(simulation.step_ns[-1].max())
    recording = simulation.recording
    return Row(
        mode.name,
        step / 1e6,
        subject.items(ranks) * 1e9 / step,
        100 * max(0.0, 1 - float(simulation.device_ns[-1].mean()) / step),
        100 * float(simulation.host_ns[-1].mean()) / step,
        "unknown" if recording is None else judge(recording).verdict,
    )


def compare_modes(
    subject: Subject, modes: Sequence[str] = tuple(MODES), ranks: int = 1, workers: int | None = None
) -> list[Row]:
    """One row per mode; `workers` widens the pipeline."""
    rows = []
    for name in modes:
        mode = MODES[name]
        if workers is not None and mode.workers:
            mode = replace(mode, workers=workers)
        rows.append(make_row(subject, mode, run_mode(subject, mode, ranks), ranks))
    return rows


def as_dicts(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows as plain data, rounded to what they mean."""
    return [{k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(row).items()} for row in rows]
