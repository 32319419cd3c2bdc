"""A database whose spaces are made, changed and dropped while a stream follows it."""

from __future__ import annotations

from pathlib import Path

from tests.storage.databases import new_database, write_log
from tests.storage.files import Request, insertion, replacement

SPACE, INDEX = 280, 288


def space(number: int, name: str, *fields: str) -> Request:
    """The row of a space."""
    form = [{"name": field, "type": "any" if place else "unsigned"} for place, field in enumerate(fields)]
    return replacement(SPACE, number, 1, name, "memtx", 0, {}, form)


def primary(number: int) -> Request:
    """The row of its primary index."""
    return insertion(INDEX, number, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]])


class Database:
    """A database whose spaces change; each call is a log of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._clock = dict(new_database(directory).vclock)
        self._previous: dict[int, int] | None = None

    def log(self, *requests: Request) -> None:
        """Log transactions of one row each."""
        write_log(self.directory, self._clock, [[request] for request in requests], previous=self._previous)
        self._previous = self._clock
        self._clock = {1: self._clock.get(1, 0) + len(requests)}
