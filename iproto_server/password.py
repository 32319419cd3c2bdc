"""Password hashes of the AUTH methods chap-sha1 and pap-sha256, as stored in `_user`."""

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
"""Names of the AUTH methods; the first one is Tarantool's default."""

HASH_SIZE: Final = 20
"""Bytes of a SHA-1 digest."""
SALT_SIZE: Final = 20
SALTED_HASH_SIZE: Final = 32
"""Bytes of a SHA-256 digest."""


def sha1(*parts: bytes) -> bytes:
    """Return the SHA-1 digest, 20 bytes, of the joined parts."""
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return digest.digest()


def password_hash(password: str) -> str:
    """Hash a password for chap-sha1: base64 of SHA-1 of SHA-1.

    Parameters:
        password: the plain password; may be empty.

    Returns: 28 characters.
    """
    return base64.b64encode(sha1(sha1(password.encode("utf-8", "surrogateescape")))).decode("ascii")


def salted_hash(password: str, salt: bytes | None = None) -> list[str]:
    """Hash a password for pap-sha256: a salt, and SHA-256 of salt and password, in base64.

    Parameters:
        password: the plain password.
        salt: 20 bytes; None: random ones.

    Returns: the salt, 28 characters, and the hash, 44 characters.
    """
    used = os.urandom(SALT_SIZE) if salt is None else salt
    digest = hashlib.sha256(used + password.encode("utf-8", "surrogateescape")).digest()
    return [base64.b64encode(part).decode("ascii") for part in (used, digest)]


def fits_salted(stored: object, password: str) -> bool:
    """Whether a password matches a salted hash.

    Parameters:
        stored: a result of `salted_hash`; anything else matches no password.
        password: the plain password.
    """
    if not is_salted_hash(stored):
        return False
    salt, digest = stored
    return hmac.compare_digest(salted_hash(password, base64.b64decode(salt))[1], digest)


def is_salted_hash(stored: object) -> TypeGuard[list[str]]:
    """Whether a value has the form of a result of `salted_hash`."""
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
    """Hash a password for `_user`, for an AUTH method."""
    return salted_hash(password) if auth_type == PAP_SHA256 else password_hash(password)


EMPTY_PASSWORD_HASH: Final = password_hash("")
"""The chap-sha1 hash of an empty password."""
