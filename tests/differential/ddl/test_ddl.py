"""DDL as rows of the system spaces, on a real Tarantool and on our server.

The answers, the increase of the schema version, and the rows of the system spaces must be equal.

Excluded, as deliberately different:

- Engines other than memtx, synchronous spaces, views of one's own, RTREE and BITSET indexes, functional
  indexes, sequences, constraints: they are refused, they are not served.
- A function's body is Lua: it is kept and never run.
- Ids beyond 32 bits: Tarantool cuts the number but stores the row as it came, and has a row about another
  object then.
- An unknown option of a function, a password hash that is no string: Tarantool 2.6.0 crashes, or reads what
  is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.differential.access.account_cases import FUNCTIONS, PRIVILEGES, USERS
from tests.differential.both import Both
from tests.differential.conftest import start_both
from tests.differential.ddl.ddl_world import (
    ANN,
    EMPTY,
    FILLED,
    FORMAT,
    LAST_ID,
    LONG,
    LONGEST,
    NEW,
    OWNED,
    OWNER,
    READER,
    TRUNCATED,
    WORLD,
    World,
)
from tests.differential.ddl.system_rows import (
    INDEX,
    PRIV,
    SPACE,
    TRUNCATE,
    Request,
    a_space,
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
    INSERT,
    KEY,
    REPLACE,
    TUPLE,
    UPDATE,
    UPSERT,
)

# Some tests change system spaces for good, so these have servers of their own.
box_servers = pytest.fixture(scope="module", name="box_servers")(start_both)


@pytest.fixture
def world(both: Both) -> Iterator[World]:
    world = World(both)
    world.clear()
    for request in WORLD:
        assert both.request(request.kind, request.body).ok
    yield world
    world.clear()


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
    insert(SPACE, a_space(flags={"temporary": 1}, fields=[{"name": "same"}, {"name": "same"}])),
    insert(SPACE, a_space(engine="no such engine", fields=[{"name": "same"}, {"name": "same"}])),
    insert(
        SPACE, a_space(flags={"temporary": 1}, fields=[{"name": "id", "type": "string", "collation": 999}])
    ),
    insert(
        SPACE, a_space(engine="no such engine", fields=[{"name": "id", "type": "string", "collation": 999}])
    ),
    # altering
    replace(SPACE, a_space(EMPTY, name="empty")),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT)),
    replace(SPACE, a_space(FILLED, name="filled")),
    replace(SPACE, a_space(FILLED, OWNER, "renamed", fields=FORMAT)),
    replace(SPACE, a_space(FILLED, name="filled", fields=FORMAT, field_count=3)),
    replace(SPACE, a_space(EMPTY, name="empty", field_count=3)),
    replace(SPACE, a_space(EMPTY, name="empty", field_count=3, fields=FORMAT)),
    replace(SPACE, a_space(EMPTY, name="empty", engine="no such engine")),
    *(
        set_field(SPACE, [space], 3, engine)
        for space in (EMPTY, FILLED, SPACE)
        for engine in ("vinyl", "blackhole", "service", "sysview")
    ),
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
    insert(INDEX, an_index(257, 0)),
    insert(INDEX, an_index(380, 1)),
    insert(INDEX, an_index(380, 1, parts=[[0, "string"]])),
    replace(INDEX, an_index(380, 0, "primary", parts=[[0, "string"]])),
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
    insert(INDEX, an_index(parts=[{"field": 0, "type": "unsigned", "exclude_null": False}])),
    insert(INDEX, an_index(parts=[{"field": 0, "type": "unsigned", "exclude_null": True}])),
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
    """Send each case to both servers, with fresh contents."""
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
