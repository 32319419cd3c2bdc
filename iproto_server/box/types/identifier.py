"""The rule that names of spaces, fields, users and other objects follow."""

from __future__ import annotations

import unicodedata
from typing import Final

from iproto_server.errors import BoxError, ErrorCode

NAME_MAX: Final = 65000
"""Bytes that a name may have."""

_UNPRINTABLE: Final = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that no name may have."""


def check_identifier(name: str) -> None:
    """Raise BoxError IDENTIFIER (70) unless `name` can name something: not empty, valid UTF-8, printable."""
    if name.isascii() and name.isprintable() and name:
        return
    if not name or any(unicodedata.category(each) in _UNPRINTABLE or each == "\ufffd" for each in name):
        raise BoxError(ErrorCode.IDENTIFIER, name)
