"""PyTorch profiler (Kineto) traces of CUDA and ROCm devices, of any version that writes Chrome trace JSON."""

from __future__ import annotations

import re
from typing import Any

from ascendsched.profile.importers.builder import RankBuilder
from ascendsched.profile.importers.events import NO_ARGS, Args, Document, Event, interval_of
from ascendsched.profile.importers.files import redact
from ascendsched.profile.importers.stages import is_graph_launch, kind_of_kernel, stage_of_call
from ascendsched.profile.timeline import COPY, KERNEL, MEMSET, STAGE_NUMBER, Rank

# Category, as versions of the profiler spell it (in lower case) -> kind of device entry.
DEVICE_KINDS = {
    "kernel": KERNEL,
    "gpu_op": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": MEMSET,
    "memset": MEMSET,
}
RUNTIME = {"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime", "driver", "xpu_runtime", "xpu_driver"}
RUNTIME |= {"mtia_runtime", "privateuse1_runtime", "privateuse1_driver"}
HOST_CATEGORIES = {
    "cpu_op": STAGE_NUMBER["framework"],
    "operator": STAGE_NUMBER["framework"],
    "python_function": STAGE_NUMBER["python"],
    "user_annotation": STAGE_NUMBER["annotation"],
    "overhead": STAGE_NUMBER["profiler"],
}
# Of the messages that the profiler keeps in its trace, those about lost records.
LOSS = re.compile(r"drop|lost|overflow|exceed|out of memory|discard|truncat", re.IGNORECASE)
MAX_NOTES, MAX_NOTE = 3, 160
CATEGORIES = {*DEVICE_KINDS, *RUNTIME, *HOST_CATEGORIES}


def is_kineto(document: Document) -> bool:
    """Whether the first events with a category are ones that Kineto writes."""
    return any(event.cat is not None and event.cat.lower() in CATEGORIES for event in document.events)


def read_kineto(document: Document, source: str) -> Rank:
    """Reads one trace: one process with its devices."""
    builder = RankBuilder(source, "unknown")
    builder.dropped = document.malformed
    offset = document.base_ns if isinstance(document.base_ns, int) and 0 < document.base_ns < 1 << 61 else 0
    calls: list[str] = []
    for event in document.events:
        if event.ph != "X" or event.cat is None:
            if event.ph == "M":
                _name_thread(builder, event)
            continue
        category = event.cat.lower()
        kind = DEVICE_KINDS.get(category)
        is_call = category in RUNTIME
        if kind is None and not is_call and category not in HOST_CATEGORIES:
            continue
        interval = interval_of(event)
        if interval is None or event.name is None:
            builder.dropped += 1
            continue
        start, end = interval[0] + offset, interval[1] + offset
        args = event.args or NO_ARGS
        if kind is not None:
            _add_entry(builder, event, args, kind, start, end)
        elif is_call:
            _add_call(builder, event, args, start, end)
            calls.append(event.name)
        else:
            _add_span(builder, event, args, HOST_CATEGORIES[category], start, end)
    _describe(builder, document, calls)
    return builder.build()


def _correlation(args: Args) -> int | str | None:
    value = args.correlation  # counted from 1: 0 and below say that there is none
    return value if isinstance(value, str) or (isinstance(value, int) and value > 0) else None


def _whole(value: Any, otherwise: Any) -> int:
    """A device or stream number; where a file has none, it is taken from `otherwise`, else 0."""
    for candidate in (value, otherwise):
        if isinstance(candidate, int) and abs(candidate) < 1 << 62:
            return candidate
        if isinstance(candidate, str) and len(candidate) < 19 and candidate.strip().lstrip("-").isdecimal():
            return int(candidate)
    return 0


def _add_entry(builder: RankBuilder, event: Event, args: Args, kind: int, start: int, end: int) -> None:
    name = event.name or ""
    if kind == KERNEL:
        kind = kind_of_kernel(name)
    device, stream = _whole(args.device, event.pid), _whole(args.stream, event.tid)
    key = builder.key(_correlation(args))
    builder.entries.append((start, end, kind, device, stream, builder.name(name), key))


def _add_call(builder: RankBuilder, event: Event, args: Args, start: int, end: int) -> None:
    name = event.name or ""
    thread, number = builder.thread((event.pid, event.tid)), builder.name(name)
    key = builder.key(_correlation(args))
    if key >= 0:
        builder.launches.append((start, end, thread, number, key, is_graph_launch(name)))
    builder.spans.append((start, end, thread, stage_of_call(name), number, -1))


def _add_span(builder: RankBuilder, event: Event, args: Args, stage: int, start: int, end: int) -> None:
    name = event.name or ""
    stack = args.call_stack
    thread = builder.thread((event.pid, event.tid))
    number = builder.name(stack) if isinstance(stack, str) and stack else -1
    builder.spans.append((start, end, thread, stage, builder.name(name), number))
    if name.startswith("ProfilerStep"):
        builder.step(name, start, end)


def _name_thread(builder: RankBuilder, event: Event) -> None:
    if event.name == "thread_name" and event.args is not None and isinstance(event.args.name, str):
        builder.thread_names[(event.pid, event.tid)] = event.args.name.strip()


def _losses(document: Document) -> list[str]:
    """What the profiler itself said about records that it lost."""
    lists = [given for given in (document.warnings, document.errors) if isinstance(given, list)]
    texts = [redact(text)[:MAX_NOTE] for given in lists for text in given if isinstance(text, str)]
    return [text for text in texts if LOSS.search(text)][:MAX_NOTES]


def _describe(builder: RankBuilder, document: Document, calls: list[str]) -> None:
    first = {name[:3] for name in calls[:64]}
    is_rocm = "hip" in first or document.hip_version is not None or document.roctracer_version is not None
    if is_rocm:
        builder.system = "rocm"
    elif builder.entries or calls:
        builder.system = "cuda"
    if isinstance(document.distributed, dict):
        rank, world = document.distributed.get("rank"), document.distributed.get("world_size")
        builder.number = rank if isinstance(rank, int) and 0 <= rank < 1 << 31 else None
        builder.extra["world_size"] = world if isinstance(world, int) else None
    builder.notes += [f"the profiler reported: {text}" for text in _losses(document)]
    # Runtime calls are in every trace that has device entries: what is absent was not called.
    builder.recorded |= {"launch", "sync", "alloc"} if calls else set()
    builder.extra["has_stacks"] = bool(document.with_stack) or any(s[3] == 1 for s in builder.spans)
