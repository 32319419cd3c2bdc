"""Authentication: chap-sha1, which does not send the password, and pap-sha256, which does.

With chap-sha1 the server stores ``sha1(sha1(password))``. The client receives a salt and sends
``sha1(password)`` xor ``sha1(salt + sha1(sha1(password)))``; the server removes the second operand and hashes
the result once.

With pap-sha256 the client sends the password itself, so it requires a confidential connection.

Source: Tarantool manual, "Authentication", and the connectors' `auth_type`.
"""

import base64
import binascii
import hmac
import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Kind
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import (
    CHAP_SHA1,
    EMPTY_PASSWORD_HASH,
    HASH_SIZE,
    PAP_SHA256,
    fits_salted,
    is_salted_hash,
    password_hash,
    salted_hash,
    sha1,
)

SCRAMBLE_SIZE: Final = HASH_SIZE

# The number of bytes of the greeting's salt in use.
_SALT_USED: Final = 20

_NO_HASH: Final = password_hash(os.urandom(SCRAMBLE_SIZE).hex())
_NO_SALTED_HASH: Final = salted_hash(os.urandom(SCRAMBLE_SIZE).hex())

_PROOF_SIZE: Final = 2
_NEVER_PROOF: Final = (Kind.ARRAY, Kind.MAP, Kind.EXT)


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def scramble(password: str, salt: bytes) -> bytes:
    """Compute the scramble that a client sends with AUTH.

    Args:
        password: the password in clear.
        salt: the greeting's salt, at least 20 bytes.

    Returns:
        20 bytes.
    """
    once = sha1(password.encode("utf-8", "surrogateescape"))
    return _xor(once, sha1(salt[:_SALT_USED], sha1(once)))


def verify(stored_hash: str, sent: bytes, salt: bytes) -> bool:
    """Tell whether a scramble was made from the password with a stored hash.

    Args:
        stored_hash: as :func:`iproto_server.password.password_hash` returns it; anything else matches no
            password.
        sent: the client's scramble.
        salt: the salt of this client's greeting.

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
    """Read only what `check_proof` needs: anybody may send an AUTH of any size.

    Args:
        packed: the request's TUPLE, a well-formed array.

    Returns:
        Its first two items; None for an array, a map or an extension.
    """
    return [
        None if codec.kind(item) in _NEVER_PROOF else codec.unpack(item)
        for item in codec.first_items(packed, _PROOF_SIZE)
    ]


class Proof(NamedTuple):
    """A password from a client, or a scramble of it.

    Attributes:
        method: ``"chap-sha1"`` or ``"pap-sha256"``.
        sent: 20 bytes with chap-sha1, or the password in clear.
    """

    method: str
    sent: bytes | str


def needs_no_proof(stored: Mapping[str, object]) -> bool:
    """Tell whether guest can log in without a proof, because it has no password or an empty one.

    Args:
        stored: the hashes of guest's password, by method.
    """
    return stored.get(CHAP_SHA1) in (None, EMPTY_PASSWORD_HASH)


def check_proof(items: Sequence[object], is_confidential: bool) -> Proof:
    """Check the form of a proof, independently of the user.

    Args:
        items: the result of :func:`read_proof`.
        is_confidential: whether the connection is encrypted or local.

    Raises:
        BoxError: INVALID_MSGPACK for a malformed proof, UNKNOWN_AUTH_METHOD for an unknown method,
            UNSUPPORTED for a password in clear on a connection that is not confidential.
    """
    if len(items) < 2 or not isinstance(items[0], str):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication request body")
    method, sent = items[0], items[1]
    if method == CHAP_SHA1:
        return Proof(method, _scramble_of(sent))
    if method != PAP_SHA256:
        raise BoxError(ErrorCode.UNKNOWN_AUTH_METHOD, method)
    if not is_confidential:
        raise BoxError(ErrorCode.UNSUPPORTED, f"Authentication method '{method}'", "unencrypted connection")
    if isinstance(sent, bytes):
        sent = sent.decode("utf-8", "surrogateescape")
    if not isinstance(sent, str):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication request body")
    return Proof(method, sent)


def is_right(stored: Mapping[str, object] | None, proof: Proof, salt: bytes) -> bool:
    """Tell whether a proof matches a user's password, in the same time for every result.

    Args:
        stored: the hashes of the user's password, by method; None if the user does not exist.
        proof: the result of :func:`check_proof`.
        salt: the salt of this client's greeting.
    """
    has = None if stored is None else stored.get(proof.method)
    # Without a hash, one that matches nothing is checked.
    if isinstance(proof.sent, bytes):
        is_known = isinstance(has, str)
        fits = verify(has if isinstance(has, str) else _NO_HASH, proof.sent, salt)
    else:
        is_known = is_salted_hash(has)
        fits = fits_salted(has if is_known else _NO_SALTED_HASH, proof.sent)
    return fits and is_known


def _scramble_of(sent: object) -> bytes:
    # A scramble is binary, but most clients send it as a string.
    if isinstance(sent, str):
        sent = sent.encode("utf-8", "surrogateescape")
    if not isinstance(sent, bytes):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication scramble")
    if len(sent) != SCRAMBLE_SIZE:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "invalid scramble size")
    return sent
