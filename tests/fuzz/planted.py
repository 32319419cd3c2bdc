"""Something that is wrong on purpose: what fuzzes must find it."""

from __future__ import annotations

from typing import Final

from tests.fuzz.target import Target


def check(data: bytes) -> None:
    """Fail when the third byte is a large one."""
    assert data[2:3] < b"\xc8"


TARGET: Final = Target(check, [b"abcdef"])
