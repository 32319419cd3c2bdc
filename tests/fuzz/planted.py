"""A planted fault, which a fuzzer must find."""

from __future__ import annotations

from typing import Final

from tests.fuzz.target import Target


def check(data: bytes) -> None:
    """Fail if the third byte is large."""
    assert data[2:3] < b"\xc8"


TARGET: Final = Target(check, [b"abcdef"])
