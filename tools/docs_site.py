"""A hook of MkDocs: adds the documents outside docs/ to the site, and lets links lead to its pages.

Documents link each other by their paths in the repository, or as README.md does by their addresses there. On
the site a link to a document leads to its page, and one to another file to the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE: Final = {
    "index.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "EXAMPLES.md": "examples/README.md",
    "VULNERABILITIES.md": "SECURITY.md",
}
"""Pages whose documents are outside docs/, with the documents."""

ROOT: Final = Path(__file__).resolve().parent.parent

_LINK: Final = re.compile(
    r"^ *```[\s\S]*?^ *```$|^    .*$|`[^`\n]+`|(?P<before>\]\(|^\[[^\]\n]+\]: )(?P<target>[^()\s]+)",
    re.MULTILINE,
)
"""Code, which has no links, or the target of a link with what is before it."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents outside docs/."""
    for page, document in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / document)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a document. Raises PluginError if one leads nowhere."""
    name = page.file.src_uri
    document = OUTSIDE.get(name, f"docs/{name}")

    def rewritten(match: re.Match[str]) -> str:
        if match["target"] is None:
            return match[0]
        return match["before"] + _on_site(match["target"], document, f"{config.repo_url}/")

    return _LINK.sub(rewritten, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show `\\|` in tables as GitHub does: the backslash only keeps the bar from ending the cell."""
    return re.sub(r"<td[\s\S]*?</td>", lambda cell: cell[0].replace("\\|", "|"), html)


def _on_site(target: str, document: str, repository: str) -> str:
    """The target of a link on the site.

    Parameters:
        target: the target in the document.
        document: the document's path in the repository.
        repository: the repository's address.
    """
    address, sharp, anchor = target.partition("#")
    if address.startswith(f"{repository}raw/main/docs/"):
        return address.removeprefix(f"{repository}raw/main/docs/")  # a picture, which the site has
    if address.startswith(f"{repository}blob/main/"):
        path = address.removeprefix(f"{repository}blob/main/")
    elif not address or re.match(r"[a-z]+:", address):
        return target
    else:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(document), address))
    pages = {source: page for page, source in OUTSIDE.items()}
    if path in pages:
        return f"{pages[path]}{sharp}{anchor}"
    if path.startswith("docs/") and path.endswith(".md"):
        return f"{path.removeprefix('docs/')}{sharp}{anchor}"
    if not (ROOT / path).exists():
        raise PluginError(f"{document}: the link to {target} leads nowhere")
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository}{kind}/main/{path}{sharp}{anchor}"
