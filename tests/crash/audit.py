"""One look at everything that a server has."""

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
    """What an index holds.

    Args:
        name: Its name.
        size: How many rows it says that it has.
        rows: Its rows, in its order.
    """

    name: str
    size: int
    rows: list[Row]


@dataclass(slots=True)
class FoundSpace:
    """What a space holds.

    Attributes:
        length: How many rows it says that it has.
        indexes: Its indexes, the primary one first; none if it has none.
    """

    length: int
    indexes: list[FoundIndex]

    @property
    def rows(self) -> list[Row]:
        """The rows, by the primary index."""
        return self.indexes[0].rows if self.indexes else []


@dataclass(slots=True)
class Audit:
    """Everything at one moment.

    Attributes:
        spaces: What is stored, system spaces included, by name.
        stats: What `queue.stats` says; None where there is no queue.
        time: A moment after that one, in seconds since 1970.
    """

    spaces: dict[str, FoundSpace]
    stats: Mapping[str, int] | None
    time: float

    @classmethod
    def of(cls, host: str, port: int) -> Self:
        """Look at a running server.

        Raises:
            ConnectionError: It went away.
            AssertionError: It refuses.
        """
        with IprotoClient(host, port) as client:
            return cls.parse(client.call("crash.audit").data[0])

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> Self:
        """Read what the applications' `crash.audit` answers, just now."""
        spaces = {
            name: FoundSpace(length, [FoundIndex(*index) for index in indexes])
            for name, (length, indexes) in answer["spaces"].items()
        }
        return cls(spaces, answer.get("stats"), time.time())

    def rows(self, space: str) -> list[Row]:
        """The rows of a space; none if there is no such space."""
        found = self.spaces.get(space)
        return found.rows if found is not None else []

    def places(self) -> dict[int, dict[Place, Value]]:
        """What is at the clients' places, by client."""
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
