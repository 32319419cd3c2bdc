"""DDL as rows of the system spaces, asked of a real Tarantool and of ours.

Compared are the answers, how far the schema's version rose, and the rows that the system spaces hold then.

Different on purpose, and therefore not among the cases:

- Engines other than memtx, synchronous spaces, views of one's own, RTREE and BITSET indexes, functional and
  multikey indexes, JSON paths and collations in index parts, sequences, constraints: they are refused, they
  are not served.
- A function's body is Lua: it is kept and never run.
- Ids beyond 32 bits: Tarantool cuts the number but stores the row as it came, and has a row about another
  object then.
- An unknown option of a function, a password hash that is no string: Tarantool 2.6.0 crashes, or reads what
  is not its own.
- The text about an invalid name ends, in Tarantool, at a zero byte in the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.differential.both import Both
from tests.differential.system_rows import (
    ADMIN,
    ALL,
    EXECUTE,
    FUNC,
    INDEX,
    PRIV,
    READ,
    SPACE,
    TRUNCATE,
    USER,
    WRITE,
    Request,
    a_function,
    a_privilege,
    a_space,
    a_user,
    an_index,
    delete,
    insert,
    replace,
    select,
    set_field,
    update,
    upsert,
)
from tests.iproto_client import (
    DELETE,
    INDEX_ID,
    INSERT,
    KEY,
    PING,
    REPLACE,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
    IprotoClient,
)

ANN, OWNER, READER, WRITER = 900, 901, 902, 903
EMPTY, FILLED, TRUNCATED, OWNED, NEW = 800, 801, 802, 803, 810
FUNCTION, GRANTED, OWNED_FUNCTION = 950, 951, 952
LAST_ID = 2**31 - 1
OWN_IDS = frozenset({*range(800, 1000), 32000, 32001, LAST_ID, LAST_ID + 1})
"""The spaces, users and functions of these tests, among those of the servers' other tests."""

SECRET = {"chap-sha1": "FOZVZ6vbUTXQz9mnCzAywXmknuc="}
FORMAT = [
    {"name": "id", "type": "unsigned"},
    {"name": "word", "type": "string"},
    {"name": "more", "type": "any", "is_nullable": True},
]


WORLD = [
    insert(USER, a_user(ANN, name="ann", auth=SECRET)),
    insert(USER, a_user(OWNER, name="owner")),
    insert(USER, a_user(READER, name="reader", kind="role")),
    insert(USER, a_user(WRITER, name="writer", kind="role")),
    insert(SPACE, a_space(EMPTY, name="empty")),
    insert(SPACE, a_space(FILLED, name="filled", fields=FORMAT)),
    insert(INDEX, an_index(FILLED, 0, "primary")),
    insert(INDEX, an_index(FILLED, 1, "word", options={"unique": False}, parts=[[1, "string"]])),
    insert(FILLED, [1, "same"]),
    insert(FILLED, [2, "same", 5]),
    insert(SPACE, a_space(TRUNCATED, name="truncated")),
    insert(INDEX, an_index(TRUNCATED, 0, "primary")),
    insert(TRUNCATED, [1]),
    insert(TRUNCATE, [TRUNCATED, 1]),
    insert(SPACE, a_space(OWNED, OWNER, name="owned")),
    insert(FUNC, a_function(FUNCTION, name="some.function")),
    insert(FUNC, a_function(GRANTED, name="granted.function")),
    insert(FUNC, a_function(OWNED_FUNCTION, OWNER, name="owned.function")),
    insert(PRIV, a_privilege(ANN, "space", EMPTY)),
    insert(PRIV, a_privilege(ANN, "function", GRANTED, EXECUTE)),
    insert(PRIV, a_privilege(READER, "role", WRITER, EXECUTE)),
]
"""What there is when a case begins."""


class World:
    """The world in both servers.

    Args:
        both: The servers.
    """

    def __init__(self, both: Both) -> None:
        self.both = both

    def ask(self, *requests: Request) -> None:
        """Ask both servers, one request after the other."""
        for request in requests:
            before = self._versions()
            self.both.request(request.kind, request.body)
            after = self._versions()
            rises = [late - early for early, late in zip(before, after, strict=True)]
            assert rises[0] == rises[1], f"the schema's version rose by {rises[0]}, not {rises[1]}: {request}"

    def compare_rows(self) -> None:
        """Find the same rows in the system spaces."""
        for space in (SPACE, INDEX, TRUNCATE, FUNC, USER, PRIV):
            ours, theirs = (own_rows(client, space) for client in (self.both.ours, self.both.theirs))
            assert ours == theirs

    def clear(self) -> None:
        """Remove everything of these tests."""
        for client in (self.both.ours, self.both.theirs):
            for space in (PRIV, TRUNCATE, INDEX, SPACE, FUNC, USER):
                rows = own_rows(client, space)
                for row in sorted(rows, key=lambda row: row[1] if space == INDEX else 0, reverse=True):
                    key = row[1:4] if space == PRIV else row[:2] if space == INDEX else row[:1]
                    answer = client.request(DELETE, {SPACE_ID: space, INDEX_ID: 0, KEY: key})
                    assert answer.ok, (row, answer)

    def _versions(self) -> tuple[int, int]:
        clients = (self.both.ours, self.both.theirs)
        ours, theirs = (client.request(PING).schema_version for client in clients)
        return ours, theirs


def own_rows(client: IprotoClient, space: int) -> list[Any]:
    """The rows of a system space that belong to these tests."""
    request = select(space)
    rows = client.request(request.kind, request.body).data
    if space == PRIV:
        return [row for row in rows if row[1] in OWN_IDS or row[3] in OWN_IDS]
    return [row for row in rows if row[0] in OWN_IDS]


