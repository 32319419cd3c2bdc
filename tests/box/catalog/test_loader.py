"""Loading a snapshot and a log gives the same state as the original requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, BoxError, ErrorCode
from iproto_server.box.access.access_control import Privilege
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.loading.space_load import Report
from iproto_server.box.catalog.system_space_ids import COLLATION, FUNC, INDEX, PRIV, SPACE, TRUNCATE, USER
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from tests.box.boxes import accounts, new_box
from tests.box.refusal import refusal
from tests.plugins.profiles import examples

ID = 700


class Refused(Exception):
    """A row could not be loaded."""


def refuse(reason: str, advice: str | None = None) -> None:
    raise Refused(reason)


def into(reports: list[str]) -> Report:
    """Collect the reasons why rows cannot be loaded."""
    return lambda reason, advice=None: reports.append(reason)


def snapshot(box: Box) -> dict[int, list[bytes]]:
    """The contents of a snapshot: the rows of all spaces that are not empty, by space id."""
    return {
        space.id: rows
        for space in sorted(box.catalog, key=lambda space: space.id)
        if not isinstance(space, SysviewSpace) and not space.is_temporary and (rows := list(space.rows()))
    }


def load(contents: dict[int, list[bytes]], report: Report = refuse) -> Box:
    """A box with the contents of a snapshot."""
    box, _ = new_box()
    with Loader(box.catalog, report) as loader:
        for space_id, rows in contents.items():
            loader.load(space_id, rows)
        loader.finish()
    return box


def packed(*rows: Sequence[Any]) -> list[bytes]:
    return [codec.pack(list(row)) for row in rows]


def everything(box: Box) -> dict[Any, Any]:
    """The visible state of a box: spaces with all indexes, and privileges."""
    contents: dict[Any, Any] = {
        space.id: (
            space.name,
            space.owner,
            space.engine,
            space.format_row,
            space.is_local,
            space.is_temporary,
            space.bsize,
            [(index.id, index.name, sorted(index.items())) for index in space.indexes.values()],
        )
        for space in box.catalog
    }
    for name in ("admin", "guest", "public", "ann"):
        user = box.access.find(name)
        contents[name] = user and (user.user_id, user.owner, user.auth, user.universe, user.objects)
    contents["functions"] = box.catalog.users.functions
    return contents


def plain_box() -> Box:
    """A space of accounts, and spaces with all types of indexes."""
    box, _ = new_box()
    accounts(box)
    kinds = box.schema.create_space("kinds", is_local=True)
    kinds.create_index("primary", parts=[(1, "string"), (0, "unsigned")])
    kinds.create_index("hash", type="hash", parts=[(2, "scalar")])
    kinds.create_index("nullable", parts=[{"field": 3, "type": "number", "is_nullable": True}])
    kinds.create_index("many", parts=[(0, "unsigned")], unique=False)
    kinds.create_index("scalars", parts=[(2, "scalar"), (1, "string"), (0, "unsigned")])
    for row in ([1, "b", True, 1.5], [2, "a", 1, None], [3, "a", "x"], [3, "c", b"x", None, {"more": []}]):
        kinds.insert(row)
    hashed = box.schema.create_space("hashed")
    hashed.create_index("primary", type="hash", parts=[(0, "integer")])
    for number in range(-5, 5):
        hashed.insert([number])
    box.schema.create_space("empty")
    box.schema.create_space("temporary", temporary=True).create_index("primary")
    box.schema.user.create("ann", password="secret")
    box.schema.user.grant("ann", "read,write", "space", "kinds")
    box.schema.role.create("clerk")
    box.schema.role.grant("clerk", "execute", "universe")
    box.schema.user.grant("ann", "clerk")
    box.schema.func.create("compute")
    return box


class TestSnapshots:
    def test_a_loaded_box_is_the_one_that_was_saved(self) -> None:
        box = plain_box()
        copy = load(snapshot(box))
        assert everything(copy) == everything(box)
        assert copy.schema.user.info("ann") == box.schema.user.info("ann")
        copy.space.kinds.insert([9, "z", 9, 9])
        with refusal(ErrorCode.TUPLE_FOUND):
            copy.space.kinds.insert([9, "zz", 9, 9])

    def test_a_new_box_is_not_part_of_it(self) -> None:
        """A database with other system spaces than a new box is loaded unchanged."""
        contents = snapshot(plain_box())
        del contents[COLLATION]
        contents[INDEX] = [raw for raw in contents[INDEX] if codec.unpack(raw)[:2] != [296, 1]]
        contents[SPACE].append(codec.pack([400, 1, "_later", "memtx", 0, {}, []]))
        contents[INDEX].append(codec.pack([400, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]]))
        contents[400] = packed([1, "from a later version"])
        box = load(contents)
        assert len(box.space._collation) == 0
        assert [index.id for index in box.space._func.index] == [0, 2]
        assert [list(row) for row in box.space._later.select()] == [[1, "from a later version"]]
        assert {number: sorted(rows) for number, rows in snapshot(box).items()} == {
            number: sorted(rows) for number, rows in contents.items()
        }

    def test_open_sessions_have_the_loaded_privileges(self) -> None:
        box, _ = new_box()
        session = box.session.open("binary", None)
        saved = plain_box()
        saved.schema.user.grant("guest", "read", "space", "kinds")
        with Loader(box.catalog, refuse) as loader:
            for space_id, rows in snapshot(saved).items():
                loader.load(space_id, rows)
            loader.finish()
        assert session.credentials is box.access.by_name("guest")
        assert session.credentials.objects["space", box.space.kinds.id] == Privilege.READ

    def test_functions_of_old_tarantools_have_fewer_fields(self) -> None:
        contents = snapshot(plain_box())
        contents[FUNC].append(codec.pack([500, 1, "old", 1, "LUA"]))
        function = load(contents).catalog.users.functions["old"]
        assert (function.id, function.setuid, function.language) == (500, True, "LUA")

    def test_system_rows_behind_others_take_effect_too(self) -> None:
        contents = snapshot(plain_box())
        late = {
            SPACE: packed([ID, 1, "late", "memtx", 0, {}, []]),
            INDEX: packed([ID, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]]),
            ID: packed([1], [2]),
        }
        box, _ = new_box()
        with Loader(box.catalog, refuse) as loader:
            for each in (contents, late):
                for space_id, rows in each.items():
                    loader.load(space_id, rows)
            loader.finish()
        assert [list(row) for row in box.space.late.select()] == [[1], [2]]

    @examples(30)
    @given(st.permutations(range(200)))
    def test_rows_may_come_in_any_order(self, order: list[int]) -> None:
        box, _ = new_box()
        accounts(box)
        space_id = box.space.accounts.id
        contents = snapshot(box)
        contents[space_id] = packed(*([number, str(number), number % 7] for number in order))
        loaded = load(contents).space.accounts
        assert [row[0] for row in loaded.select()] == list(range(200))
        assert [row[0] for row in loaded.index.balance.select()] == sorted(
            range(200), key=lambda n: (n % 7, n)
        )


ACCOUNTS = 512


@pytest.fixture
def contents() -> dict[int, list[bytes]]:
    """A snapshot of a box with accounts."""
    box, _ = new_box()
    assert accounts(box).id == ACCOUNTS
    return snapshot(box)


class TestWhatCannotBeLoaded:
    """Strict loading raises the first fault; lenient loading reports and skips faulty rows."""

    def reports(self, contents: dict[int, list[bytes]], expected: str) -> Box:
        """Check the reports; return the box without faulty rows."""
        with pytest.raises(Refused) as caught:
            load(contents)
        assert str(caught.value) == expected
        reports: list[str] = []
        box = load(contents, into(reports))
        assert reports == [expected]
        assert everything(load(snapshot(box))) == everything(box)
        return box

    def test_a_primary_key_that_is_there(self, contents: dict[int, list[bytes]]) -> None:
        contents[ACCOUNTS] += packed([2, "Ben", 5])
        box = self.reports(
            contents, "Duplicate key exists in unique index 'primary' in space 'accounts': [2]"
        )
        assert [row[1] for row in box.space.accounts.select()] == ["Ann", "Bob", "Cid"]

    def test_a_unique_secondary_key_that_is_there(self, contents: dict[int, list[bytes]]) -> None:
        contents[ACCOUNTS] += packed([4, "Ann", 5])
        box = self.reports(
            contents, "Duplicate key exists in unique index 'name' in space 'accounts': ['Ann']"
        )
        assert [row[0] for row in box.space.accounts.select()] == [1, 2, 3]
        assert len(box.space.accounts.index.balance.tree) == 3

    @pytest.mark.parametrize("row", [["five", "Eve", 5], [5, 5, 5], [5], [-1, "Eve", 5]])
    def test_a_row_that_does_not_fit_an_index(self, contents: dict[int, list[bytes]], row: list[Any]) -> None:
        contents[ACCOUNTS] += packed(row)
        reports: list[str] = []
        box = load(contents, into(reports))
        (report,) = reports
        assert report.startswith("a row of space 'accounts': it does not fit its space (")
        assert report.endswith(f": {row}")
        assert len(box.space.accounts) == 3

    def test_rows_of_a_space_that_there_is_not(self, contents: dict[int, list[bytes]]) -> None:
        contents[900] = packed([1], [2])
        self.reports(contents, "there are rows of space 900, which has no definition")

    @pytest.mark.parametrize(
        ("options", "kind", "parts", "reason"),
        [
            ({"unique": False}, "rtree", [[3, "array"]], "This server does not support RTREE indexes"),
            ({"unique": False}, "bitset", [[3, "unsigned"]], "This server does not support BITSET indexes"),
            (
                {"unique": True, "func": 66},
                "tree",
                [{"field": 1, "type": "string"}],
                "This server does not support functional indexes",
            ),
            (
                {"unique": True},
                "tree",
                [{"field": 1, "type": "string", "collation": 999}],
                "Wrong index options (field 1): collation was not found by ID",
            ),
        ],
    )
    def test_an_index_that_is_not_served(
        self,
        contents: dict[int, list[bytes]],
        options: dict[str, Any],
        kind: str,
        parts: list[Any],
        reason: str,
    ) -> None:
        contents[INDEX] += packed([ACCOUNTS, 3, "odd", kind, options, parts])
        box = self.reports(contents, f"index 'odd' of space 'accounts': {reason}")
        assert [index.name for index in box.space.accounts.index] == ["primary", "name", "balance"]

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ([ID, 1, "disk", "vinyl", 0, {}, []], "Space engine 'vinyl' does not exist"),
            (
                [ID, 1, "agreed", "memtx", 0, {"is_sync": True}, []],
                "This server does not support synchronous spaces",
            ),
            (
                [ID, 1, "shown", "memtx", 0, {"view": True, "sql": "SELECT 1"}, []],
                "This server does not support SQL views",
            ),
        ],
    )
    def test_a_space_that_is_not_served(
        self, contents: dict[int, list[bytes]], row: list[Any], reason: str
    ) -> None:
        contents[SPACE] += packed(row)
        self.reports(contents, f"space '{row[2]}': {reason}")

    def test_a_row_of_another_system_space(self, contents: dict[int, list[bytes]]) -> None:
        contents[USER] += packed([40, 1])
        reports: list[str] = []
        load(contents, into(reports))
        (report,) = reports
        assert report == "a row of space '_user': Tuple field 3 required by space format is missing: [40, 1]"


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
