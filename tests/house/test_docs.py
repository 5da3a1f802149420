"""The documents agree with the tree."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import ascendsched as asc
from ascendsched._version import __version__

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+\s+(.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_resolve(path: Path) -> None:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text(encoding="utf-8")), target


def test_architecture_names_every_folder_of_csrc() -> None:
    text = read("ARCHITECTURE.md")
    folders = [p for p in (ROOT / "csrc").iterdir() if p.is_dir()]
    folders += [p for p in (ROOT / "csrc" / "backends").iterdir() if p.is_dir()]
    missing = [p.name for p in folders if f"{p.relative_to(ROOT / 'csrc').as_posix()}/" not in text]
    assert not missing


def test_architecture_names_every_python_module() -> None:
    text = read("ARCHITECTURE.md")
    names = [p.name for p in (ROOT / "ascendsched").iterdir() if p.suffix == ".py" and p.name != "_version.py"]
    names += [f"{p.parent.name}/" for p in (ROOT / "ascendsched").glob("*/__init__.py")]
    assert not [name for name in names if name not in text]


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_make_verb_in_the_documents_exists(document: str) -> None:
    verbs = set(re.findall(r"^([a-z]+):", read("Makefile"), flags=re.MULTILINE))
    used = set(re.findall(r"(?:^|`|\s)make ([a-z]+)(?=[`\s])", read(document)))
    assert used, f"{document} names no verb"
    assert used <= verbs


def test_paths_in_contributing_exist() -> None:
    for name in re.findall(r"`((?:csrc|ascendsched|tests|docs|benchmarks)/[\w./]+)`", read("CONTRIBUTING.md")):
        assert (ROOT / name).exists(), name


def test_every_environment_variable_is_documented() -> None:
    files = [ROOT / "setup.py"]
    for folder in ("csrc", "ascendsched"):
        files += [p for p in (ROOT / folder).rglob("*") if p.suffix in {".cc", ".h", ".py"}]
    text = "".join(p.read_text(encoding="utf-8") for p in files)
    used = set(re.findall(r"""["'](ASCENDSCHED_[A-Z_]+)["']""", text)) | {"ASCENDSCHED_THREADS"}
    used |= {
        "ASCENDSCHED_" + field.name.upper()
        for field in dataclasses.fields(asc.Options)
        if field.metadata.get("is_variable", True)
    }
    guide = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs" / "guide").glob("*.md"))
    assert used == set(re.findall(r"ASCENDSCHED_[A-Z_]+", guide))


def test_changelog_has_the_version() -> None:
    assert f"## {__version__}" in read("CHANGELOG.md")


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(p.name[:4]) for p in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_index_has_every_decision_by_its_title() -> None:
    index = read("docs/decisions/README.md")
    for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"):
        number, title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split(". ", 1)
        assert f"| {number} | [{title}]({path.name}) |" in index