@pytest.fixture
def world(both: Both) -> Iterator[World]:
    world = World(both)
    world.clear()
    for request in WORLD:
        assert both.request(request.kind, request.body).ok
    yield world
    world.clear()


LONG = "x" * 65001
LONGEST = "x" * 65000

SPACES: list[Request | list[Request]] = [
    insert(SPACE, a_space()),
    insert(SPACE, a_space(owner=ANN)),
    insert(SPACE, a_space(owner=9999)),
    insert(SPACE, a_space(owner=READER)),
    insert(SPACE, a_space(fields=FORMAT)),
    insert(SPACE, a_space(field_count=3, fields=FORMAT)),
    insert(SPACE, a_space(field_count=2, fields=FORMAT)),
    insert(SPACE, a_space(field_count=2**32 - 1)),
    insert(SPACE, a_space(field_count=2**31)),
    insert(SPACE, a_space(flags={"temporary": True})),
    insert(SPACE, a_space(flags={"group_id": 1})),
    insert(SPACE, a_space(flags={"group_id": 0})),
    insert(SPACE, a_space(flags={"is_sync": False})),
    insert(SPACE, a_space(flags={"defer_deletes": True})),
    insert(SPACE, a_space(flags={"temporary": True, "is_sync": False})),
    insert(SPACE, a_space(flags={"temporary": True, "group_id": 1})),
    insert(SPACE, [*a_space(), "more", {"than": "known"}]),
    insert(SPACE, a_space()[:6]),
    insert(SPACE, a_space()[:5]),
    insert(SPACE, [NEW]),
    insert(SPACE, []),
    insert(SPACE, a_space("810")),
    insert(SPACE, a_space(-1)),
    insert(SPACE, a_space(810.0)),
    insert(SPACE, a_space(None)),
    insert(SPACE, a_space(0)),
    insert(SPACE, a_space(LAST_ID)),
    insert(SPACE, a_space(2**31)),
    insert(SPACE, a_space(2**31, engine="no such engine")),
    insert(SPACE, a_space(owner="admin")),
    insert(SPACE, a_space(owner=-1)),
    insert(SPACE, a_space(name=5)),
    insert(SPACE, a_space(name=None)),
    insert(SPACE, a_space(name="")),
    insert(SPACE, a_space(name="new\n")),
    insert(SPACE, a_space(name=b"new")),
    insert(SPACE, a_space(name=LONG)),
    insert(SPACE, a_space(name=LONGEST)),
    insert(SPACE, a_space(name="ä.b c%s")),
    insert(SPACE, a_space(name="filled")),
    insert(SPACE, a_space(name="_space")),
    insert(SPACE, a_space(FILLED)),
    insert(SPACE, a_space(SPACE)),
    insert(SPACE, a_space(engine="no such engine")),
    insert(SPACE, a_space(engine="")),
    insert(SPACE, a_space(engine="MEMTX")),
    insert(SPACE, a_space(engine="x" * 100)),
    insert(SPACE, a_space(engine=5)),
    insert(SPACE, a_space(field_count=-1)),
    insert(SPACE, a_space(field_count="3")),
    insert(SPACE, a_space(flags=[])),
    insert(SPACE, a_space(flags="temporary")),
    insert(SPACE, a_space(flags={"no such flag": 1})),
    insert(SPACE, a_space(flags={1: 1})),
    insert(SPACE, a_space(flags={"temporary": 1})),
    insert(SPACE, a_space(flags={"temporary": None})),
    insert(SPACE, a_space(flags={"group_id": 2})),
    insert(SPACE, a_space(flags={"group_id": -1})),
    insert(SPACE, a_space(flags={"group_id": True})),
    insert(SPACE, a_space(flags={"group_id": "x"})),
    insert(SPACE, a_space(flags={"is_sync": "yes"})),
    insert(SPACE, a_space(flags={"view": 1})),
    insert(SPACE, a_space(flags={"sql": 1})),
    insert(SPACE, a_space(flags={"sql": "SELECT 1"})),
    insert(SPACE, a_space(fields=[{"name": "id"}])),
    insert(SPACE, a_space(fields=[{"name": "id", "type": "no such type"}])),
    insert(SPACE, a_space(fields=[{"name": "id", "type": 5}])),
    insert(SPACE, a_space(fields=[{"type": "any"}])),
    insert(SPACE, a_space(fields=[{"name": ""}])),
    insert(SPACE, a_space(fields=[{"name": 5}])),
    insert(SPACE, a_space(fields=[{"name": "a\n"}])),
    insert(SPACE, a_space(fields=[{"name": LONG}])),
    insert(SPACE, a_space(fields=[{"name": "same"}, {"name": "same"}])),
    insert(SPACE, a_space(fields=["id"])),
    insert(SPACE, a_space(fields=[["id", "unsigned"]])),
    insert(SPACE, a_space(fields=[{1: "id"}])),
    insert(SPACE, a_space(fields=[{"name": "id", "more": 1}])),
    insert(SPACE, a_space(fields=[{"name": "id", "is_nullable": 1}])),
    insert(SPACE, a_space(fields=[{"name": "id", "nullable_action": "none"}])),
    insert(SPACE, a_space(fields=[{"name": "id", "is_nullable": True, "nullable_action": "abort"}])),
    insert(SPACE, a_space(fields=[{"name": "id", "nullable_action": "no such action"}])),
    insert(SPACE, a_space(fields=[{"name": "id", "type": "string", "collation": 9999}])),
    insert(SPACE, a_space(fields=[{"name": "id", "type": "unsigned", "collation": 1}])),
    insert(SPACE, a_space(fields=[{"name": "id", "type": "string", "collation": "unicode"}])),
    insert(SPACE, a_space(fields={"name": "id"})),
    insert(SPACE, a_space(fields="id")),
    # an id or a name taken, and something else wrong
    insert(SPACE, a_space(FILLED, name="filled", engine="no such engine")),
    insert(SPACE, a_space(name="filled", engine="no such engine")),
    insert(SPACE, a_space(0, name="", engine="no such engine")),
    insert(SPACE, a_space(name="", engine="no such engine")),
    insert(SPACE, a_space(name=LONG, engine="no such engine")),
    insert(SPACE, a_space(engine="no such engine", flags={"no such flag": 1})),
    insert(SPACE, a_space(flags={"no such flag": 1}, fields=[{}])),
    insert(SPACE, a_space(flags={"group_id": 7}, fields=[{}])),
    insert(SPACE, a_space(engine="no such engine", fields=[{}])),
    # altering
    replace(SPACE, a_space(EMPTY, name="empty")),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT)),
    replace(SPACE, a_space(FILLED, name="filled")),
    replace(SPACE, a_space(FILLED, OWNER, "renamed", fields=FORMAT)),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT, field_count=3)),
    replace(SPACE, a_space(EMPTY, name="empty", field_count=3)),
    replace(SPACE, a_space(EMPTY, name="empty", field_count=3, fields=FORMAT)),
    replace(SPACE, a_space(EMPTY, name="empty", engine="no such engine")),
    replace(SPACE, a_space(EMPTY, name="empty", flags={"temporary": True})),
    replace(SPACE, a_space(EMPTY, name="empty", flags={"group_id": 1})),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT, flags={"group_id": 1})),
    replace(SPACE, a_space(EMPTY, name="empty", flags={"is_sync": False})),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT, flags={"temporary": True})),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT, flags={"is_sync": False})),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT, flags={"no such flag": True})),
    replace(SPACE, a_space(EMPTY, name="empty", flags={"view": True})),
    set_field(SPACE, [EMPTY], 0, NEW),
    set_field(SPACE, [EMPTY], 1, OWNER),
    set_field(SPACE, [EMPTY], 1, 9999),
    set_field(SPACE, [EMPTY], 1, "admin"),
    set_field(SPACE, [EMPTY], 2, "renamed"),
    [set_field(SPACE, [FILLED], 2, "renamed"), insert(FILLED, [1]), insert(FILLED, [3, "x"])],
    set_field(SPACE, [EMPTY], 2, "filled"),
    set_field(SPACE, [EMPTY], 2, "_space"),
    set_field(SPACE, [EMPTY], 2, ""),
    set_field(SPACE, [EMPTY], 2, LONG),
    set_field(SPACE, [EMPTY], 2, 5),
    set_field(SPACE, [FILLED], 4, 1),
    set_field(SPACE, [FILLED], 4, 3),
    set_field(SPACE, [FILLED], 4, 4),
    set_field(SPACE, [FILLED], 4, -1),
    set_field(SPACE, [FILLED], 5, []),
    set_field(SPACE, [FILLED], 5, {"temporary": 1}),
    set_field(SPACE, [FILLED], 6, [{"name": "id", "type": "string"}]),
    set_field(SPACE, [FILLED], 6, [{"name": "id", "type": "number"}]),
    set_field(SPACE, [FILLED], 6, [{"name": "id", "type": "array"}]),
    set_field(SPACE, [FILLED], 6, [{"name": "id", "is_nullable": True}]),
    set_field(SPACE, [FILLED], 6, [*FORMAT[:2], {"name": "more", "type": "unsigned"}]),
    set_field(SPACE, [FILLED], 6, [*FORMAT[:2], {"name": "more", "type": "string", "is_nullable": True}]),
    set_field(SPACE, [FILLED], 6, [*FORMAT[:2], {"name": "more", "type": "unsigned", "is_nullable": True}]),
    set_field(SPACE, [FILLED], 6, [*FORMAT, {"name": "yet more"}]),
    set_field(SPACE, [FILLED], 6, [*FORMAT, {"name": "yet more", "is_nullable": True}]),
    set_field(SPACE, [FILLED], 6, [*FORMAT, {"name": "word", "is_nullable": True}]),
    set_field(SPACE, [FILLED], 6, [{"name": "no"}, {"name": "types"}]),
    set_field(SPACE, [FILLED], 6, "x"),
    update(SPACE, [FILLED], ["#", 6, 1]),
    update(SPACE, [FILLED], ["=", "name", "x"], ["=", "flags", {"temporary": True}]),
    update(SPACE, [9999], ["=", "name", "x"]),
    upsert(SPACE, a_space(EMPTY, name="empty"), ["=", 2, "renamed"]),
    upsert(SPACE, a_space(), ["=", 2, "renamed"]),
    upsert(SPACE, a_space(EMPTY, name="empty"), ["=", 2, "filled"]),
    # dropping
    delete(SPACE, 9999),
    delete(SPACE, "x"),
    delete(SPACE),
    delete(SPACE, EMPTY),
    [delete(PRIV, ANN, "space", EMPTY), delete(SPACE, EMPTY), insert(EMPTY, [1]), select(EMPTY)],
    delete(SPACE, FILLED),
    delete(SPACE, TRUNCATED),
    [delete(INDEX, TRUNCATED, 0), delete(SPACE, TRUNCATED)],
    [delete(INDEX, TRUNCATED, 0), delete(TRUNCATE, TRUNCATED), delete(SPACE, TRUNCATED)],
    [
        delete(INDEX, FILLED, 1),
        delete(INDEX, FILLED, 0),
        delete(SPACE, FILLED),
        insert(SPACE, a_space(FILLED)),
    ],
    delete(SPACE, OWNED),
    delete(SPACE, SPACE),
    delete(SPACE, 281),
    # a space without indexes
    insert(EMPTY, [1]),
    insert(EMPTY, []),
    select(EMPTY),
    delete(EMPTY, 1),
    upsert(EMPTY, [1], ["=", 1, 1]),
]

