"""The answer of a server, and the part of it that must be the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import msgpack

from tests.differential.random.request import Request
from tests.differential.random.values.packing import readable
from tests.iproto_client import DATA, ERROR, ERROR_24, REQUEST_TYPE, SCHEMA_VERSION, SYNC

_STACK: Final = 0
_STACK_PLACES: Final = {1, 2}
"""File and line in the source where an error was raised."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response.

    Parameters:
        status: 0, or 0x8000 and the error code.
        sync: The number of the request.
        schema_version: The schema's version; both servers are made to count from the same number.
        body: The body's bytes.
    """

    status: int
    sync: int
    schema_version: int
    body: bytes

    @classmethod
    def read(cls, frame: bytes) -> Answer:
        """Read a response.

        Parameters:
            frame: Header and body.
        """
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(frame[:64])
        header = unpacker.unpack()
        return cls(
            header[REQUEST_TYPE], header[SYNC], header.get(SCHEMA_VERSION, -1), frame[unpacker.tell() :]
        )

    @property
    def code(self) -> int:
        """Tarantool's error code; 0 without an error."""
        return self.status & 0x7FFF

    @property
    def error(self) -> dict[int, Any]:
        """The body of an error, without places in the source."""
        body: dict[int, Any] = msgpack.unpackb(
            self.body, strict_map_key=False, unicode_errors="surrogateescape"
        )
        for each in body.get(ERROR, {}).get(_STACK, []):
            for key in _STACK_PLACES:
                each.pop(key, None)
        return body

    @property
    def text(self) -> str:
        """Tarantool's error text; empty without an error."""
        return str(self.error.get(ERROR_24, "")) if self.status else ""

    def outcome(self, request: Request) -> tuple[object, ...]:
        """Return the part that must be the same for both servers."""
        body: object = self.body
        if self.status:
            body = self.error
        elif request.unordered:
            body = sorted(self.rows())
        return self.status, self.sync, self.schema_version, body

    def rows(self) -> list[bytes]:
        """The bytes of each row of a success."""
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(self.body)
        assert unpacker.read_map_header() == 1
        assert unpacker.unpack() == DATA
        count = unpacker.read_array_header()
        ends = [unpacker.tell()]
        for _ in range(count):
            unpacker.skip()
            ends.append(unpacker.tell())
        return [self.body[start:end] for start, end in pairwise(ends)]

    def __str__(self) -> str:
        about = f"(sync {self.sync}, schema version {self.schema_version})"
        if self.status:
            return f"error {self.code}: {self.text} {about} {self.error.get(ERROR, '')}"
        return f"{readable(self.body)} {about} {self.body.hex()}"


@dataclass(frozen=True, slots=True)
class Closed:
    """Replaces an answer if the server has closed the connection.

    Parameters:
        reason: The reason, if known.
    """

    reason: str = "the connection was closed"
    status: int = -1
    code: int = -1
    text: str = ""

    def outcome(self, request: Request) -> tuple[object, ...]:
        """Return the part that must be the same for both servers."""
        return (self.reason,)

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of checking our indexes.

    Parameters:
        faults: The faults, one line each.
    """

    faults: Sequence[str] = ()
    status: int = 0
    text: str = ""

    @property
    def code(self) -> int:
        """Identifies the kind of difference."""
        return -2 if self.faults else 0

    def outcome(self, request: Request) -> tuple[object, ...]:
        """Return the part that must be the same for both servers."""
        return tuple(self.faults)

    def __str__(self) -> str:
        return "\n             ".join(self.faults) or "no faults"


Reply = Answer | Closed | Inspection
