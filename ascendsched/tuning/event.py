"""A setting that was changed while an executable ran."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """What was changed ("tiling", "schedule": bytes of a cache; "workers": threads), and why."""

    what: str
    before: int
    after: int
    why: str