MORE_SPACES: list[Request | list[Request]] = [
    [
        insert(SPACE, a_space(flags={"temporary": True}, field_count=2)),
        insert(INDEX, an_index(NEW, 0)),
        insert(NEW, [1]),
        insert(NEW, [1, 2]),
        set_field(SPACE, [NEW], 5, {}),
        delete(NEW, 1),
        set_field(SPACE, [NEW], 5, {}),
        set_field(SPACE, [NEW], 4, 0),
        insert(NEW, [1]),
        set_field(SPACE, [NEW], 4, 2),
        set_field(SPACE, [NEW], 6, [{"name": "a"}, {"name": "b"}]),
        set_field(SPACE, [NEW], 6, [{"name": "a"}]),
        update(NEW, [1], ["=", "a", 1]),
        update(NEW, [1], ["=", "b", 1]),
    ],
    [
        insert(SPACE, a_space(name="first")),
        insert(SPACE, a_space(NEW + 1, name="second")),
        set_field(SPACE, [NEW], 2, "third"),
        set_field(SPACE, [NEW + 1], 2, "first"),
        set_field(SPACE, [NEW], 2, "second"),
        delete(SPACE, NEW),
        insert(SPACE, a_space(name="third")),
    ],
]

INDEXES: list[Request | list[Request]] = [
    insert(INDEX, an_index()),
    insert(INDEX, an_index(EMPTY, 0)),
    insert(INDEX, an_index(EMPTY, 1)),
    insert(INDEX, an_index(EMPTY, 0, options={"unique": False})),
    insert(INDEX, an_index(EMPTY, 0, options={})),
    insert(INDEX, an_index(index_id=127)),
    insert(INDEX, an_index(index_id=128)),
    insert(INDEX, an_index(index_id=-1)),
    insert(INDEX, an_index(index_id="2")),
    insert(INDEX, an_index(index_id=1)),
    insert(INDEX, an_index(space_id=9999)),
    insert(INDEX, an_index(space_id=0)),
    insert(INDEX, an_index(space_id="filled")),
    insert(INDEX, an_index(space_id=SPACE, index_id=5)),
    insert(INDEX, an_index(name="word")),
    insert(INDEX, an_index(name="")),
    insert(INDEX, an_index(name="a\n")),
    insert(INDEX, an_index(name="a.b")),
    insert(INDEX, an_index(name=5)),
    insert(INDEX, an_index(name=LONG)),
    insert(INDEX, an_index(kind="no such type")),
    insert(INDEX, an_index(kind="")),
    insert(INDEX, an_index(kind="TREE")),
    insert(INDEX, an_index(kind="HaSh")),
    insert(INDEX, an_index(kind="hash", options={"unique": False})),
    insert(INDEX, an_index(kind=5)),
    insert(INDEX, an_index(options={"no such option": 1})),
    insert(INDEX, an_index(options={"unique": 1})),
    insert(INDEX, an_index(options={1: 1})),
    insert(INDEX, an_index(options=[])),
    insert(INDEX, an_index(options=5)),
    insert(INDEX, an_index(options={"unique": True, "run_size_ratio": 0.5})),
    insert(INDEX, an_index(options={"unique": True, "page_size": 1024, "range_size": 2048})),
    insert(INDEX, an_index(parts=[[1, "string"]])),
    insert(INDEX, an_index(parts=[[1, "string"]], options={"unique": False})),
    insert(INDEX, an_index(parts=[[1, "string"], [0, "unsigned"]])),
    insert(INDEX, an_index(parts=[[1, "unsigned"]])),
    insert(INDEX, an_index(parts=[[1, "scalar"]], options={"unique": False})),
    insert(INDEX, an_index(parts=[[2, "unsigned"]])),
    insert(INDEX, an_index(parts=[{"field": 2, "type": "unsigned", "is_nullable": True}])),
    insert(INDEX, an_index(parts=[{"field": 2, "type": "string", "is_nullable": True}])),
    insert(INDEX, an_index(parts=[{"field": 7, "type": "string", "is_nullable": True}])),
    insert(INDEX, an_index(parts=[[7, "string"]])),
    insert(INDEX, an_index(parts=[[0, "unsigned"], [0, "unsigned"]])),
    insert(INDEX, an_index(parts=[[0, "no such type"]])),
    insert(INDEX, an_index(parts=[[0, "any"]])),
    insert(INDEX, an_index(parts=[[0, "array"]])),
    insert(INDEX, an_index(parts=[[0]])),
    insert(INDEX, an_index(parts=[[]])),
    insert(INDEX, an_index(parts=[0, "unsigned"])),
    insert(INDEX, an_index(parts=[["id", "unsigned"]])),
    insert(INDEX, an_index(parts=[[-1, "unsigned"]])),
    insert(INDEX, an_index(parts=[[40000, "unsigned"]])),
    insert(INDEX, an_index(parts=[[number, "unsigned"] for number in range(256)])),
    insert(INDEX, an_index(parts=[{"field": 0}])),
    insert(INDEX, an_index(parts=[{"field": 0, "type": "unsigned", "more": 1}])),
    insert(INDEX, an_index(parts=[{"field": "id", "type": "unsigned"}])),
    insert(INDEX, an_index(parts=[{"type": "unsigned"}])),
    insert(INDEX, an_index(parts=[{"field": 0, "type": "unsigned", "collation": 1}])),
    insert(INDEX, an_index(parts=[{"field": 1, "type": "string", "collation": 9999}])),
    insert(INDEX, an_index(parts=[{"field": 0, "type": "unsigned"}, [1, "string"]])),
    insert(INDEX, an_index(parts="x")),
    insert(INDEX, an_index(parts={})),
    insert(INDEX, an_index()[:5]),
    insert(INDEX, [*an_index(), 1]),
    insert(INDEX, [FILLED]),
    insert(INDEX, [FILLED, 2]),
    insert(INDEX, []),
    insert(INDEX, an_index(EMPTY, 0, parts=[{"field": 0, "type": "unsigned", "is_nullable": True}])),
    insert(INDEX, an_index(EMPTY, 0, parts=[[3, "unsigned"]])),
    insert(INDEX, an_index(EMPTY, 0, kind="hash", parts=[[0, "string"], [1, "unsigned"]])),
    # altering
    replace(INDEX, an_index(FILLED, 0, "primary")),
    replace(INDEX, an_index(FILLED, 0, "renamed")),
    replace(INDEX, an_index(FILLED, 0, "word")),
    replace(INDEX, an_index(FILLED, 0, "primary", options={"unique": False})),
    replace(INDEX, an_index(FILLED, 0, "primary", parts=[[0, "number"]])),
    replace(INDEX, an_index(FILLED, 0, "primary", parts=[[0, "string"]])),
    replace(INDEX, an_index(FILLED, 0, "primary", kind="hash")),
    replace(INDEX, an_index(FILLED, 1, "word", options={"unique": True}, parts=[[1, "string"]])),
    replace(INDEX, an_index(FILLED, 1, "word", options={"unique": False}, parts=[[0, "unsigned"]])),
    replace(INDEX, an_index(FILLED, 1, "word", options={"unique": False}, parts=[[1, "scalar"]])),
    replace(INDEX, an_index(FILLED, 1, "word", options={"unique": False}, parts=[[2, "scalar"]])),
    replace(INDEX, an_index(FILLED, 1, "word", kind="hash", parts=[[1, "string"]])),
    replace(INDEX, an_index(FILLED, 1, "word", kind="hash", parts=[[0, "unsigned"]])),
    replace(INDEX, an_index(TRUNCATED, 0, "primary", parts=[[0, "number"]])),
    [delete(TRUNCATED, 1), replace(INDEX, an_index(TRUNCATED, 0, "primary", parts=[[1, "string"]]))],
    replace(INDEX, an_index()),
    set_field(INDEX, [FILLED, 1], 1, 3),
    set_field(INDEX, [FILLED, 1], 0, EMPTY),
    set_field(INDEX, [FILLED, 1], 2, "primary"),
    [set_field(INDEX, [FILLED, 1], 2, "renamed"), insert(INDEX, an_index(name="word"))],
    set_field(INDEX, [FILLED, 1], 2, ""),
    set_field(INDEX, [FILLED, 1], 2, LONG),
    set_field(INDEX, [FILLED, 1], 3, "rtree"),
    set_field(INDEX, [FILLED, 1], 5, [[1, "unsigned"]]),
    set_field(INDEX, [FILLED, 9], 5, [[1, "unsigned"]]),
    # dropping
    delete(INDEX, FILLED, 0),
    [delete(INDEX, FILLED, 1), insert(FILLED, [3, "x"]), delete(INDEX, FILLED, 0), insert(FILLED, [3, "x"])],
    [delete(INDEX, TRUNCATED, 0), insert(INDEX, an_index(TRUNCATED, 0)), select(TRUNCATED)],
    delete(INDEX, FILLED, 7),
    delete(INDEX, 9999, 0),
    delete(INDEX, FILLED),
    delete(INDEX, SPACE, 0),
    delete(INDEX, SPACE, 2),
    delete(INDEX, 281, 0),
    [
        insert(INDEX, an_index(index_id=5, name="five")),
        select(FILLED, index=5),
        select(FILLED, index=4),
        delete(INDEX, FILLED, 5),
        select(FILLED, index=5),
    ],
]

