"""The versions of Tarantool that have written a database's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

Version = tuple[int, int, int]

UNKNOWN: Final[Version] = (0, 0, 0)
FIRST_READABLE: Final[Version] = (1, 7, 5)
"""The first schema that this server and Tarantool 2.6 read; earlier ones have other system spaces."""
WITH_DEFAULTS: Final[Version] = (3, 0, 0)
"""The first version that fills in a field's `default` and obeys a part's `sort_order`."""

_OWN: Final = "-iproto"
_NUMBERS: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")
_PARTS: Final = 3


def version_of_program(text: str) -> Version:
    """Read the version in the header of a file.

    Parameters:
        text: the header's `Version`, such as `2.11.4-0-g8cebbf2cad`.

    Returns: the version; `UNKNOWN` for a file of this server, and for a text without one.
    """
    found = None if _OWN in text else _NUMBERS.search(text)
    return UNKNOWN if found is None else _version([int(part or 0) for part in found.groups()])


def version_of_schema(row: Sequence[Any]) -> Version:
    """Read the version in the row `version` of `_schema`; `UNKNOWN` if it is invalid.

    Parameters:
        row: the decoded row.
    """
    parts = list(row[1 : 1 + _PARTS])
    if len(parts) < 2 or any(type(part) is not int or part < 0 for part in parts):
        return UNKNOWN
    return _version([*parts, 0][:_PARTS])


def _version(parts: Sequence[int]) -> Version:
    major, minor, patch = parts
    return major, minor, patch
