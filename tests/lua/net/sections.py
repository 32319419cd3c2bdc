"""Files of Lua with named snippets: each is behind a line with `---` and its name."""

from __future__ import annotations

import re
from pathlib import Path


def sections(path: Path) -> tuple[str, dict[str, str]]:
    """Read a file of snippets.

    Returns:
        What comes before the first name, and the snippets by their names.
    """
    preamble, *parts = re.split(r"^--- (.*)\n", path.read_text(), flags=re.MULTILINE)
    return preamble, dict(zip(parts[::2], parts[1::2], strict=True))