TRUNCATIONS: list[Request | list[Request]] = [
    [insert(TRUNCATE, [FILLED, 1]), select(FILLED)],
    [replace(TRUNCATE, [FILLED, 1]), select(FILLED)],
    [replace(TRUNCATE, [TRUNCATED, 2]), select(TRUNCATED)],
    [replace(TRUNCATE, [TRUNCATED, 0]), select(TRUNCATED)],
    [update(TRUNCATE, [TRUNCATED], ["+", 1, 1]), select(TRUNCATED)],
    [upsert(TRUNCATE, [TRUNCATED, 1], ["+", 1, 1]), select(TRUNCATED)],
    [
        upsert(TRUNCATE, [FILLED, 1], ["+", 1, 1]),
        select(FILLED),
        insert(FILLED, [1, "x"]),
        select(FILLED, index=1),
    ],
    [delete(TRUNCATE, TRUNCATED), select(TRUNCATED)],
    insert(TRUNCATE, [TRUNCATED, 1]),
    insert(TRUNCATE, [EMPTY, 1]),
    replace(TRUNCATE, [EMPTY, 1]),
    insert(TRUNCATE, [9999, 1]),
    replace(TRUNCATE, [9999, 1]),
    insert(TRUNCATE, [SPACE, 1]),
    replace(TRUNCATE, [SPACE, 1]),
    replace(TRUNCATE, [281, 1]),
    insert(TRUNCATE, ["x", 1]),
    insert(TRUNCATE, [FILLED]),
    insert(TRUNCATE, [FILLED, -1]),
    insert(TRUNCATE, [FILLED, "x"]),
    insert(TRUNCATE, [FILLED, 1, 2]),
]

