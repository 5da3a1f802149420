"""The back end itself: settings, and from a graph of dynamo's to compiled calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd

from ascendsched.errors import PlanError
from ascendsched.options import Options
from ascendsched.torch.partition import compile_module

_OWN = (  # operators that are better left whole
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
    torch.ops.aten.silu.default,
    torch.ops.aten.hardswish.default,
    torch.ops.aten.hardswish_.default,
)
_MODES = ("auto", "host", "sink")


@dataclass(frozen=True)
class Settings:
    """How graphs are compiled; see `backend`."""

    mode: str = "auto"
    threads: int | None = None
    device: str = "cpu"
    options: Options | None = None


def backend(
    module: fx.GraphModule,
    example_inputs: list[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph for ``torch.compile``.

    Parameters
    ----------
    module, example_inputs
        From torch.
    mode
        torch's own presets ("reduce-overhead"…) have no meaning here and are refused; pass ``options={"mode": …}``.
    options
        ``mode`` ("auto", "host", "sink"), ``threads``, ``device`` as in `ascendsched.compile`, ``options``
        (`ascendsched.Options`).

    Raises
    ------
    PlanError
        For unknown settings.
    """
    settings = _settings(mode, options)

    def compiler(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        return compile_module(graph, settings)

    wrap = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        decompositions=_decompositions(),
        keep_inference_input_mutations=True,
    )
    return wrap(module, example_inputs)


def _settings(mode: str | None, options: Mapping[str, Any] | None) -> Settings:
    if mode is not None and mode != "default":
        raise PlanError(f"[torch] mode={mode!r} is one of inductor's; pass options={{'mode': 'auto'}} or leave it out")
    given = dict(options or {})
    known = Settings.__dataclass_fields__
    if unknown := sorted(set(given) - set(known)):
        raise PlanError(f"[torch] options {unknown} are unknown; known are {sorted(known)}")
    settings = Settings(**given)
    if settings.mode not in _MODES:
        raise PlanError(f"[torch] options['mode'] is {settings.mode!r}; expected one of {_MODES}")
    return settings


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    table = dict(core_aten_decompositions())
    for target in _OWN:
        table.pop(target, None)
    return table
