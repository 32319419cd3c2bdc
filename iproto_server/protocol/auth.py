"""Proving a password: without sending it, by the chap-sha1 method, or by sending it, with pap-sha256.

With chap-sha1 the server keeps ``sha1(sha1(password))``. The client, told a salt, sends ``sha1(password)``
xor-ed with ``sha1(salt + sha1(sha1(password)))``; the server takes the second half away again and hashes what
is left once.

With pap-sha256 the client sends the password itself, so that is for connections that nobody else can read.

Source: Tarantool manual, "Authentication", and the connectors' `auth_type`.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from iproto_server import codec
from iproto_server.codec import Kind
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import (
    CHAP_SHA1,
    EMPTY_PASSWORD_HASH,
    HASH_SIZE,
    PAP_SHA256,
    fits_salted,
    sha1,
)

SCRAMBLE_SIZE: Final = HASH_SIZE

# Only this much of the salt in the greeting takes part.
_SALT_USED: Final = 20

_PROOF_SIZE: Final = 2
_NEVER_PROOF: Final = (Kind.ARRAY, Kind.MAP, Kind.EXT)


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


def read_proof(packed: bytes) -> list[object]:
    """Read what `authenticate` looks at, and no more: anybody may send an AUTH, of any size.

    Args:
        packed: the request's TUPLE, a well-formed array.

    Returns:
        Its first two items; None stands for each that is an array, a map or an extension.
    """
    return [
        None if codec.kind(item) in _NEVER_PROOF else codec.unpack(item)
        for item in codec.first_items(packed, _PROOF_SIZE)
    ]


def authenticate(
    user_name: str,
    is_guest: bool,
    stored: Mapping[str, object],
    proof: Sequence[object],
    salt: bytes,
    is_confidential: bool,
) -> None:
    """Check an AUTH request of a user that exists.

    Args:
        user_name: for the error.
        is_guest: whether this is the user that everybody is at first. One may become guest again without
            proof if guest has no password or an empty one.
        stored: the hashes of the user's password, by the names of the methods.
        proof: as of :func:`read_proof`: the method's name and what the method sends, or nothing.
        salt: the one that this client was greeted with.
        is_confidential: whether nobody else can read what the client sends.

    Raises:
        BoxError: INVALID_MSGPACK for a malformed proof, UNKNOWN_AUTH_METHOD for a method there is not,
            UNSUPPORTED for a password in clear that others can read, PASSWORD_MISMATCH for a wrong password.
    """
    if not proof and is_guest and stored.get(CHAP_SHA1) in (None, EMPTY_PASSWORD_HASH):
        return
    if len(proof) < 2:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication request body")
    method, sent = proof[0], proof[1]
    if not isinstance(method, str):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication request body")
    if method == CHAP_SHA1:
        is_right = _is_right_scramble(stored.get(CHAP_SHA1), sent, salt)
    elif method == PAP_SHA256:
        if not is_confidential:
            raise BoxError(
                ErrorCode.UNSUPPORTED, f"Authentication method '{method}'", "unencrypted connection"
            )
        is_right = _is_right_password(stored.get(PAP_SHA256), sent)
    else:
        raise BoxError(ErrorCode.UNKNOWN_AUTH_METHOD, method)
    if not is_right:
        raise BoxError(ErrorCode.PASSWORD_MISMATCH, user_name)


def _is_right_scramble(stored: object, sent: object, salt: bytes) -> bool:
    # A scramble is no text, but most clients send it as one.
    if isinstance(sent, str):
        sent = sent.encode("utf-8", "surrogateescape")
    if not isinstance(sent, bytes):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication scramble")
    if len(sent) != SCRAMBLE_SIZE:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "invalid scramble size")
    return isinstance(stored, str) and verify(stored, sent, salt)


def _is_right_password(stored: object, sent: object) -> bool:
    if isinstance(sent, bytes):
        sent = sent.decode("utf-8", "surrogateescape")
    if not isinstance(sent, str):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication request body")
    return fits_salted(stored, sent)
