"""The documents as a site: MkDocs builds it, and refuses links and anchors that lead nowhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.programs import REPOSITORY, missing

OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "mkdocs.yml")


DOCUMENTS = "https://github.com/iproto-server/iproto-server/blob/main/docs/"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the site is made of."""
    if find_spec("material") is None:
        missing("mkdocs-material is not installed: pip install '.[docs]'")
    copy = tmp_path / "project"
    copy.mkdir()
    for name in OUTSIDE:
        shutil.copy(REPOSITORY / name, copy)
    for folder in ("docs", "examples", "tools"):
        shutil.copytree(REPOSITORY / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("bench", "queue_lua_compat", "tests"):
        (copy / folder).symlink_to(REPOSITORY / folder)
    return copy


def build(project: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a project as `make docs` does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=project,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_site_has_every_document(project: Path) -> None:
    done = build(project)
    assert done.returncode == 0, done.stderr
    site = project / "build" / "site"
    pages = {path.parent.relative_to(site).as_posix(): path.read_text() for path in site.rglob("index.html")}
    documents = {path.stem for path in (REPOSITORY / "docs").glob("*.md")}
    assert documents | {".", "CHANGELOG", "CONTRIBUTING", "EXAMPLES", "VULNERABILITIES"} == set(pages)
    # README.md links documents by their addresses in the repository.
    assert 'href="OPERATIONS/"' in pages["."]
    assert "/blob/main/docs/" not in "".join(pages.values())
    assert 'blob/main/bench/client/load.py"' in pages["PERFORMANCE"]
    assert "<code>--guest auto|all|none</code>" in pages["OPERATIONS"]
    for page in pages.values():
        assert not re.search(r'<(?:script|img|link)[^>]* (?:src|href)="?https?://(?!github\.com)', page)


@pytest.mark.parametrize(
    ("document", "link", "reason"),
    [
        ("docs/QUEUES.md", "[x](OPERATION.md)", "a link 'OPERATION.md', but the target is not found"),
        ("docs/QUEUES.md", "[x](OPERATIONS.md#absent)", "does not contain an anchor '#absent'"),
        ("docs/QUEUES.md", "[x](#absent)", "no such anchor"),
        ("docs/QUEUES.md", "[x](../bench/absent.py)", "the link to ../bench/absent.py leads nowhere"),
        ("README.md", f"[x]({DOCUMENTS}X.md)", "a link 'X.md', but the target is not found"),
        ("examples/README.md", "[x](absent.py)", "examples/README.md: the link to absent.py leads nowhere"),
        ("docs/NEW.md", "# A document without a place in the navigation", 'not included in the "nav"'),
    ],
)
def test_a_link_that_leads_nowhere_is_refused(project: Path, document: str, link: str, reason: str) -> None:
    with (project / document).open("a", encoding="utf-8") as file:
        file.write(f"\n{link}\n")
    done = build(project)
    assert done.returncode == 1
    assert reason in done.stdout + done.stderr


def test_the_navigation_has_every_document() -> None:
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": (\S+\.md)$", text, re.MULTILINE))
    assert {path.name for path in (REPOSITORY / "docs").glob("*.md")} <= named


def test_the_output_is_no_part_of_the_project() -> None:
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    # The names of Python's functions in it are for MkDocs alone.
    settings = yaml.safe_load(re.sub(r"!!python\S+ \{.*\}", "null", text))
    assert settings["strict"] is True
    assert settings["site_dir"] == "build/site"
    ignored = (REPOSITORY / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "/build/" in ignored
    assert "build" not in (REPOSITORY / "MANIFEST.in").read_text(encoding="utf-8")
