"""Hash functions, checksums, random bytes and Base64 for `digest.lua` and `crypto.lua`."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import google_crc32c

from iproto_server.lua.errors import HostError

_INVERTED: Final = 0xFFFFFFFF
_LINE: Final = 54  # bytes, which make 72 characters
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_NO_BASE64: Final = bytes(
    byte for byte in range(256) if not chr(byte).isascii() or not (chr(byte).isalnum() or byte in b"+/-_")
)


def digest(method: bytes, text: bytes) -> bytes:
    """Hash a text.

    Parameters:
        method: hashlib's name of the hash function.
        text: the text.

    Raises:
        HostError: this Python's OpenSSL does not have the hash function.
    """
    try:
        return hashlib.new(method.decode(), text, usedforsecurity=False).digest()
    except ValueError as error:
        raise HostError(f"Can't init digest: {error}") from error


def keyed_digest(method: bytes, key: bytes, text: bytes) -> bytes:
    """The HMAC of a text.

    Parameters:
        method: hashlib's name of the hash function.
        key: the key.
        text: the text.

    Raises:
        HostError: this Python's OpenSSL does not have the hash function.
    """
    try:
        return hmac.digest(key, text, method.decode())
    except ValueError as error:
        raise HostError(f"Can't init HMAC: {error}") from error


def random_bytes(size: int) -> bytes:
    """Random bytes for keys.

    Raises:
        HostError: there is not enough memory.
    """
    try:
        return os.urandom(size)
    except MemoryError as error:
        raise HostError("not enough memory") from error


def crc32c(value: int, text: bytes) -> int:
    """Continue a CRC-32C, without its first and last inversion."""
    extended: int = google_crc32c.extend(value ^ _INVERTED, text)
    return extended ^ _INVERTED


def pbkdf2(password: bytes, salt: bytes, iterations: int, size: int) -> bytes:
    """Derive a key with PBKDF2 and SHA-256.

    Parameters:
        password: the password.
        salt: the salt.
        iterations: the number of iterations, at least 1.
        size: the number of bytes of the key.
    """
    return hashlib.pbkdf2_hmac("sha256", password, salt, iterations, size) if size else b""


def base64_encode(text: bytes, padded: bool, wrapped: bool, urlsafe: bool) -> bytes:
    """Encode a text.

    Parameters:
        text: the text.
        padded: whether `=` fills the last four characters.
        wrapped: whether a newline follows each 54 bytes.
        urlsafe: whether `-` and `_` stand for `+` and `/`.
    """
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    if wrapped:
        parts = (text[start : start + _LINE] for start in range(0, len(text), _LINE))
        encoded = b"".join(encode(part) + b"\n" if len(part) == _LINE else encode(part) for part in parts)
    else:
        encoded = encode(text)
    return encoded if padded else encoded.rstrip(b"=")


def base64_decode(text: bytes) -> bytes:
    """Decode a text of both alphabets; all other characters are skipped, `=` included."""
    characters = text.translate(_STANDARD, _NO_BASE64)
    whole = len(characters) - (len(characters) % 4 == 1)
    return base64.b64decode(characters[:whole] + b"=" * (-whole % 4))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "base64_decode": base64_decode,
    "base64_encode": base64_encode,
    "crc32c": crc32c,
    "digest": digest,
    "keyed_digest": keyed_digest,
    "pbkdf2": pbkdf2,
    "random_bytes": random_bytes,
}
