"""Requests on the system spaces, and their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.iproto_client import (
    CALL,
    DELETE,
    FUNCTION_NAME,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OPERATIONS,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
)

SPACE, INDEX, FUNC, USER, PRIV, TRUNCATE = 280, 288, 296, 304, 312, 330
SEQUENCE, SEQUENCE_DATA, SPACE_SEQUENCE, COLLATION = 284, 285, 340, 276
SCHEMA, CLUSTER, TRIGGER, FK_CONSTRAINT, CK_CONSTRAINT, FUNC_INDEX = 272, 320, 328, 356, 364, 372
SESSION_SETTINGS = 380
VSPACE, VINDEX, VFUNC, VUSER, VPRIV, VSEQUENCE = 281, 289, 297, 305, 313, 286
VSPACE_SEQUENCE, VCOLLATION = 341, 277
GUEST, ADMIN, PUBLIC, SUPER = 0, 1, 2, 31
READ, WRITE, EXECUTE, SESSION, USAGE, CREATE, DROP, ALTER = 1, 2, 4, 8, 16, 32, 64, 128
ALL = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Request:
    """A request to both servers.

    Parameters:
        kind: Its type.
        body: Its body.
    """

    kind: int
    body: dict[int, Any]


def insert(space: int, row: Any) -> Request:
    return Request(INSERT, {SPACE_ID: space, TUPLE: row})


def replace(space: int, row: Any) -> Request:
    return Request(REPLACE, {SPACE_ID: space, TUPLE: row})


def update(space: int, key: list[Any], *operations: list[Any]) -> Request:
    return Request(UPDATE, {SPACE_ID: space, INDEX_ID: 0, KEY: key, TUPLE: list(operations)})


def upsert(space: int, row: list[Any], *operations: list[Any]) -> Request:
    return Request(UPSERT, {SPACE_ID: space, TUPLE: row, OPERATIONS: list(operations)})


def delete(space: int, *key: Any) -> Request:
    return Request(DELETE, {SPACE_ID: space, INDEX_ID: 0, KEY: list(key)})


def select(space: int, *key: Any, index: int = 0) -> Request:
    return Request(
        SELECT, {SPACE_ID: space, INDEX_ID: index, LIMIT: 1000, ITERATOR: 0 if key else 2, KEY: list(key)}
    )


def call(name: str, *arguments: Any) -> Request:
    return Request(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})


def a_space(
    space_id: Any = 810,
    owner: Any = ADMIN,
    name: Any = "new",
    engine: Any = "memtx",
    field_count: Any = 0,
    flags: Any = None,
    fields: Any = None,
) -> list[Any]:
    return [space_id, owner, name, engine, field_count, {} if flags is None else flags, fields or []]


def an_index(
    space_id: Any = 801,
    index_id: Any = 2,
    name: Any = "new",
    kind: Any = "tree",
    options: Any = None,
    parts: Any = None,
) -> list[Any]:
    if options is None:
        options = {"unique": True}
    return [space_id, index_id, name, kind, options, [[0, "unsigned"]] if parts is None else parts]


def a_sequence(
    sequence_id: Any = 880,
    name: Any = "new",
    owner: Any = ADMIN,
    step: Any = 1,
    least: Any = 1,
    greatest: Any = 100,
    start: Any = 1,
    cache: Any = 0,
    cycle: Any = False,
) -> list[Any]:
    return [sequence_id, owner, name, step, least, greatest, start, cache, cycle]


def a_user(
    user_id: Any = 910, owner: Any = ADMIN, name: Any = "new user", kind: Any = "user", auth: Any = None
) -> list[Any]:
    return [user_id, owner, name, kind, {} if auth is None else auth]


def a_privilege(
    grantee: Any = 900, kind: Any = "space", object_id: Any = 801, bits: Any = READ, grantor: Any = ADMIN
) -> list[Any]:
    return [grantor, grantee, kind, object_id, bits]


def a_function(
    function_id: Any = 960, owner: Any = ADMIN, name: Any = "new.function", **other: Any
) -> list[Any]:
    fields = {
        "setuid": 0,
        "language": "LUA",
        "body": "",
        "routine_type": "function",
        "param_list": [],
        "returns": "any",
        "aggregate": "none",
        "sql_data_access": "none",
        "is_deterministic": False,
        "is_sandboxed": False,
        "is_null_call": True,
        "exports": ["LUA"],
        "opts": {},
        "comment": "",
        "created": "2020-01-01 00:00:00",
        "last_altered": "2020-01-01 00:00:00",
    }
    assert fields.keys() >= other.keys()
    return [function_id, owner, name, *{**fields, **other}.values()]


def set_field(space: int, key: list[Any], number: int, value: Any) -> Request:
    return update(space, key, ["=", number, value])
