"""The rules for the project's documents: paths and links exist, lines are short, README suits PyPI."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from iproto_server.config.options import OPTIONS
from tests.programs import REPOSITORY

COLUMNS = 120
README_LINES = 150
"""Three screens."""

README = REPOSITORY / "README.md"
ARCHITECTURE = REPOSITORY / "docs" / "ARCHITECTURE.md"


def documents() -> list[Path]:
    """All Markdown files under version control; of a source distribution, all there are."""
    if not (REPOSITORY / ".git").exists():
        return sorted(REPOSITORY.rglob("*.md"))
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return [REPOSITORY / name for name in listed.stdout.splitlines()]


DOCUMENTS = documents()
ROOTS = (
    *("bench", "docs", "examples", "iproto_server", "packaging"),
    *("queue_lua_compat", "spark", "tests", "tools"),
)
"""Directories whose files documents name by their path from the top."""

every_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY))
)


def prose(text: str) -> str:
    """A document without its fenced code."""
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    """The anchors of all headings in a document."""
    headings = re.findall(r"^#+ (.*)$", prose(document.read_text(encoding="utf-8")), re.MULTILINE)
    return {slug(heading) for heading in headings}


def named_paths(text: str) -> set[str]:
    """The files and directories that a document names as code; `(new)` behind a name marks a future one."""
    roots = "|".join(ROOTS)
    return set(re.findall(rf"`((?:{roots})/[\w./-]*)`(?! \(new\))", prose(text)))


def links(text: str) -> list[str]:
    """The targets of all links in a document."""
    text = prose(text)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)


def test_documents_are_found() -> None:
    assert {README, ARCHITECTURE, REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "SECURITY.md"} <= {*DOCUMENTS}


@every_document
def test_no_line_is_too_long(document: Path) -> None:
    lines = document.read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > COLUMNS] == []


@every_document
def test_named_paths_exist(document: Path) -> None:
    missing = {
        path
        for path in named_paths(document.read_text(encoding="utf-8"))
        if not (REPOSITORY / path).exists() and not path.startswith("bench/results")
    }
    assert missing == set()


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target in links(document.read_text(encoding="utf-8")):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        file = document.parent / name if name else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_rules_notice_what_is_wrong() -> None:
    assert named_paths("`iproto_server/nowhere.py`, `iproto_server/sql/` (new)") == {
        "iproto_server/nowhere.py"
    }
    assert links("[a](b.md#c)\n\n[d]: e.md\n```\n[f](g.md)\n```\n") == ["b.md#c", "e.md"]
    assert slug("Tarantool 1.5's protocol") == "tarantool-15s-protocol"


def test_architecture_answers_with_one_path_each() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    [section] = re.findall(r"^## Where to find things\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    for question, answer in rows:
        assert re.fullmatch(r" `[\w./]+`(?: \(new\))? ", answer), question


def installed(text: str) -> list[str]:
    """What the `pip` commands in a document install or build, without options."""
    found: list[str] = []
    for line in re.findall(r"\bpip (?:install|wheel) ([^`\n#;&|]*)", text):
        words = shlex.split(line)
        options = {"--wheel-dir", "--target"}
        found += [
            word
            for before, word in pairwise(["", *words])
            if not word.startswith("-") and before not in options and word != "…"
        ]
    return found


def declared() -> tuple[str, set[str], set[str]]:
    """The project's name, its extras, and the packages that it depends on, with those of extras."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(each for extra in extras.values() for each in extra)]
    return project["name"], set(extras), {re.split(r"[\[<>=;! ]", each)[0] for each in needed}


@every_document
def test_installed_packages_and_extras_exist(document: Path) -> None:
    name, extras, packages = declared()
    for target in installed(document.read_text(encoding="utf-8")):
        if target.startswith("./"):
            assert (REPOSITORY / target / "pyproject.toml").is_file(), target
            continue
        found = re.fullmatch(r"(?P<package>[\w.-]+|/src)(?:\[(?P<extras>[\w,]+)\])?", target)
        if found is None:
            assert re.fullmatch(rf"dist/{name.replace('-', '_')}-\*\.whl", target), target
            continue
        assert found["package"] in {".", "/src", name, *packages}, target
        if found["extras"]:
            assert found["package"] not in packages - {name}, target
            assert {*found["extras"].split(",")} <= extras, target


def test_documents_install_something() -> None:
    targets = {target for document in DOCUMENTS for target in installed(document.read_text(encoding="utf-8"))}
    assert {".", ".[spark]", "./packaging/client", "dist/iproto_server-*.whl"} <= targets
    assert installed("pip install --quiet --editable '.[a,b]' c  # d\npip wheel --wheel-dir e .") == [
        ".[a,b]",
        "c",
        ".",
    ]


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= README_LINES


def test_readme_has_absolute_links_to_files_that_exist() -> None:
    """PyPI shows README.md, where a relative link leads nowhere."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = project["urls"]["Repository"] + "/blob/main/"
    targets = links(README.read_text(encoding="utf-8"))
    assert all(target.startswith("https://") for target in targets)
    ours = [target.removeprefix(base) for target in targets if target.startswith(base)]
    assert len(ours) > 10
    assert [name for name in ours if not (REPOSITORY / name).is_file()] == []


def test_readme_links_every_document() -> None:
    text = README.read_text(encoding="utf-8")
    names = sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs").glob("*.md"))
    assert [name for name in names if f"/{name}" not in text] == []


def test_operations_has_every_option() -> None:
    text = (REPOSITORY / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    [section] = re.findall(r"^## Options\n(.*?)^### Addresses", text, re.DOTALL | re.MULTILINE)
    flags = set(re.findall(r"`(--[\w-]+)", section))
    assert {option.flag for option in OPTIONS if option.flag.startswith("--")} - flags == set()


def test_make_help_lists_all_targets() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    prerequisites = {"test-programs", "node-packages"}
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[0] for line in listed.splitlines()} == {*phony.split()} - prerequisites
