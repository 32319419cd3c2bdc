"""A space with the same definition on our server and on a real Tarantool, whose answers must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import msgpack

from tests.differential.both import Both
from tests.differential.ddl.system_rows import INDEX, SPACE, TRUNCATE
from tests.iproto_client import (
    DELETE,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OFFSET,
    OPERATIONS,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
    Answer,
)

EQ, REQ, ALL, LT, LE, GE, GT = range(7)

_IDS: Final = count(41_000)
_LIMIT: Final = 100_000


def part(field: int, kind: str = "unsigned", **options: Any) -> dict[str, Any]:
    """A part of an index; fields count from 0."""
    return {"field": field, "type": kind, **options}


class SpacePair:
    """A new space in both servers, of which every answer must be the same.

    Parameters:
        both: The connections.
        fields: Its format.
        primary: The parts of the primary index.
        kind: The kind of the primary index.
    """

    def __init__(
        self,
        both: Both,
        *,
        fields: Sequence[dict[str, Any]] = (),
        primary: Sequence[dict[str, Any]] = (part(0),),
        kind: str = "tree",
    ) -> None:
        self._both = both
        self.id = next(_IDS)
        row = [self.id, 1, f"pair_{self.id}", "memtx", 0, {}, list(fields)]
        assert both.request(INSERT, {SPACE_ID: SPACE, TUPLE: row}).ok
        if primary:
            self.index(0, *primary, kind=kind)

    def index(
        self, number: int, *parts: Any, unique: bool = True, kind: str = "tree", **options: Any
    ) -> Answer:
        """Create an index, or have it refused."""
        row = [self.id, number, f"i{number}", kind, {"unique": unique, **options}, list(parts)]
        return self._both.request(INSERT, {SPACE_ID: INDEX, TUPLE: row})

    def alter(self, number: int, *operations: list[Any]) -> Answer:
        """Update the row of `_index`."""
        body = {SPACE_ID: INDEX, INDEX_ID: 0, KEY: [self.id, number], TUPLE: list(operations)}
        return self._both.request(UPDATE, body)

    def drop(self, number: int) -> Answer:
        """Delete the row of `_index`."""
        return self._both.request(DELETE, {SPACE_ID: INDEX, INDEX_ID: 0, KEY: [self.id, number]})

    def insert(self, *row: Any) -> Answer:
        """INSERT."""
        return self._both.request(INSERT, {SPACE_ID: self.id, TUPLE: row})

    def insert_packed(self, row: bytes) -> Answer:
        """INSERT a row of msgpack."""
        body = b"\x82" + msgpack.packb(SPACE_ID) + msgpack.packb(self.id) + msgpack.packb(TUPLE) + row
        return self._both.request(INSERT, body)

    def replace(self, *row: Any) -> Answer:
        """REPLACE."""
        return self._both.request(REPLACE, {SPACE_ID: self.id, TUPLE: row})

    def update(self, key: list[Any], *operations: list[Any], index: int = 0) -> Answer:
        """UPDATE."""
        body = {SPACE_ID: self.id, INDEX_ID: index, KEY: key, TUPLE: list(operations)}
        return self._both.request(UPDATE, body)

    def upsert(self, row: list[Any], *operations: list[Any]) -> Answer:
        """UPSERT."""
        return self._both.request(UPSERT, {SPACE_ID: self.id, TUPLE: row, OPERATIONS: list(operations)})

    def delete(self, *key: Any, index: int = 0) -> Answer:
        """DELETE."""
        return self._both.request(DELETE, {SPACE_ID: self.id, INDEX_ID: index, KEY: key})

    def truncate(self) -> Answer:
        """Truncate the space."""
        return self._both.request(REPLACE, {SPACE_ID: TRUNCATE, TUPLE: [self.id, 1]})

    def select(self, index: int = 0, *key: Any, iterator: int = EQ, limit: int = _LIMIT) -> Answer:
        """SELECT."""
        return self._both.request(
            SELECT,
            {
                SPACE_ID: self.id,
                INDEX_ID: index,
                ITERATOR: iterator,
                OFFSET: 0,
                LIMIT: limit,
                KEY: key,
            },
        )

    def select_with_all_iterators(self, index: int, *keys: list[Any]) -> None:
        """SELECT by each of the keys with each iterator of a tree."""
        for key in keys:
            for iterator in range(GT + 1):
                self.select(index, *key, iterator=iterator)

    def call(self, method: str, *arguments: Any) -> Answer:
        """CALL a method of the space, or `index.NAME:METHOD`."""
        return self._both.call(f"box.space.pair_{self.id}{method}", *arguments)
