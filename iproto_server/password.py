"""The hash of a password, as `_user` holds it and AUTH checks it: of chap-sha1, and salted of pap-sha256."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import Final, TypeGuard

CHAP_SHA1: Final = "chap-sha1"
PAP_SHA256: Final = "pap-sha256"
AUTH_TYPES: Final = (CHAP_SHA1, PAP_SHA256)
"""The methods of AUTH, by their names; the first one is Tarantool's default."""

HASH_SIZE: Final = 20
"""Bytes of a SHA-1 digest."""
SALT_SIZE: Final = 20
SALTED_HASH_SIZE: Final = 32
"""Bytes of a SHA-256 digest."""


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


def salted_hash(password: str, salt: bytes | None = None) -> list[str]:
    """The hash of a password for pap-sha256: a salt, and SHA-256 of the salt and the password, in base64.

    Parameters:
        password: in clear.
        salt: 20 bytes; None: new ones.

    Returns: the salt, 28 characters, and the hash, 44 characters.
    """
    used = os.urandom(SALT_SIZE) if salt is None else salt
    digest = hashlib.sha256(used + password.encode("utf-8", "surrogateescape")).digest()
    return [base64.b64encode(part).decode("ascii") for part in (used, digest)]


def fits_salted(stored: object, password: str) -> bool:
    """Whether a password is the one that was salted and hashed.

    Parameters:
        stored: what `salted_hash` has returned; anything else fits no password.
        password: in clear.
    """
    if not is_salted_hash(stored):
        return False
    salt, digest = stored
    return hmac.compare_digest(salted_hash(password, base64.b64decode(salt))[1], digest)


def is_salted_hash(stored: object) -> TypeGuard[list[str]]:
    """Whether something may be what `salted_hash` has returned."""
    if not isinstance(stored, list) or len(stored) != 2:
        return False
    return all(
        isinstance(part, str) and _decoded_size(part) == size
        for part, size in zip(stored, (SALT_SIZE, SALTED_HASH_SIZE), strict=True)
    )


def _decoded_size(text: str) -> int:
    try:
        return len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return -1


def hashed(password: str, auth_type: str) -> str | list[str]:
    """What `_user` holds for a password, by the method of AUTH that is to check it."""
    return salted_hash(password) if auth_type == PAP_SHA256 else password_hash(password)


EMPTY_PASSWORD_HASH: Final = password_hash("")
"""What `_user` holds for an empty password."""
