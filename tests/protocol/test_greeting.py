"""The greeting, the first 128 bytes of every connection."""

import base64
import uuid

import pytest

from iproto_server.protocol import encode_greeting
from iproto_server.protocol.greeting import VERSION_SIZE_MAX

INSTANCE = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
SALT = bytes(range(32))


def test_two_lines_of_64_bytes_say_who_we_are_and_the_salt() -> None:
    greeting = encode_greeting("2.6.0", INSTANCE, SALT)
    assert len(greeting) == 128
    first, second = greeting[:64], greeting[64:]
    assert first == b"Tarantool 2.6.0 (Binary) f81d4fae-7dec-11d0-a765-00a0c91e6bf6".ljust(63) + b"\n"
    assert second == base64.b64encode(SALT).ljust(63) + b"\n"
    assert base64.b64decode(second[:44]) == SALT


@pytest.mark.parametrize(("version", "salt"), [("2.6.0", b""), ("2.6.0", bytes(20)), ("2.6.0-long", SALT)])
def test_versions_and_salts_that_do_not_fit_are_refused(version: str, salt: bytes) -> None:
    with pytest.raises(ValueError, match=r"salt|version"):
        encode_greeting(version, INSTANCE, salt)


def test_a_version_of_as_many_characters_as_there_is_room_for() -> None:
    version = "255.1.0"
    assert len(version) == VERSION_SIZE_MAX
    first = encode_greeting(version, INSTANCE, SALT)[:64]
    assert first == f"Tarantool 255.1.0 (Binary) {INSTANCE}\n".encode()
