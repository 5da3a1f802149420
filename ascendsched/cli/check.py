"""`ascendsched plan --check`: can the device run the model, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from ascendsched.cli.common import print_json, stdout_console

if TYPE_CHECKING:
    from ascendsched.frontends.onnx_check import OpSupport


def check(model: str, device: str, as_json: bool) -> bool:
    """Prints the answer for every operator; returns whether all are supported."""
    from ascendsched.frontends.onnx_check import check_model  # --help must not load the core

    ops = check_model(model, device)
    is_supported = all(op.is_supported for op in ops)
    if as_json:
        rows = [
            {
                "op": op.op,
                "count": op.count,
                "types": op.types,
                "supported": op.is_supported,
                "refused": [{"node": node, "reason": reason} for node, reason in op.refused],
            }
            for op in ops
        ]
        print_json("check", {"model": model, "device": device, "supported": is_supported, "operators": rows})
    else:
        _print(ops, device)
    return is_supported


def _print(ops: Sequence[OpSupport], device: str) -> None:
    table = Table("operator", "nodes", "types", "supported", "why not", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.columns[1].justify = "right"
    for op in ops:
        table.add_row(op.op, str(op.count), ", ".join(op.types), "yes" if op.is_supported else "no", op.why_not)
    console = stdout_console()
    console.print(table)
    refused = sum(len(op.refused) for op in ops)
    total = sum(op.count for op in ops)
    if refused:
        console.print(f"\nnot supported on {device}: {refused} of {total} nodes; keep onnxruntime for this model")
    else:
        console.print(f"\nsupported on {device}: all {total} nodes, by operator and element type")
