"""Prints requirements of pyproject.toml for pip: groups "build", "run", or the name of an extra."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib


def group(project: dict[str, Any], name: str) -> list[str]:
    """Requirements of one group; raises KeyError for an unknown extra."""
    if name == "build":
        return list(project["build-system"]["requires"])
    if name == "run":
        return list(project["project"]["dependencies"])
    return list(project["project"]["optional-dependencies"][name])


def main() -> None:
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)
    for name in sys.argv[1:]:
        print("\n".join(group(project, name)))


if __name__ == "__main__":
    main()
