"""`ascendsched info`: what a bug report needs."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import click

from ascendsched._version import __version__
from ascendsched.cli.common import json_option, print_json

# The instruction sets that kernels choose between, as Linux spells them.
CPU_FLAGS = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
)
PACKAGES = ("numpy", "onnx", "onnxruntime", "torch")


@click.command("info")
@json_option
def command(as_json: bool) -> None:
    """Show versions, CPU, devices and bundled libraries: what a bug report needs.

    Example: ascendsched info --json
    """
    facts = collect()
    if as_json:
        print_json("info", facts)
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            click.echo(f"{key}:")
            for name, text in value.items():
                click.echo(f"  {name}: {text}")
        else:
            click.echo(f"{key}: {' '.join(value) if isinstance(value, list) else value}")


def collect() -> dict[str, Any]:
    """The facts, in the order in which they are shown. A core that does not load is a fact, not an error."""
    model, flags = _cpu()
    facts: dict[str, Any] = {
        "version": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "cpu": model,
        "cpu_features": [flag for flag in CPU_FLAGS if flag in flags],
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": {name: _version_of(name) for name in PACKAGES},
        "settings": {key: os.environ[key] for key in sorted(os.environ) if key.startswith("ASCENDSCHED_")},
    }
    try:
        facts |= _core_facts()
    except ImportError as error:
        facts["core"] = f"does not load: {error}"
    return facts


def _core_facts() -> dict[str, Any]:
    import ascendsched as asc  # may fail, which is what a report must say
    from ascendsched.native import core as _core
    from ascendsched.options import default_threads

    return {
        "default_threads": default_threads(),
        "devices": {device.name: device.description for device in asc.devices()},
        "build": dict(_core.build_info()),
    }


def _cpu() -> tuple[str, frozenset[str]]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine(), frozenset()
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields.get("model name", platform.machine()), frozenset(fields.get("flags", "").split())


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