USERS: list[Request | list[Request]] = [
    insert(USER, a_user()),
    [insert(USER, a_user(910 + number, name=f"user {number}")) for number in range(30)],
    insert(USER, a_user(kind="role")),
    insert(USER, a_user(auth=SECRET)),
    insert(USER, a_user(owner=ANN)),
    insert(USER, a_user(owner=9999)),
    insert(USER, a_user(kind="no such kind")),
    insert(USER, a_user(kind="")),
    insert(USER, a_user(kind="USER")),
    insert(USER, a_user(kind=5)),
    insert(USER, a_user(kind="role", auth=SECRET)),
    insert(USER, a_user(auth=[])),
    insert(USER, a_user(auth=[1])),
    insert(USER, a_user(auth=5)),
    insert(USER, a_user(auth={"no such method": "x"})),
    insert(USER, a_user(auth={"chap-sha1": "x"})),
    insert(USER, a_user(auth={"chap-sha1": ""})),
    insert(USER, a_user(auth={"chap-sha1": 5})),
    insert(USER, a_user(auth={"chap-sha1": "!" * 28})),
    insert(USER, a_user(auth={"chap-sha1": "A" * 28})),
    insert(USER, a_user(auth={"chap-sha1": "A" * 27 + "="})),
    insert(USER, a_user(auth={"chap-sha1": "A" * 40})),
    insert(USER, a_user(auth={5: "A" * 28})),
    insert(USER, a_user(auth={**SECRET, "no such method": "x"})),
    insert(USER, a_user(auth={"no such method": "x", **SECRET})),
    insert(USER, a_user(name="ann")),
    insert(USER, a_user(name="")),
    insert(USER, a_user(name="a\n")),
    insert(USER, a_user(name=LONG)),
    insert(USER, a_user(name=LONGEST)),
    insert(USER, a_user(name=5)),
    insert(USER, a_user(ANN)),
    insert(USER, a_user(ADMIN)),
    insert(USER, a_user("x")),
    insert(USER, a_user(-1)),
    insert(USER, a_user(owner="x")),
    insert(USER, a_user()[:4]),
    insert(USER, a_user()[:3]),
    insert(USER, [*a_user(), 1]),
    insert(USER, a_user(name="", kind="x", auth={"x": "y"})),
    insert(USER, a_user(kind="x", auth={"x": "y"})),
    insert(USER, a_user(name=LONG, kind="x")),
    replace(USER, a_user(ANN, name="ann")),
    replace(USER, a_user(ANN, name="anna", auth=SECRET)),
    replace(USER, a_user(ANN, name="owner")),
    replace(USER, a_user(ANN, name="ann", kind="role")),
    replace(USER, a_user(READER, name="reader", kind="user")),
    replace(USER, a_user(READER, name="readers", kind="role")),
    [set_field(USER, [ANN], 2, "anna"), set_field(USER, [OWNER], 2, "ann")],
    set_field(USER, [ANN], 0, 910),
    set_field(USER, [ANN], 1, OWNER),
    set_field(USER, [ANN], 2, "owner"),
    set_field(USER, [ANN], 2, ""),
    set_field(USER, [ANN], 4, {"chap-sha1": "short"}),
    set_field(USER, [ANN], 4, {"unknown": "A" * 28}),
    set_field(USER, [9999], 4, {}),
    set_field(USER, [0], 4, SECRET),
    set_field(USER, [READER], 4, SECRET),
    upsert(USER, a_user(ANN, name="ann"), ["=", 2, "anna"]),
    delete(USER, ANN),
    delete(USER, OWNER),
    delete(USER, READER),
    delete(USER, WRITER),
    delete(USER, 9999),
    delete(USER, 0),
    delete(USER, 1),
    delete(USER, 2),
    delete(USER, 3),
    delete(USER, 31),
    delete(USER, "ann"),
    [insert(USER, a_user()), delete(USER, 910)],
    [
        insert(USER, a_user(owner=ANN)),
        delete(PRIV, ANN, "space", EMPTY),
        delete(PRIV, ANN, "function", GRANTED),
    ],
    [delete(PRIV, ANN, "space", EMPTY), delete(PRIV, ANN, "function", GRANTED), delete(USER, ANN)],
    [delete(PRIV, READER, "role", WRITER), delete(USER, READER), delete(USER, WRITER)],
    [insert(PRIV, a_privilege(OWNER, "user", ANN, 128)), delete(PRIV, ANN, "space", EMPTY)],
    [delete(SPACE, OWNED), delete(USER, OWNER), delete(FUNC, OWNED_FUNCTION), delete(USER, OWNER)],
    [delete(FUNC, OWNED_FUNCTION), delete(USER, OWNER)],
]

