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

# Only this much of the salt in the greeting takes part.
_SALT_USED: Final = 20

_NO_HASH: Final = password_hash(os.urandom(SCRAMBLE_SIZE).hex())
_NO_SALTED_HASH: Final = salted_hash(os.urandom(SCRAMBLE_SIZE).hex())

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
    """Read what `check_proof` looks at, and no more: anybody may send an AUTH, of any size.

    Args:
        packed: the request's TUPLE, a well-formed array.

    Returns:
        Its first two items; None stands for each that is an array, a map or an extension.
    """
    return [
        None if codec.kind(item) in _NEVER_PROOF else codec.unpack(item)
        for item in codec.first_items(packed, _PROOF_SIZE)
    ]


class Proof(NamedTuple):
    """A password that was sent, or a scramble of it.

    Attributes:
        method: ``"chap-sha1"`` or ``"pap-sha256"``.
        sent: what the method sends: 20 bytes, or the password in clear.
    """

    method: str
    sent: bytes | str


def needs_no_proof(stored: Mapping[str, object]) -> bool:
    """Tell whether one may become guest again without a proof: it has no password, or an empty one.

    Args:
        stored: the hashes of guest's password, by the names of the methods.
    """
    return stored.get(CHAP_SHA1) in (None, EMPTY_PASSWORD_HASH)


def check_proof(items: Sequence[object], is_confidential: bool) -> Proof:
    """Check the form of a proof, which has nothing to do with whether there is such a user.

    Args:
        items: as of :func:`read_proof`.
        is_confidential: whether nobody else can read what the client sends.

    Raises:
        BoxError: INVALID_MSGPACK for a malformed proof, UNKNOWN_AUTH_METHOD for a method there is not,
            UNSUPPORTED for a password in clear that others can read.
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
    """Tell whether a proof is that of a user's password. The work is the same whatever comes of it.

    Args:
        stored: the hashes of the user's password, by the names of the methods; None where there is no such
            user.
        proof: as :func:`check_proof` has read it.
        salt: the one that this client was greeted with.
    """
    has = None if stored is None else stored.get(proof.method)
    # Where there is no hash, one is checked that fits nothing.
    if isinstance(proof.sent, bytes):
        is_known = isinstance(has, str)
        fits = verify(has if isinstance(has, str) else _NO_HASH, proof.sent, salt)
    else:
        is_known = is_salted_hash(has)
        fits = fits_salted(has if is_known else _NO_SALTED_HASH, proof.sent)
    return fits and is_known


def _scramble_of(sent: object) -> bytes:
    # A scramble is no text, but most clients send it as one.
    if isinstance(sent, str):
        sent = sent.encode("utf-8", "surrogateescape")
    if not isinstance(sent, bytes):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "authentication scramble")
    if len(sent) != SCRAMBLE_SIZE:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "invalid scramble size")
    return sent
