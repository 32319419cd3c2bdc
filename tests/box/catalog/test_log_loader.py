"""Loading logs: changes of rows and definitions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import BoxError, ErrorCode
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.system_space_ids import INDEX, PRIV, SPACE, TRUNCATE, USER
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from tests.box.boxes import accounts, new_box
from tests.box.catalog.loads import ACCOUNTS, ID, everything, load, plain_box, refuse, snapshot
from tests.box.refusal import refusal
from tests.plugins.profiles import examples


@pytest.fixture
def contents() -> dict[int, list[bytes]]:
    """A snapshot of a box with accounts."""
    box, _ = new_box()
    assert accounts(box).id == ACCOUNTS
    return snapshot(box)


class Log:
    """Makes requests to one box and passes them to a loader of another, as a log would.

    Both begin with the same snapshot.
    """

    def __init__(self, contents: dict[int, list[bytes]]) -> None:
        self.box = load(contents)
        self.copy, _ = new_box()
        self.loader = Loader(self.copy.catalog, refuse)
        for space_id, rows in contents.items():
            self.loader.load(space_id, rows)
        self.loader.end_snapshot()

    def insert(self, space_id: int, row: list[Any]) -> None:
        self.box.space[space_id].insert(row)
        self.loader.changes(space_id).insert(codec.pack(row))

    def replace(self, space_id: int, row: list[Any]) -> None:
        self.box.space[space_id].replace(row)
        self.loader.changes(space_id).replace(codec.pack(row))

    def delete(self, space_id: int, key: list[Any], index: int = 0) -> None:
        self.box.space[space_id].index[index].delete(key)
        self.loader.changes(space_id).delete(codec.pack(key), index)

    def update(self, space_id: int, key: list[Any], operations: list[list[Any]], index: int = 0) -> None:
        self.box.space[space_id].index[index].update(key, operations)
        self.loader.changes(space_id).update(codec.pack(key), codec.pack(operations), index, 0)

    def upsert(self, space_id: int, row: list[Any], operations: list[list[Any]]) -> None:
        self.box.space[space_id].upsert(row, operations)
        self.loader.changes(space_id).upsert(codec.pack(row), codec.pack(operations), 0)

    def check(self) -> None:
        """Check that both boxes are the same now."""
        self.loader.finish()
        assert everything(self.copy) == everything(self.box)


@pytest.fixture
def log(contents: dict[int, list[bytes]]) -> Log:
    return Log(contents)


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "replace", "delete", "update", "upsert", "delete by name"]),
        st.integers(1, 6),
        st.sampled_from(["Ann", "Bob", "Cid", "Dan", "Eve", "Fay"]),
        st.integers(-2, 2),
    ),
    max_size=30,
)


class TestLogs:
    @examples(30)
    @given(REQUESTS)
    def test_requests_have_their_effects_again(self, requests: list[tuple[str, int, str, int]]) -> None:
        box, _ = new_box()
        accounts(box)
        log = Log(snapshot(box))
        for kind, number, name, amount in requests:
            row, sum_up = [number, name, amount], [["+", 2, amount]]
            with suppress(BoxError):  # refused requests are not passed on
                if kind == "insert":
                    log.insert(ACCOUNTS, row)
                elif kind == "replace":
                    log.replace(ACCOUNTS, row)
                elif kind == "delete":
                    log.delete(ACCOUNTS, [number])
                elif kind == "update":
                    log.update(ACCOUNTS, [number], sum_up)
                elif kind == "upsert":
                    log.upsert(ACCOUNTS, row, sum_up)
                else:
                    log.delete(ACCOUNTS, [name], 1)
        log.check()

    def test_a_row_may_be_named_by_another_unique_key(self, log: Log) -> None:
        log.update(ACCOUNTS, ["Bob"], [["=", 2, 200]], index=1)
        log.delete(ACCOUNTS, ["Cid"], index=1)
        log.update(ACCOUNTS, ["Zoe"], [["=", 2, 200]], index=1)
        log.delete(ACCOUNTS, ["Zoe"], index=1)
        log.check()

    def test_missing_rows_are_neither_changed_nor_removed(self, log: Log) -> None:
        log.update(ACCOUNTS, [9], [["=", 2, 200]])
        log.delete(ACCOUNTS, [9])
        log.check()

    def test_existing_rows_are_not_inserted_again(self, log: Log) -> None:
        with refusal(ErrorCode.TUPLE_FOUND, "'primary' in space 'accounts'"):
            log.loader.changes(ACCOUNTS).insert(codec.pack([1, "Bob", 20]))

    def test_an_upsert_that_would_change_the_key_is_none(self, log: Log) -> None:
        log.upsert(ACCOUNTS, [1, "Ann", 0], [["+", 0, 100]])
        log.check()

    def test_a_hash_index_can_be_primary(self) -> None:
        box = plain_box()
        log, space_id = Log(snapshot(box)), box.space.hashed.id
        log.insert(space_id, [100])
        log.replace(space_id, [100, "again"])
        log.delete(space_id, [-1])
        with refusal(ErrorCode.TUPLE_FOUND):
            log.loader.changes(space_id).insert(codec.pack([100]))
        log.check()


SPACE_ROW = [ID, 1, "t", "memtx", 0, {}, []]


def index_row(index_id: int, name: str, parts: list[Any], **options: Any) -> list[Any]:
    return [ID, index_id, name, "tree", {"unique": True, **options}, parts]


@pytest.fixture
def ddl_log(log: Log) -> Log:
    """A log that creates a space with two indexes and three rows."""
    log.insert(SPACE, SPACE_ROW)
    log.insert(INDEX, index_row(0, "primary", [[0, "unsigned"]]))
    log.insert(INDEX, index_row(1, "third", [[2, "unsigned"]]))
    for row in ([1, "a", 30], [2, "b", 20], [3, "c", 10]):
        log.insert(ID, row)
    return log


def truncate_twice(log: Log) -> None:
    log.insert(TRUNCATE, [ID, 1])
    log.insert(ID, [6, "f", 6])
    log.replace(TRUNCATE, [ID, 2])


DDL: dict[str, Callable[[Log], None]] = {
    "nothing": lambda log: None,
    "rename the space": lambda log: log.update(SPACE, [ID], [["=", 2, "renamed"]]),
    "give a format": lambda log: log.update(SPACE, [ID], [["=", 6, [{"name": "id", "type": "unsigned"}]]]),
    "another index": lambda log: log.insert(INDEX, index_row(2, "second", [[1, "string"]])),
    "another key": lambda log: log.update(INDEX, [ID, 1], [["=", 5, [[1, "string"]]]]),
    "rename an index": lambda log: log.update(INDEX, [ID, 1], [["=", 2, "renamed"]]),
    "no longer unique": lambda log: log.update(INDEX, [ID, 1], [["=", 4, {"unique": False}]]),
    "another primary key": lambda log: log.update(INDEX, [ID, 0], [["=", 5, [[2, "unsigned"]]]]),
    "a hash": lambda log: log.update(INDEX, [ID, 0], [["=", 3, "hash"]]),
    "drop an index": lambda log: log.delete(INDEX, [ID, 1]),
    "truncate": lambda log: log.upsert(TRUNCATE, [ID, 1], [["+", 1, 1]]),
    "truncate twice": truncate_twice,
    "make a user": lambda log: log.insert(USER, [40, 1, "ann", "user", {}]),
}


class TestDDL:
    @pytest.mark.parametrize("change", DDL)
    def test_it_has_its_effects_again_and_rows_follow(self, ddl_log: Log, change: str) -> None:
        DDL[change](ddl_log)
        ddl_log.replace(ID, [4, "d", 5])
        ddl_log.insert(ID, [5, "e", 4])
        ddl_log.check()

    def test_a_space_can_be_dropped(self, ddl_log: Log) -> None:
        ddl_log.delete(INDEX, [ID, 1])
        ddl_log.delete(INDEX, [ID, 0])
        ddl_log.delete(SPACE, [ID])
        with refusal(ErrorCode.NO_SUCH_SPACE):
            ddl_log.loader.changes(ID)
        ddl_log.check()

    def test_users_come_get_rights_and_go(self, ddl_log: Log) -> None:
        ddl_log.insert(USER, [40, 1, "ann", "user", {}])
        ddl_log.insert(PRIV, [1, 40, "space", ID, 3])
        assert ddl_log.copy.access.by_name("ann").objects["space", ID] == 3
        ddl_log.delete(PRIV, [40, "space", ID])
        ddl_log.check()

    def test_secondary_indexes_of_users_spaces_are_built_at_the_end(self, ddl_log: Log) -> None:
        ddl_log.insert(INDEX, index_row(2, "second", [[1, "string"]]))
        (primary, *others) = ddl_log.copy.catalog.space(ID).indexes.values()
        assert len(primary) == 3
        assert [len(index) for index in others] == [0, 0]
        ddl_log.check()

    def test_changes_that_requests_may_not_make_are_refused(self, ddl_log: Log) -> None:
        with refusal(ErrorCode.TUPLE_FOUND):
            ddl_log.loader.changes(SPACE).insert(codec.pack(SPACE_ROW))
        with refusal(ErrorCode.DROP_SPACE):
            ddl_log.loader.changes(SPACE).delete(codec.pack([ID]))
        ddl_log.check()


@pytest.mark.parametrize("row", [[70, 1, "old", 1], [70, 1, "old", 1, "LUA"]])
def test_a_function_that_was_defined_before_tarantool_2_2_is_written_again_and_goes(row: list[Any]) -> None:
    box = new_box()[0]
    functions = box.catalog.space_by_name("_func")
    functions.set_format(Format.parse([], "_func"))
    with box.catalog.access.loading():
        box.catalog.load(functions, codec.pack(row))
        box.catalog.users.load_function(row)
    assert box.catalog.users.setuid["old"] == 1
    box.space["_func"].replace([*row, "LUA"][:5])
    box.space["_func"].delete([70])
    assert "old" not in box.catalog.users.functions
