"""Runs the ONNX backend suite and prints what does not pass, operator by operator.

    python -m tests.suite.run [--peer] [--only TEXT] [--write FILE]

`--peer` runs onnxruntime instead, whose passing cases are the yardstick; `--write` saves a line of JSON for each case.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
import unittest
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any


def outcome(case: Callable[[], None], models: list[Any]) -> tuple[str, str, str]:
    """Returns "ok", "skipped", "unsupported", "wrong" or "error", the operators of the model, and the message."""
    models.clear()
    result, text = "ok", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case()
    except unittest.SkipTest as skip:
        result, text = "skipped", str(skip)
    except NotImplementedError as error:
        result, text = "unsupported", str(error)
    except AssertionError as error:
        result, text = "wrong", str(error)
    except Exception as error:
        result, text = "error", f"{type(error).__name__}: {error}"
    return result, _operators(models), " ".join(text.split())


def _operators(models: list[Any]) -> str:
    if not models:
        return "-"
    nodes = models[-1].graph.node
    return ", ".join(sorted({node.op_type for node in nodes})) if len(nodes) <= 3 else f"{len(nodes)} nodes"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    from tests.suite.backend import AscendSchedBackend, cases, known_failures

    known = known_failures()
    backend: Any = AscendSchedBackend
    if arguments.peer:
        from tests.suite.peer import OnnxRuntimeBackend

        backend = OnnxRuntimeBackend
    started = time.monotonic()
    totals: collections.Counter[tuple[str, str]] = collections.Counter()
    failures: dict[str, list[str]] = collections.defaultdict(list)
    lines = []
    for name, case in cases(backend).items():
        if arguments.only not in name:
            continue
        result, operators, text = outcome(case, backend.models)
        totals[name.partition("/")[0], result] += 1
        lines.append(json.dumps({"case": name, "result": result, "operators": operators, "text": text}))
        if result != "ok":
            failures[operators].append(f"  {'' if name in known else '(new) '}{name}: {result}: {text[:300]}")
    for operators in sorted(failures, key=lambda key: -len(failures[key])):
        print(f"{operators}: {len(failures[operators])}")
        print("\n".join(failures[operators]))
    for category in sorted({category for category, _ in totals}):
        counts = {result: n for (of, result), n in sorted(totals.items()) if of == category}
        print(f"{category}: {counts} of {sum(counts.values())}")
    print(f"{time.monotonic() - started:.0f} s")
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
