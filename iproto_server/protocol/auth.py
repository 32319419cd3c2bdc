"""Proving a password without sending it: the chap-sha1 method.

The server keeps ``sha1(sha1(password))``. The client, told a salt, sends ``sha1(password)`` xor-ed with
``sha1(salt + sha1(sha1(password)))``; the server takes the second half away again and hashes what is left
once.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Final

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import EMPTY_PASSWORD_HASH, HASH_SIZE, sha1

CHAP_SHA1: Final = "chap-sha1"
SCRAMBLE_SIZE: Final = HASH_SIZE

# Only this much of the salt in the greeting takes part.
_SALT_USED: Final = 20


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def scramble(password: str, salt: bytes) -> bytes:
    """Do the client's part: turn a password and a greeting's salt into what AUTH sends.

    Args:
        password: in clear.
        salt: the greeting's salt, at least 20 bytes.

    Returns:
        20 bytes.
    """
    once = sha1(password.encode("utf-8", "surrogateescape"))
    return _xor(once, sha1(salt[:_SALT_USED], sha1(once)))


def verify(stored_hash: str, sent: bytes, salt: bytes) -> bool:
    """Tell whether a scramble was made from the password whose hash is kept.

    Args:
        stored_hash: as :func:`iproto_server.password.password_hash` returns it; anything else fits no
            password.
        sent: the client's scramble.
        salt: the one that this client was greeted with.

    Returns:
        True if the client knows the password.
    """
    try:
        twice = base64.b64decode(stored_hash, validate=True)
    except (binascii.Error, ValueError):
        return False
    if len(twice) != SCRAMBLE_SIZE or len(sent) != SCRAMBLE_SIZE:
        return False
    once = _xor(sent, sha1(salt[:_SALT_USED], twice))
    return hmac.compare_digest(sha1(once), twice)


def authenticate(
    user_name: str, is_guest: bool, stored_hash: str | None, proof: Sequence[object], salt: bytes
) -> None:
    """Check an AUTH request of a user that exists.

    Args:
        user_name: for the error.
        is_guest: whether this is the user that everybody is at first. One may become guest again without
            proof if guest has no password or an empty one.
        stored_hash: the user's hash for chap-sha1, None if there is none.
        proof: the request's TUPLE: the method's name and what the method sends, or nothing.
        salt: the one that this client was greeted with.

    Raises:
        BoxError: INVALID_MSGPACK for a malformed proof, UNKNOWN_AUTH_METHOD for a method that is not offered
            (pap-sha256 is not), PASSWORD_MISMATCH for a wrong password.
    """
    if not proof and is_guest and stored_hash in (None, EMPTY_PASSWORD_HASH):
        return
    if len(proof) < 2:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication request body")
    method, sent = proof[0], proof[1]
    if not isinstance(method, str):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication request body")
    if method != CHAP_SHA1:
        raise BoxError(ErrorCode.UNKNOWN_AUTH_METHOD, method)
    # A scramble is no text, but most clients send it as one.
    if isinstance(sent, str):
        sent = sent.encode("utf-8", "surrogateescape")
    if not isinstance(sent, bytes):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication scramble")
    if len(sent) != SCRAMBLE_SIZE:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "invalid scramble size")
    if stored_hash is None or not verify(stored_hash, sent, salt):
        raise BoxError(ErrorCode.PASSWORD_MISMATCH, user_name)
