"""The catalogue of real models that benchmarks take where it is there: a file with ``names()`` and ``load(name)``.

``MODEL_CATALOGUE`` names it; by default it lies beside the project.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CATALOGUE = Path(os.environ.get("MODEL_CATALOGUE", Path(__file__).parents[2] / "shared" / "models" / "catalog.py"))
MISSING = "no catalogue of models: set MODEL_CATALOGUE to its catalog.py"

Load = Callable[[], tuple[str, list[dict[str, Any]]]]


def catalogue_models() -> list[tuple[str, Load]]:
    """Names, and what returns a model's path and inputs or raises FileNotFoundError; empty without a catalogue."""
    if not CATALOGUE.is_file():
        return []
    spec = importlib.util.spec_from_file_location("model_catalogue", CATALOGUE)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {CATALOGUE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_catalogue"] = module
    spec.loader.exec_module(module)
    return [(name, lambda name=name: module.load(name)) for name in module.names()]
