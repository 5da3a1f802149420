"""One name, one type: two types of one name in one namespace give a program that links, and breaks at run time."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

CSRC = Path(__file__).parents[2] / "csrc"
SCOPE = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{|^\}  // namespace")
TYPE = re.compile(r"^(?:struct|class|enum class|union) (?:alignas\(\w+\) )?(\w+)(?=\s|$)[^;]*$")


def visible_types(path: Path) -> list[str]:
    """Names with their namespaces of the types that a file defines outside of unnamed namespaces."""
    scopes: list[str | None] = []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if scope := SCOPE.match(line):
            if line.startswith("}"):
                scopes.pop()
            else:
                scopes.append(scope.group(1))
        elif (kind := TYPE.match(line)) and None not in scopes:
            found.append("::".join([*(s for s in scopes if s), kind.group(1)]))
    return found


def test_no_two_files_define_types_of_one_name() -> None:
    files = defaultdict(list)
    for path in sorted(CSRC.rglob("*.h")) + sorted(CSRC.rglob("*.cc")):
        for name in visible_types(path):
            files[name].append(str(path.relative_to(CSRC)))
    assert len(files) > 100
    assert {name: where for name, where in files.items() if len(where) > 1} == {}