PRIVILEGES: list[Request | list[Request]] = [
    insert(PRIV, a_privilege()),
    insert(PRIV, a_privilege(bits=READ | WRITE)),
    insert(PRIV, a_privilege(bits=ALL)),
    insert(PRIV, a_privilege(bits=0)),
    insert(PRIV, a_privilege(bits=-1)),
    insert(PRIV, a_privilege(bits="read")),
    insert(PRIV, a_privilege(grantor=9999)),
    insert(PRIV, a_privilege(grantor=ANN)),
    insert(PRIV, a_privilege(grantor=OWNER, object_id=OWNED)),
    insert(PRIV, a_privilege(grantor=READER)),
    insert(PRIV, a_privilege(grantor=0)),
    insert(PRIV, a_privilege(grantor="admin")),
    insert(PRIV, a_privilege(9999)),
    insert(PRIV, a_privilege("ann")),
    insert(PRIV, a_privilege(READER)),
    insert(PRIV, a_privilege(ADMIN)),
    insert(PRIV, a_privilege(object_id=EMPTY)),
    insert(PRIV, a_privilege(object_id=9999)),
    insert(PRIV, a_privilege(object_id="")),
    insert(PRIV, a_privilege(object_id="filled")),
    insert(PRIV, a_privilege(object_id=-1)),
    insert(PRIV, a_privilege(object_id=True)),
    insert(PRIV, a_privilege(object_id=None)),
    insert(PRIV, a_privilege(object_id=SPACE)),
    insert(PRIV, a_privilege(kind="universe", object_id=0)),
    insert(PRIV, a_privilege(kind="universe", object_id=5)),
    insert(PRIV, a_privilege(kind="universe", object_id="")),
    insert(PRIV, a_privilege(kind="universe", object_id=0, grantor=OWNER)),
    insert(PRIV, a_privilege(kind="no such kind")),
    insert(PRIV, a_privilege(kind="")),
    insert(PRIV, a_privilege(kind="UNIVERSE", object_id=0)),
    insert(PRIV, a_privilege(kind="no such kind", object_id="")),
    insert(PRIV, a_privilege(kind=5)),
    insert(PRIV, a_privilege(kind="function", object_id=FUNCTION, bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="function", object_id=GRANTED, bits=EXECUTE)),
    insert(PRIV, a_privilege(OWNER, kind="function", object_id=FUNCTION, bits=READ)),
    insert(PRIV, a_privilege(kind="function", object_id=9999, bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="function", object_id="", bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="function", object_id="some.function", bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="function", object_id=FUNCTION, bits=EXECUTE, grantor=OWNER)),
    insert(PRIV, a_privilege(kind="sequence", object_id=9999)),
    insert(PRIV, a_privilege(kind="sequence", object_id="")),
    insert(PRIV, a_privilege(kind="user", object_id=OWNER, bits=128)),
    insert(PRIV, a_privilege(kind="user", object_id=9999, bits=128)),
    insert(PRIV, a_privilege(kind="user", object_id=READER, bits=128)),
    insert(PRIV, a_privilege(kind="user", object_id="", bits=128)),
    insert(PRIV, a_privilege(kind="user", object_id=OWNER, bits=128, grantor=ANN)),
    insert(PRIV, a_privilege(kind="role", object_id=READER, bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="role", object_id=READER, bits=READ)),
    insert(PRIV, a_privilege(kind="role", object_id=READER, bits=EXECUTE | READ)),
    insert(PRIV, a_privilege(kind="role", object_id=2, bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="role", object_id=2, bits=EXECUTE, grantor=ANN)),
    insert(PRIV, a_privilege(kind="role", object_id=31, bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="role", object_id=31, bits=EXECUTE, grantor=ANN)),
    insert(PRIV, a_privilege(kind="role", object_id=READER, bits=EXECUTE, grantor=ANN)),
    insert(PRIV, a_privilege(kind="role", object_id=OWNER, bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="role", object_id=9999, bits=EXECUTE)),
    insert(PRIV, a_privilege(kind="role", object_id="", bits=EXECUTE)),
    insert(PRIV, a_privilege(WRITER, "role", READER, EXECUTE)),
    insert(PRIV, a_privilege(READER, "role", READER, EXECUTE)),
    insert(PRIV, a_privilege(READER, "role", WRITER, EXECUTE)),
    [
        insert(USER, a_user(kind="role")),
        insert(PRIV, a_privilege(WRITER, "role", 910, EXECUTE)),
        insert(PRIV, a_privilege(910, "role", READER, EXECUTE)),
        insert(PRIV, a_privilege(910, "role", WRITER, EXECUTE)),
        delete(PRIV, READER, "role", WRITER),
        insert(PRIV, a_privilege(910, "role", READER, EXECUTE)),
    ],
    insert(PRIV, a_privilege(2, "role", READER, EXECUTE)),
    [insert(PRIV, a_privilege(READER, "role", 31, EXECUTE)), delete(PRIV, READER, "role", 31)],
    insert(PRIV, a_privilege()[:4]),
    insert(PRIV, a_privilege()[:3]),
    insert(PRIV, [*a_privilege(), 1]),
    replace(PRIV, a_privilege(object_id=EMPTY, bits=WRITE)),
    replace(PRIV, a_privilege(object_id=EMPTY, bits=0)),
    replace(PRIV, a_privilege(object_id=EMPTY, grantor=9999)),
    replace(PRIV, a_privilege(object_id=EMPTY, grantor=ANN)),
    set_field(PRIV, [ANN, "space", EMPTY], 4, 0),
    set_field(PRIV, [ANN, "space", EMPTY], 4, 7),
    set_field(PRIV, [ANN, "space", EMPTY], 3, FILLED),
    set_field(PRIV, [ANN, "space", EMPTY], 0, OWNER),
    update(PRIV, [ANN, "space", EMPTY], ["|", 4, 2]),
    upsert(PRIV, a_privilege(object_id=EMPTY), ["|", 4, 2]),
    delete(PRIV, ANN, "space", EMPTY),
    delete(PRIV, ANN, "space", 9999),
    delete(PRIV, ANN, "space"),
    delete(PRIV, ADMIN, "universe", 0),
]

