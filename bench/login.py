"""AUTH by chap-sha1, as a client makes it. Nothing of the server's code is used."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgpack

_AUTH: Final = 7
_TYPE, _SYNC, _TUPLE, _USER_NAME = 0x00, 0x01, 0x21, 0x23
_SALT: Final = slice(64, 108)
_SALT_SIZE: Final = 20


def auth_frame(greeting: bytes, user: str, password: str) -> bytes:
    """Make the request that logs a user in.

    Parameters:
        greeting: the server's 128 bytes.
        user: the user's name.
        password: the user's password.

    Source: Tarantool's documentation, "Binary protocol", section "Authentication".
    """
    salt = base64.b64decode(greeting[_SALT])[:_SALT_SIZE]
    first = hashlib.sha1(password.encode()).digest()
    mask = hashlib.sha1(salt + hashlib.sha1(first).digest()).digest()
    scramble = bytes(a ^ b for a, b in zip(first, mask, strict=True))
    body = {_USER_NAME: user, _TUPLE: ["chap-sha1", scramble]}
    content = msgpack.packb({_TYPE: _AUTH, _SYNC: 0}) + msgpack.packb(body)
    return b"\xce" + len(content).to_bytes(4, "big") + bytes(content)
