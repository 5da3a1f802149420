"""Which stage of the host's work a call of a vendor's runtime is, and what kind of work a device entry is, by name."""

from __future__ import annotations

import re
from functools import lru_cache

from ascendsched.profile.timeline import COMMUNICATION, KERNEL, STAGE_NUMBER

# The first pattern that matches decides.
_RUNTIME = (
    ("sync", r"synchroni[sz]e|^(cuda|hip|aclrt)Memcpy(?!.*Async)|^cuMemcpy(?!.*Async)"),
    ("launch", r"launch|^cudaMemcpy|^hipMemcpy|^cudaMemset|^hipMemset|^cuMemcpy|^cuMemset|aclrtMemcpyAsync|^Enqueue"),
    ("compile", r"ModuleLoad|LibraryLoad|LinkCreate|GetProcAddress|hiprtc|nvrtc|compile|GraphInstantiate|aclmdlLoad"),
    ("tiling", r"tiling|GetWorkspaceSize"),
    ("infer_shape", r"infer_?shape"),
    ("alloc", r"malloc|(?<!Event)(?<!Desc)free(?!ze)|HostAlloc|MemAddressReserve|MemCreate|MemMap|MemSetAccess|Unmap"),
)
RUNTIME_STAGES = tuple((STAGE_NUMBER[name], re.compile(pattern, re.IGNORECASE)) for name, pattern in _RUNTIME)

GRAPH_LAUNCH = re.compile(r"GraphLaunch|aclmdlExecute|aclmdlRIExecute|ModelExecute", re.IGNORECASE)

COLLECTIVE = re.compile(
    r"nccl(?!.*memcpy)|rccl|hccl|hcom_|mscclpp|nvshmem|oneshot|twoshot|"
    r"(cross_device|one_?shot|two_?shot|multimem)_?(all_?)?reduce|all_?reduce_?(kernel|sum)|deep_?ep",
    re.IGNORECASE,
)


@lru_cache(maxsize=65536)
def stage_of_call(name: str) -> int:
    """Stage of a runtime or driver call; "framework" where its name says nothing."""
    return next((stage for stage, pattern in RUNTIME_STAGES if pattern.search(name)), STAGE_NUMBER["framework"])


@lru_cache(maxsize=65536)
def is_graph_launch(name: str) -> bool:
    """Whether one such call starts a captured graph or a loaded model."""
    return GRAPH_LAUNCH.search(name) is not None


@lru_cache(maxsize=65536)
def kind_of_kernel(name: str) -> int:
    """COMMUNICATION for a kernel of a collective, else KERNEL."""
    return COMMUNICATION if COLLECTIVE.search(name) else KERNEL
