"""What the owner of a profiled system can do about its idle time, in that system's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascendsched.profile.diagnosis import Diagnosis
from ascendsched.profile.gaps import Gaps
from ascendsched.profile.timeline import STAGE_NUMBER, Rank
from ascendsched.profile.verdict import ADVICE as OWN_ADVICE

# Below this share of the window, a cause is not worth a sentence.
MIN_GAIN_PCT = 2.0
# Kernels shorter than this are shorter than what launching them one by one costs on any system.
SHORT_KERNEL_US = 20.0
TOP_CALLS = 3
STACK_DEPTH = 6


@dataclass(frozen=True)
class Advice:
    """One thing to do: why, the share of the window that it could gain at most, and how sure that is."""

    action: str
    because: str
    gain_pct: float
    confidence: str
    details: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "action": self.action,
            "because": self.because,
            "gain_pct_at_most": self.gain_pct,
            "confidence": self.confidence,
            "details": list(self.details),
        }


def advise(diagnosis: Diagnosis) -> tuple[Advice, ...]:
    """Advice for a rank, the largest possible gain first."""
    if diagnosis.device is None or diagnosis.gaps is None:
        return (_record_devices(diagnosis),)
    by_system = {"ascend": _ascend, "cuda": _gpu, "rocm": _gpu, "ascendsched": _own}
    found = [*by_system.get(diagnosis.rank.system, _gpu)(diagnosis), *_for_all(diagnosis)]
    return tuple(sorted((a for a in found if a.gain_pct >= MIN_GAIN_PCT), key=lambda advice: -advice.gain_pct))


def _record_devices(diagnosis: Diagnosis) -> Advice:
    if diagnosis.rank.system == "ascend":
        action = "record with activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]"
    else:
        action = "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], on a rank that uses a device"
    return Advice(action, "the profile holds no device activity", 0.0, "high")


def _gain(diagnosis: Diagnosis, *causes: str) -> float:
    """Share of the window that the causes take, in percent."""
    window = max(1.0, diagnosis.figures["window_us"] * 1e3)
    return 100 * sum(diagnosis.causes.get(name, 0) for name in causes) / window


def _dispatch_gain(diagnosis: Diagnosis) -> float:
    late = [name for name in diagnosis.causes if name.startswith("host_late")]
    return _gain(diagnosis, *late, "launch_in_flight")


def _calls_text(diagnosis: Diagnosis) -> str:
    figures = diagnosis.figures
    return (
        f"{figures['launch_calls']:.0f} launch calls for {figures['device_activities']:.0f} device activities, "
        f"median kernel {figures['median_kernel_us']:.1f} us"
    )


def _trust(diagnosis: Diagnosis, otherwise: str = "high") -> str:
    order = ("high", "medium", "low")
    return max(diagnosis.confidence, otherwise, key=order.index)


def _ascend(diagnosis: Diagnosis) -> Iterator[Advice]:
    gain, names = _dispatch_gain(diagnosis), diagnosis.rank.names
    has_queue = any(name.startswith("Dequeue") for name in names)
    is_short = diagnosis.figures["median_kernel_us"] < SHORT_KERNEL_US
    if not has_queue:
        action = "turn the two-level task queue on: export TASK_QUEUE_ENABLE=2 (1 keeps tiling on the main thread)"
        yield Advice(action, "no queue thread launches in this profile; " + _calls_text(diagnosis), gain, "medium")
    else:
        action = "move tiling off the main thread: export TASK_QUEUE_ENABLE=2"
        yield Advice(action, "a queue thread launches, but the device waits for it", gain, _trust(diagnosis, "medium"))
    action = "bind the dispatching threads: export CPU_AFFINITY_CONF=1 (2 binds the main threads one by one)"
    yield Advice(action, "threads that move between CPUs launch late", gain / 2, "low")
    if is_short or gain >= 10.0:
        action = (
            "compile the model to a graph (torch.compile with torchair, or NPUGraph capture); capture the sizes that "
            "occur, so that every step replays a graph"
        )
        yield Advice(action, _calls_text(diagnosis), gain, _trust(diagnosis, "medium" if not is_short else "high"))
    compile_gain = _gain(diagnosis, "compile")
    action = "avoid online compilation: torch_npu.npu.set_compile_mode(jit_compile=False), or warm up before recording"
    yield Advice(action, "operators were compiled while the device waited", compile_gain, _trust(diagnosis))
    missing = [s for s, value in diagnosis.stages_us().items() if isinstance(value, str)]
    if missing and gain >= MIN_GAIN_PCT:
        action = "collect level 1 (profiler_level=ProfilerLevel.Level1) to split the host's time by stage"
        yield Advice(action, f"not recorded: {', '.join(missing)}", MIN_GAIN_PCT, "high")


def _gpu(diagnosis: Diagnosis) -> Iterator[Advice]:
    gain = _dispatch_gain(diagnosis)
    graph = "HIP graphs" if diagnosis.rank.system == "rocm" else "CUDA graphs"
    if diagnosis.figures["graph_launches"]:
        action = f"capture more of the step in {graph}: what is launched one by one is what the device waits for"
    else:
        action = f"replay the step with {graph} (torch.cuda.graph, or torch.compile with mode='reduce-overhead')"
    is_short = diagnosis.figures["median_kernel_us"] < SHORT_KERNEL_US
    yield Advice(action, _calls_text(diagnosis), gain, _trust(diagnosis, "high" if is_short else "medium"))
    if is_short:
        action = (
            "launch fewer kernels: torch.compile fuses chains, fused optimisers update all parameters, larger batches"
        )
        yield Advice(action, _calls_text(diagnosis), gain / 2, _trust(diagnosis, "medium"))
    gain = _gain(diagnosis, "host_late.alloc")
    action = "keep the allocator from calling the driver: warm up, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    yield Advice(action, "memory was allocated while the device waited", gain, _trust(diagnosis))
    action = "load and compile kernels before the measured part: warm up every shape"
    yield Advice(action, "modules were loaded while the device waited", _gain(diagnosis, "compile"), _trust(diagnosis))


def _own(diagnosis: Diagnosis) -> Iterator[Advice]:
    for cause, text in OWN_ADVICE.items():
        because = f"{cause} takes {_gain(diagnosis, cause):.0f} % of the window"
        yield Advice(text, because, _gain(diagnosis, cause), _trust(diagnosis))


def _for_all(diagnosis: Diagnosis) -> Iterator[Advice]:
    gaps, figures = diagnosis.gaps, diagnosis.figures
    if gaps is not None and diagnosis.rank.system != "ascendsched":
        gain, details = _blocking_calls(diagnosis.rank, gaps)
        action = "remove calls that wait for the device (.item(), .cpu(), synchronize); read results later"
        yield Advice(action, "the device drained while the host waited for it", gain, _trust(diagnosis), details)
    action = "look outside the recorded operators: data loading, Python between steps, requests that come too slowly"
    yield Advice(action, "no thread was recorded doing anything", _gain(diagnosis, "no_work"), "medium")
    exposed = figures["exposed_communication_pct"]
    action = "overlap communication with computing: smaller buckets started earlier, or fewer ranks per collective"
    because = f"collectives ran alone for {exposed:.0f} % of the time; the last rank to arrive sets the pace"
    yield Advice(
        action, because, exposed, "medium", ("give the profiles of all ranks together to see which comes last",)
    )
    action = "look at what the waiting streams wait for: events between streams, copies, graph dependencies"
    gain = _gain(diagnosis, "dependency", "graph_internal")
    yield Advice(action, "the device idled although work was queued", gain, "medium")


def _blocking_calls(rank: Rank, gaps: Gaps) -> tuple[float, tuple[str, ...]]:
    """Share of the window idle behind synchronising calls, and the calls that cost most, with their stacks."""
    rows = gaps.blocking >= 0
    lost = gaps.length[rows]
    sites: Counter[str] = Counter()
    examples: dict[str, int] = {}
    for span, ns in zip(gaps.blocking[rows].tolist(), lost.tolist(), strict=True):
        name = rank.names[int(rank.host.name[span])]
        sites[name] += ns
        if ns >= lost.max(initial=0) or name not in examples:
            examples[name] = span
    details = []
    for name, ns in sites.most_common(TOP_CALLS):
        stack = stack_of(rank, examples[name])
        place = " < ".join(stack) if stack else "stack not recorded: with_stack=True"
        details.append(f"{name}: {ns / 1e3:.0f} us idle behind it, at {place}")
    return 100 * int(lost.sum()) / max(1, gaps.window_ns), tuple(details)


def stack_of(rank: Rank, span: int) -> list[str]:
    """The functions around a host span, the innermost first: Python frames, or the call stack of its operator."""
    host = rank.host
    time, thread = int(host.start[span]), int(host.thread[span])
    upto = int(np.searchsorted(host.start, time, side="right"))
    around = (host.thread[:upto] == thread) & (host.end[:upto] >= host.end[span])
    rows = np.flatnonzero(around)
    rows = rows[rows != span]
    python = rows[host.stage[rows] == STAGE_NUMBER["python"]]
    if len(python):
        return [rank.names[int(n)] for n in host.name[python[::-1][:STACK_DEPTH]]]
    stacks = rows[host.stack[rows] >= 0]
    if len(stacks):
        frames = rank.names[int(host.stack[stacks[-1]])].replace("\r\n", "\n").replace(";", "\n").split("\n")
        return [frame.strip() for frame in frames if frame.strip()][:STACK_DEPTH]
    framework = rows[host.stage[rows] == STAGE_NUMBER["framework"]]
    return [rank.names[int(n)] for n in host.name[framework[::-1][:2]]]
