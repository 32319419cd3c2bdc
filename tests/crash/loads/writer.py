"""The load of rows: single changes of items and names, transactions of several rows, transfers."""

from __future__ import annotations

from typing import Any

from tests.crash import schema
from tests.crash.books.world import Operation, Place, Value
from tests.crash.loads.client import Source
from tests.crash.schema import ACCOUNTS, ITEMS, LABELS, NAMES, TRANSFERS, WORDS, LoadSpace, Row
from tests.iproto_client import (
    CALL,
    DELETE,
    FUNCTION_NAME,
    INDEX_ID,
    INSERT,
    KEY,
    OPERATIONS,
    REPLACE,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
)

TUPLE_FOUND, PROC_LUA = 3, 32


def first_places(client: int) -> dict[Place, Value]:
    """The rows of a client in a new database."""
    keys = [schema.account_key(client, number) for number in range(schema.ACCOUNTS_PER_CLIENT)]
    return {(ACCOUNTS.name, key): schema.account(key) for key in keys}


class Writer(Source):
    """Changes of rows."""

    def next_operation(self) -> Operation:
        """Generate one change, or several in one transaction."""
        what = self.chance.random()
        if what < 0.38:
            return self._change(ITEMS, self._item_key(), schema.item)
        if what < 0.52:
            return self._change(NAMES, self._name_key(), schema.name)
        if what < 0.6:
            number = self.chance.randrange(schema.WORDS_PER_CLIENT)
            return self._change(WORDS, schema.item_key(self.world.client, number), schema.word)
        if what < 0.68:
            number = self.chance.randrange(schema.LABELS_PER_CLIENT)
            return self._change(LABELS, schema.item_key(self.world.client, number), schema.label)
        if what < 0.82:
            return self._transfer()
        return self._write(fail=what > 0.95)

    def _item_key(self) -> int:
        return schema.item_key(self.world.client, self.chance.randrange(schema.ITEMS_PER_CLIENT))

    def _name_key(self) -> str:
        return schema.name_key(self.world.client, self.chance.randrange(schema.NAMES_PER_CLIENT))

    def _change(self, space: LoadSpace, key: Any, make: Any) -> Operation:
        """Generate a change of one row by a single request."""
        place = (space.name, key)
        old: Row | None = self.world.ahead.get(place)
        if old is None:
            kind = self.chance.choice(("insert", "insert", "replace", "upsert"))
        else:
            kind = self.chance.choice(("replace", "update", "update", "upsert", "delete", "duplicate"))
        if kind == "delete":
            body = {SPACE_ID: space.id, INDEX_ID: 0, KEY: [key]}
            return Operation(kind, DELETE, body, {place: None}, [old])
        if kind == "duplicate":
            body = {SPACE_ID: space.id, TUPLE: old}
            return Operation(kind, INSERT, body, {}, error_code=TUPLE_FOUND)
        version = self.world.next_version(place)
        new: Row = make(key, version)
        if kind in ("insert", "replace"):
            request_type = INSERT if kind == "insert" else REPLACE
            return Operation(kind, request_type, {SPACE_ID: space.id, TUPLE: new}, {place: new}, [new])
        # The update increments the version, so that applying it twice or not at all is detected.
        growth = version - (old[1] if old is not None else 0)
        operations = [["+", 1, growth], *(["=", field, new[field]] for field in range(3, len(new)))]
        if kind == "update":
            body = {SPACE_ID: space.id, INDEX_ID: 0, KEY: [key], TUPLE: operations}
            return Operation(kind, UPDATE, body, {place: new}, [new])
        body = {SPACE_ID: space.id, TUPLE: new, OPERATIONS: operations}
        return Operation(kind, UPSERT, body, {place: new}, [])

    def _transfer(self) -> Operation:
        client = self.world.client
        source, target = (
            schema.account_key(client, number)
            for number in self.chance.sample(range(schema.ACCOUNTS_PER_CLIENT), 2)
        )
        amount = self.chance.randrange(1, 100)
        last = self.world.ahead.get((TRANSFERS.name, client))
        number = 1 if last is None else last[1] + 1
        places = {source: -amount, target: amount}
        changes: dict[Place, Value] = {
            (ACCOUNTS.name, key): schema.account(
                key, self.world.ahead[ACCOUNTS.name, key][2] + difference, number
            )
            for key, difference in places.items()
        }
        arguments = [client, number, source, target, amount]
        changes[TRANSFERS.name, client] = arguments
        return Operation("transfer", CALL, _call("crash.transfer", *arguments), changes, [number])

    def _write(self, *, fail: bool) -> Operation:
        """Generate a transaction that replaces and deletes several items and names."""
        client = self.world.client
        keys = [
            schema.item_key(client, number)
            for number in self.chance.sample(range(schema.ITEMS_PER_CLIENT), self.chance.randrange(2, 9))
        ]
        gone = keys[: self.chance.randrange(len(keys))]
        items = [schema.item(key, self._next_version(ITEMS, key)) for key in keys[len(gone) :]]
        names = [
            schema.name(key, self._next_version(NAMES, key))
            for key in {self._name_key() for _ in range(self.chance.randrange(4))}
        ]
        body = _call("crash.write", items, names, gone, fail)
        if fail:
            return Operation("failing write", CALL, body, {}, error_code=PROC_LUA)
        changes: dict[Place, Value] = {(ITEMS.name, key): None for key in gone}
        changes |= {(ITEMS.name, row[0]): row for row in items}
        changes |= {(NAMES.name, row[0]): row for row in names}
        return Operation("write", CALL, body, changes, [len(items) + len(names) + len(gone)])

    def _next_version(self, space: LoadSpace, key: Any) -> int:
        return self.world.next_version((space.name, key))


def _call(procedure: str, *arguments: Any) -> dict[int, Any]:
    return {FUNCTION_NAME: procedure, TUPLE: list(arguments)}
