"""A consistent view of all contents of a server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from tests.crash import schema
from tests.crash.books.world import Place, Value
from tests.crash.schema import BUILDER, EXTRA, LOAD_SPACES, Row
from tests.iproto_client import IprotoClient


class FoundIndex(NamedTuple):
    """The contents of an index.

    Parameters:
        name: Its name.
        size: The number of rows it reports.
        rows: Its rows, in order.
    """

    name: str
    size: int
    rows: list[Row]


@dataclass(slots=True)
class FoundSpace:
    """The contents of a space.

    Attributes:
        length: The number of rows it reports.
        indexes: Its indexes, the primary one first.
    """

    length: int
    indexes: list[FoundIndex]

    @property
    def rows(self) -> list[Row]:
        """The rows, by the primary index."""
        return self.indexes[0].rows if self.indexes else []


@dataclass(slots=True)
class Audit:
    """All contents at one moment.

    Attributes:
        spaces: The stored spaces, including system spaces, by name.
        stats: The answer of `queue.stats`; None without a queue.
        time: A later time, in seconds since 1970.
    """

    spaces: dict[str, FoundSpace]
    stats: Mapping[str, int] | None
    time: float

    @classmethod
    def of(cls, host: str, port: int) -> Self:
        """Read everything from a running server.

        Raises:
            ConnectionError: The connection was lost.
            AssertionError: The server refused the call.
        """
        with IprotoClient(host, port) as client:
            return cls.parse(client.call("crash.audit").data[0])

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> Self:
        """Read everything by the application's procedure `crash.audit`."""
        spaces = {
            name: FoundSpace(length, [FoundIndex(*index) for index in indexes])
            for name, (length, indexes) in answer["spaces"].items()
        }
        return cls(spaces, answer.get("stats"), time.time())

    def rows(self, space: str) -> list[Row]:
        """Return the rows of a space; empty if it does not exist."""
        found = self.spaces.get(space)
        return found.rows if found is not None else []

    def places(self) -> dict[int, dict[Place, Value]]:
        """Return the contents of the clients' places, by client."""
        places: dict[int, dict[Place, Value]] = {client: {} for client in range(schema.CLIENTS)}
        for space in LOAD_SPACES.values():
            for row in self.rows(space.name):
                key = space.key(row)
                places.setdefault(space.owner(key), {})[space.name, key] = row
        for name, found in self.spaces.items():
            if name.startswith(EXTRA):
                places[BUILDER]["space", name] = [index.name for index in found.indexes]
                places[BUILDER] |= {(name, row[0]): row for row in found.rows}
        return places