FUNCTIONS: list[Request | list[Request]] = [
    insert(FUNC, a_function()),
    insert(FUNC, a_function(setuid=1)),
    insert(FUNC, a_function()[:4]),
    insert(FUNC, a_function()[:5]),
    insert(FUNC, a_function()[:6]),
    insert(FUNC, a_function()[:3]),
    insert(FUNC, a_function()[:10]),
    insert(FUNC, [*a_function(), 1]),
    insert(FUNC, a_function(owner=ANN)),
    insert(FUNC, a_function(owner=9999)),
    insert(FUNC, a_function(owner=READER)),
    insert(FUNC, a_function(FUNCTION)),
    insert(FUNC, a_function(32000)),
    insert(FUNC, a_function(32001)),
    insert(FUNC, a_function("x")),
    insert(FUNC, a_function(name="some.function")),
    insert(FUNC, a_function(name="")),
    insert(FUNC, a_function(name="a\n")),
    insert(FUNC, a_function(name=LONG)),
    insert(FUNC, a_function(name=LONGEST)),
    insert(FUNC, a_function(name=5)),
    insert(FUNC, a_function(language="C")),
    insert(FUNC, a_function(language="lua")),
    insert(FUNC, a_function(language="no such language")),
    insert(FUNC, a_function(language="")),
    insert(FUNC, a_function(language="SQL")),
    insert(FUNC, a_function(language=5)),
    insert(FUNC, a_function(setuid="x")),
    insert(FUNC, a_function(setuid=-1)),
    insert(FUNC, a_function(body=5)),
    insert(FUNC, a_function(routine_type="procedure")),
    insert(FUNC, a_function(returns="no such type")),
    insert(FUNC, a_function(returns="string")),
    insert(FUNC, a_function(aggregate="group")),
    insert(FUNC, a_function(aggregate="x")),
    insert(FUNC, a_function(sql_data_access="reads")),
    insert(FUNC, a_function(param_list=["any"])),
    insert(FUNC, a_function(param_list=["no such type"])),
    insert(FUNC, a_function(param_list=[5])),
    insert(FUNC, a_function(param_list="x")),
    insert(FUNC, a_function(is_deterministic=5)),
    insert(FUNC, a_function(is_deterministic=True)),
    insert(FUNC, a_function(is_sandboxed=True)),
    insert(FUNC, a_function(exports=[])),
    insert(FUNC, a_function(exports=["SQL"])),
    insert(FUNC, a_function(exports=["no such language"])),
    insert(FUNC, a_function(exports=[5])),
    insert(FUNC, a_function(opts={"is_multikey": True})),
    insert(FUNC, a_function(opts={"is_multikey": 1})),
    insert(FUNC, a_function(opts=[])),
    replace(FUNC, a_function(FUNCTION, name="some.function")),
    replace(FUNC, a_function(FUNCTION, name="other.function")),
    replace(FUNC, a_function(FUNCTION, ANN, name="some.function")),
    replace(FUNC, a_function(FUNCTION, name="some.function", setuid=1)),
    set_field(FUNC, [FUNCTION], 2, "other.function"),
    set_field(FUNC, [FUNCTION], 2, "granted.function"),
    set_field(FUNC, [FUNCTION], 16, "a comment"),
    set_field(FUNC, [FUNCTION], 17, "2021-01-01 00:00:00"),
    set_field(FUNC, [FUNCTION], 18, "2021-01-01 00:00:00"),
    set_field(FUNC, [FUNCTION], 4, "C"),
    upsert(FUNC, a_function(FUNCTION, name="some.function"), ["=", 2, "x"]),
    delete(FUNC, FUNCTION),
    delete(FUNC, GRANTED),
    delete(FUNC, 9999),
    delete(FUNC, "some.function"),
    [delete(PRIV, ANN, "function", GRANTED), delete(FUNC, GRANTED)],
]


