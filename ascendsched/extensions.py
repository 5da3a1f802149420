"""Operators in C: from capsules, or from packages that announce them under the entry point group ``ascendsched.ops``.

Experimental: the interface (``ascendsched/operator.h``) may change until a second device uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ascendsched.errors import AscendSchedError, GraphError, PlanError
from ascendsched.native import core as _core

GROUP = "ascendsched.ops"

_known: dict[str, tuple[int, int]] = {}  # number in the core, number of results
_loaded: set[str] = set()


def get_include() -> str:
    """The folder of ``ascendsched/operator.h`` and ``ascendsched/device.h``, and of ``ascendsched_operator.pxd``."""
    return str(Path(__file__).resolve().parent / "include")


def register(capsule: Any) -> str:
    """Makes an operator in C known.

    Parameters
    ----------
    capsule
        A capsule named "ascendsched.operator" around an ``asc_operator``. It is kept for the life of the process.

    Returns
    -------
    str
        The operator's name. A second operator of a name replaces the first for models compiled later.

    Raises
    ------
    PlanError
        For another object, another version of the interface, or an operator that lacks a function.
    """
    name, number, outputs = _core.register_operator(capsule)
    _known[name] = (number, outputs)
    return name


def find(name: str, outputs: int, attributes: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """As `ascendsched.operators.find`, for operators in C."""
    if name not in _known:
        _load(name.partition("::")[0])
    if name not in _known:
        return None
    number, count = _known[name]
    if outputs != count:
        raise GraphError(f"[op] {name} has {count} results, the node has {outputs}; correct the model")
    if taken := {"extension", "extension_number"} & attributes.keys():
        raise GraphError(f"[op] {name}: attributes {sorted(taken)} are our own; use other names")
    return "Extension", {**attributes, "extension": name, "extension_number": number}


def _load(domain: str) -> None:
    """Loads what packages announce for a domain: a function that returns capsules."""
    if domain in _loaded:
        return
    for entry in entry_points(group=GROUP, name=domain):
        try:
            for capsule in entry.load()():
                register(capsule)
        except AscendSchedError as error:
            raise PlanError(f"[op] package entry point '{entry.value}': {error}") from error
        except Exception as error:  # whatever a package's own code raises
            raise PlanError(
                f"[op] package entry point '{entry.value}' for '{domain}' failed: {type(error).__name__}: {error}; "
                "repair or remove the package"
            ) from error
    _loaded.add(domain)
