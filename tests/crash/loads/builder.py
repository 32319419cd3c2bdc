"""The load of definitions: spaces and indexes are created, filled, truncated and dropped."""

from __future__ import annotations

from typing import Any

from tests.crash import schema
from tests.crash.books.world import Operation, Place, Value
from tests.crash.loads.client import Source
from tests.crash.schema import BY_VALUE, EXTRA, PRIMARY
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE

ROWS = 30
"""The number of different rows of a space."""


class Builder(Source):
    """Generates DDL, and changes of rows in between."""

    def next_operation(self) -> Operation:
        """Generate a change of a space, its definition or a row."""
        name = f"{EXTRA}{self.chance.randrange(schema.EXTRA_SPACES)}"
        indexes = self.world.ahead.get(("space", name))
        if indexes is None:
            return self._create(name)
        what = self.chance.random()
        if what < 0.8:
            return self._put(name)
        if what < 0.9:
            if BY_VALUE in indexes:
                changes = {("space", name): [PRIMARY]}
                return _operation("drop index", "crash.drop_index", [name], changes)
            changes = {("space", name): [PRIMARY, BY_VALUE]}
            return _operation("create index", "crash.add_index", [name], changes)
        emptied: dict[Place, Value] = {place: None for place in self.world.ahead if place[0] == name}
        if what < 0.94:
            return _operation("truncate", "crash.truncate", [name], emptied)
        return _operation("drop space", "crash.drop", [name], {**emptied, ("space", name): None})

    def _create(self, name: str) -> Operation:
        rows = [
            schema.extra(key, self.world.next_version((name, key)))
            for key in self.chance.sample(range(ROWS), self.chance.randrange(5))
        ]
        changes: dict[Place, Value] = {(name, row[0]): row for row in rows}
        changes["space", name] = [PRIMARY]
        return _operation("create space", "crash.create", [name, rows], changes, [len(rows)])

    def _put(self, name: str) -> Operation:
        key = self.chance.randrange(ROWS)
        row = schema.extra(key, self.world.next_version((name, key)))
        return _operation("put", "crash.put", [name, row], {(name, key): row}, [row])


def _operation(
    kind: str, procedure: str, arguments: list[Any], changes: dict[Place, Value], data: Any = None
) -> Operation:
    return Operation(kind, CALL, {FUNCTION_NAME: procedure, TUPLE: arguments}, changes, data)
