"""AUTH requests with chap-sha1, without the server's code."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from bench.client.iproto_frames import request_frame

_AUTH: Final = 7
_TUPLE, _USER_NAME = 0x21, 0x23
_SALT: Final = slice(64, 108)
_SALT_SIZE: Final = 20


def auth_frame(greeting: bytes, user: str, password: str) -> bytes:
    """Encode the request that logs a user in.

    Parameters:
        greeting: the server's greeting of 128 bytes.
        user: the user's name.
        password: the user's password.

    Source: Tarantool's documentation, "Binary protocol", section "Authentication".
    """
    salt = base64.b64decode(greeting[_SALT])[:_SALT_SIZE]
    first = hashlib.sha1(password.encode()).digest()
    mask = hashlib.sha1(salt + hashlib.sha1(first).digest()).digest()
    scramble = bytes(a ^ b for a, b in zip(first, mask, strict=True))
    return request_frame(_AUTH, {_USER_NAME: user, _TUPLE: ["chap-sha1", scramble]})
