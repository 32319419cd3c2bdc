"""The rule for names of spaces, fields, users and other objects."""

from __future__ import annotations

import unicodedata
from typing import Final

from iproto_server.errors import BoxError, ErrorCode

NAME_MAX: Final = 65000
"""The greatest length of a name in bytes."""

_UNPRINTABLE: Final = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that are invalid in names."""


def check_identifier(name: str) -> None:
    """Raise BoxError IDENTIFIER (70) unless `name` is valid: not empty, valid UTF-8, printable."""
    if name.isascii() and name.isprintable() and name:
        return
    if not name or any(unicodedata.category(each) in _UNPRINTABLE or each == "\ufffd" for each in name):
        raise BoxError(ErrorCode.IDENTIFIER, name)
