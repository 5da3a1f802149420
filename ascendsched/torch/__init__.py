"""The back end of ``torch.compile``: ``torch.compile(model, backend="ascendsched")``."""

from ascendsched.torch.backend import backend
from ascendsched.torch.counters import reset, stats

__all__ = ["backend", "reset", "stats"]
