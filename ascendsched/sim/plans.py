"""Tasks of a model as the compiler and the resolver make them, without its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

import ascendsched as asc
from ascendsched.errors import OutOfMemoryError
from ascendsched.sim.models import Model
from ascendsched.tasks import Task


def plan_tasks(model: Model) -> list[Task]:
    """Compiles the model and resolves it once, on the device whose kernels do nothing; its tasks in launch order."""
    executable = asc.compile(model.graph, device="null", mode="host")
    executable.run(shared_feeds(model, executable))
    return executable.tasks()


def shared_feeds(model: Model, executable: asc.Executable) -> dict[str, Any]:
    """Inputs that share one block of memory per element type: kernels that do nothing read none of it."""
    most: dict[str, int] = {}
    for info in executable.inputs:
        count = int(np.prod(model.shapes[info.name], dtype=np.int64))
        most[info.dtype] = max(count, most.get(info.dtype, 0))
    try:
        blocks = {dtype: np.zeros(count, dtype) for dtype, count in most.items()}
    except MemoryError as error:
        raise OutOfMemoryError(f"[simulate] {model.name}: {error}; give a smaller batch or context") from None
    feeds = {}
    for info in executable.inputs:
        shape = model.shapes[info.name]
        feeds[info.name] = blocks[info.dtype][: int(np.prod(shape, dtype=np.int64))].reshape(shape)
    return feeds
