"""What an Ascend device task is, by the type and name that any of the vendor's exports gives it."""

from __future__ import annotations

import re
from functools import lru_cache

from ascendsched.profile.timeline import COPY, KERNEL, MEMSET, WAIT

_WAITS = re.compile(r"WAIT|RECORD|NOTIFY|PLACE_?HOLDER|PROFILING|WRITE.?VALUE|BARRIER|LABEL|MAINTENANCE|DEBUG")
_COPIES = re.compile(r"MEMCPY|PCIE_DMA|DMU")
_COMPUTE = re.compile(r"AI_?CORE|AI_?VEC|AIV|AIC|MIX|DSA|AI_?CPU|FFTS|DVPP|FUSION|CUBE|VECTOR")


@lru_cache(maxsize=65536)
def kind_of_task(task_type: str, name: str) -> int:
    """Kind of a task: kernels run on AI Core, vector core, AI CPU or DSA; events and notifications are waits.

    The SDMA tasks of a collective are waits too: its own row says when it communicated.
    """
    kind, label = task_type.upper(), name.upper()
    if _WAITS.search(kind) or _WAITS.fullmatch(label) or label.startswith(("EVENT_", "NOTIFY")):
        return WAIT
    if _COPIES.search(kind) or label.startswith("MEMCPY"):
        return COPY
    if label.startswith("MEMSET"):
        return MEMSET
    if not kind or kind == "N/A" or _COMPUTE.search(kind):
        return KERNEL
    return WAIT
