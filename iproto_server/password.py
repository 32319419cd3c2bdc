"""The hash of a password, as `_user` holds it and AUTH checks it."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

HASH_SIZE: Final = 20
"""Bytes of a SHA-1 digest."""


def sha1(*parts: bytes) -> bytes:
    """The SHA-1 digest, 20 bytes, of all parts together."""
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return digest.digest()


def password_hash(password: str) -> str:
    """The hash of a password: base64 of SHA-1 of SHA-1.

    Parameters:
        password: in clear; may be empty, which is a password too.

    Returns: 28 characters.
    """
    return base64.b64encode(sha1(sha1(password.encode("utf-8", "surrogateescape")))).decode("ascii")


EMPTY_PASSWORD_HASH: Final = password_hash("")
"""What `_user` holds for an empty password."""