def described(case: Request | list[Request]) -> str:
    """A name for a case, short enough to be read."""
    requests = case if isinstance(case, list) else [case]
    words = {INSERT: "insert", REPLACE: "replace", UPDATE: "update", UPSERT: "upsert", DELETE: "delete"}
    first = requests[0]
    what = first.body.get(TUPLE) if first.kind != UPDATE else [first.body[KEY], first.body[TUPLE]]
    text = repr(first.body.get(KEY) if what is None else what)
    dots = " ..." if len(text) > 90 or len(requests) > 1 else ""
    return f"{words.get(first.kind, 'select')} {text[:90]}{dots}"


def cases(*requests: Request | list[Request]) -> Callable[..., Any]:
    """Ask each in a world of its own."""
    return pytest.mark.parametrize("case", requests, ids=described)


def check(world: World, case: Request | list[Request]) -> None:
    world.ask(*(case if isinstance(case, list) else [case]))
    world.compare_rows()


@cases(*SPACES, *MORE_SPACES)
def test_spaces(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*INDEXES)
def test_indexes(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*TRUNCATIONS)
def test_truncating(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*USERS)
def test_users(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*PRIVILEGES)
def test_privileges(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*FUNCTIONS)
def test_functions(world: World, case: Request | list[Request]) -> None:
    check(world, case)
