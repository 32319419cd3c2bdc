"""The greeting: the first 128 bytes that the server sends on a connection."""

import base64
import uuid
from typing import Final

GREETING_SIZE: Final = 128
SALT_SIZE: Final = 32

_LINE = GREETING_SIZE // 2 - 1
_AROUND_THE_VERSION = len("Tarantool  (Binary) ") + 36

VERSION_SIZE_MAX: Final = _LINE - _AROUND_THE_VERSION
"""The greatest length of a version, in characters."""


def encode_greeting(version: str, instance_uuid: uuid.UUID, salt: bytes) -> bytes:
    """Encode the greeting: a line with version and UUID, and a line with the salt for AUTH.

    Args:
        version: ``major.minor.patch``; clients derive supported features from it.
        instance_uuid: this server's identity.
        salt: 32 random bytes, different for each connection.

    Returns:
        128 bytes; Node's driver needs them in one chunk.

    Raises:
        ValueError: the version is too long for its line, or the salt is not 32 bytes.
    """
    if len(salt) != SALT_SIZE:
        raise ValueError(f"a salt is {SALT_SIZE} bytes, not {len(salt)}")
    who = f"Tarantool {version} (Binary) {instance_uuid}".encode("ascii")
    if len(who) > _LINE:
        raise ValueError(f"version {version!r} is too long for the greeting")
    return who.ljust(_LINE) + b"\n" + base64.b64encode(salt).ljust(_LINE) + b"\n"
