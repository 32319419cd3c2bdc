"""The fingerprint of a compiled module's C sources.

`setup.py` runs this file by its path, so it imports nothing from this project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def sources_in(folder: Path) -> list[Path]:
    """The C sources and headers in a folder and in those below it.

    Parameters:
        folder: The folder; it need not exist.

    Returns:
        The files, sorted by path.
    """
    return sorted([*folder.rglob("*.c"), *folder.rglob("*.h")])


def fingerprint(files: Iterable[Path]) -> str:
    """Hash files by name and content.

    Parameters:
        files: The files, in any order.

    Returns:
        SHA-256 in hexadecimal digits.

    Raises:
        OSError: If a file cannot be read.
    """
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: (file.parent.parts[-2:], file.name)):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
