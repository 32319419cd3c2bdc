"""Rows of every system space: existing ones, possible ones, and damaged ones.

Excluded, because Tarantool 2.6.0 crashes: a replica set's UUID that is not a string, options of a function,
password hashes that are not strings, an index without parts, dropping a collation in use, rows of
`_vinyl_deferred_delete`. Also excluded: ids beyond 32 bits, rights of admin, and bodies of functions that are
not Lua, which nothing reads here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from tests.differential.ddl import system_rows
from tests.differential.ddl.system_rows import (
    ADMIN,
    ALL,
    CK_CONSTRAINT,
    CLUSTER,
    COLLATION,
    EXECUTE,
    FK_CONSTRAINT,
    FUNC,
    FUNC_INDEX,
    INDEX,
    PRIV,
    READ,
    SCHEMA,
    SEQUENCE,
    SEQUENCE_DATA,
    SESSION_SETTINGS,
    SPACE,
    SPACE_SEQUENCE,
    TRIGGER,
    TRUNCATE,
    USER,
    VCOLLATION,
    VSPACE,
    a_function,
    a_privilege,
    a_sequence,
    a_space,
    a_user,
    an_index,
    delete,
    insert,
    replace,
    select,
    update,
    upsert,
)
from tests.differential.login import SECRET
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.differential.random.values.values import FIELD_TYPES
from tests.iproto_client import (
    DELETE,
    INDEX_ID,
    ITERATOR,
    KEY,
    LIMIT,
    OPERATIONS,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
)

_BOOTSTRAP: Final[Mapping[str, list[list[Any]]]] = json.loads(
    files("iproto_server.box.catalog").joinpath("bootstrap.json").read_text(encoding="utf-8")
)
_SET, _OTHER_SET = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-22222222222a"
_MEMBER, _OTHER_MEMBER = "33333333-3333-4333-8333-333333333333", "44444444-4444-4444-8444-44444444444b"
_NIL: Final = "00000000-0000-0000-0000-000000000000"
_UUIDS: Final[list[Any]] = [_SET, _OTHER_SET, _NIL, "x", "", _MEMBER, _OTHER_MEMBER.upper()]
_ANN, _ROLE = 900, 902
_BODIES: Final = ("", "function(a) return a end")

WORLD: Final = (
    # the same on both servers, for comparison
    Request.of(replace(SCHEMA, ["cluster", _SET]), "admin"),
)
_OBJECTS: Final = [
    insert(USER, a_user(_ANN, name="ann", auth=SECRET)),
    insert(USER, a_user(_ROLE, name="role", kind="role")),
    insert(SPACE, a_space(800, name="filled")),
    insert(INDEX, an_index(800, 0, "primary")),
    insert(INDEX, an_index(800, 1, "word", options={"unique": False}, parts=[[1, "string"]])),
    insert(800, [1, "one", 1]),
    insert(800, [2, "two", 2]),
    insert(SPACE, a_space(801, _ANN, name="numbered")),
    insert(INDEX, an_index(801, 0, "primary")),
    insert(SEQUENCE, a_sequence(871, "up")),
    insert(SPACE_SEQUENCE, [801, 871, False, 0, ""]),
    insert(801, [None, "numbered"]),
    insert(SEQUENCE_DATA, [871, 5]),
    insert(FUNC, a_function(950, name="some.function")),
    insert(PRIV, a_privilege(_ANN, "space", 800)),
    insert(CLUSTER, [5, _MEMBER]),
    insert(COLLATION, [900, "german", ADMIN, "ICU", "de", {"strength": "primary"}]),
]
"""The initial contents of a case."""

_ROWS: Final[Mapping[int, list[list[Any]]]] = {
    SCHEMA: [
        *(["cluster", _SET], ["cluster", _OTHER_SET], ["version", 2, 3, 1], ["version", 2, 3, 1, 0]),
        *(["max_id", 900], ["once", True], ["key"], ["replicaset_uuid", _SET]),
    ],
    COLLATION: [
        [900, "german", ADMIN, "ICU", "de", {"strength": "primary"}],
        [901, "plain", ADMIN, "BINARY", "", {}],
        [902, "numeric", _ANN, "ICU", "", {"numeric": "on", "case_first": "upper_first"}],
        *_BOOTSTRAP["_collation"][:5],
    ],
    SPACE: [
        *_BOOTSTRAP["_space"],
        a_space(800, name="filled"),
        a_space(801, _ANN, name="numbered"),
        *(a_space(number, name=f"new {number}") for number in (300, 400, 511, 512, 810)),
        a_space(810, name="local", flags={"group_id": 1}),
        a_space(811, name="temporary", flags={"temporary": True}),
        a_space(812, name="formatted", fields=[{"name": "a", "type": "unsigned"}, {"name": "b"}]),
    ],
    SEQUENCE: [
        a_sequence(871, "up"),
        a_sequence(872, "down", step=-1, least=-5, greatest=5, start=5, cycle=True),
        a_sequence(873, "owned", _ANN, cache=10),
    ],
    SEQUENCE_DATA: [[871, 5], [871, 100], [872, -1], [873, 0]],
    INDEX: [
        *_BOOTSTRAP["_index"],
        an_index(800, 0, "primary"),
        an_index(800, 0, "primary", parts=[[0, "unsigned"], [1, "string"]]),
        an_index(800, 1, "word", options={"unique": False}, parts=[[1, "string"]]),
        an_index(800, 2, "third", kind="hash", parts=[[2, "unsigned"]]),
        an_index(801, 0, "primary"),
        an_index(801, 1, "word", parts=[{"field": 1, "type": "string", "is_nullable": True, "collation": 2}]),
        an_index(SPACE, 7, "engine", options={"unique": False}, parts=[[3, "string"]]),
        an_index(SCHEMA, 1, "value", options={"unique": False}, parts=[[0, "string"]]),
        *(an_index(number, 0, "primary") for number in (300, 400, 810, 811, 812)),
        *(an_index(number, 3, "another") for number in (257, SESSION_SETTINGS, CLUSTER, VSPACE)),
        an_index(257, 0, "primary"),
    ],
    FUNC: [
        *_BOOTSTRAP["_func"][:4],
        a_function(950, name="some.function"),
        a_function(951, name="setuid", setuid=1),
        a_function(952, _ANN, name="owned", language="C"),
        a_function(953, name="persistent", body=_BODIES[1], is_deterministic=True),
        a_function(954, name="builtin", language="SQL_BUILTIN"),
        a_function(955, name="old")[:5],
    ],
    USER: [
        *(row for row in _BOOTSTRAP["_user"] if row[0] != ADMIN),
        a_user(_ANN, name="ann", auth=SECRET),
        a_user(_ROLE, name="role", kind="role"),
        a_user(910, name="bob"),
        a_user(911, _ANN, name="owned role", kind="role"),
    ],
    PRIV: [
        *(row for row in _BOOTSTRAP["_priv"][:6] if row[1] != ADMIN),
        a_privilege(_ANN, "space", 800),
        a_privilege(_ANN, "space", SPACE),
        a_privilege(_ANN, "function", 950, EXECUTE),
        a_privilege(_ANN, "sequence", 871, READ),
        a_privilege(_ANN, "role", _ROLE, EXECUTE),
        a_privilege(_ROLE, "universe", 0, READ),
        a_privilege(_ROLE, "space", "", READ),
    ],
    CLUSTER: [
        *([5, _MEMBER], [5, _OTHER_MEMBER], [6, _OTHER_MEMBER], [31, _OTHER_MEMBER], [1, _OTHER_MEMBER]),
        *([0, _OTHER_MEMBER], [32, _OTHER_MEMBER], [7, _MEMBER]),
    ],
    TRIGGER: [["trigger", 800, {"sql": "CREATE TRIGGER t AFTER INSERT ON t FOR EACH ROW BEGIN END"}]],
    TRUNCATE: [[800, 1], [801, 2], [SPACE, 1], [810, 1], [9999, 1]],
    SPACE_SEQUENCE: [
        *([801, 871, False, 0, ""], [800, 871, False, 0, ""], [800, 872, True, 0, ""], [SPACE, 871, False]),
        *([CLUSTER, 871, False, 0, ""], [800, 871, False]),
    ],
    FK_CONSTRAINT: [["fk", 801, 800, False, "simple", "no_action", "no_action", [1], [0]]],
    CK_CONSTRAINT: [[801, "ck", False, "SQL", "id > 5", True]],
    FUNC_INDEX: [[800, 1, 950]],
    SESSION_SETTINGS: [["sql_default_engine", "memtx"], ["error_marshaling_enabled", False], ["none", 1]],
    VSPACE: [a_space(810)],
    VCOLLATION: [[901, "plain", ADMIN, "BINARY", "", {}]],
}
_UNSERVED: Final = (TRIGGER, FK_CONSTRAINT, CK_CONSTRAINT, FUNC_INDEX, SESSION_SETTINGS)
_SPACES: Final = [
    *(space for space in _ROWS if space not in _UNSERVED for _ in range(4)),
    *(SPACE, INDEX) * 4,
    *_UNSERVED,
]
"""The system spaces of rare requests that our server does not support, which end the comparison of a case."""

_KEYS: Final = {
    INDEX: (0, 1),
    PRIV: (1, 2, 3),
    FK_CONSTRAINT: (0, 1),
    CK_CONSTRAINT: (0, 1),
    FUNC_INDEX: (0, 1),
}

_ANYTHING: Final[list[Any]] = [
    *(0, 1, 2, 5, 31, 32, 280, 511, 512, 800, 801, 871, 900, 2**31 - 1, 2**31, 2**32 - 1, -1, 1.5),
    *("", "x", "memtx", "vinyl", "blackhole", "service", "sysview", "function", "role", "SQL_BUILTIN", "C"),
    *(None, True, False, b"x", [], {}, [1], {"a": 1}, "a\0b", "a\n", "x" * 65001, *FIELD_TYPES),
]
_OPTION_NAMES: Final = [
    *("unique", "type", "field", "is_nullable", "nullable_action", "collation", "path", "exclude_null"),
    *("temporary", "group_id", "is_sync", "view", "sql", "func", "sequence", "name", "strength", "locale", 1),
]


def case(draws: Draws) -> list[Request]:
    """Changes of rows of all system spaces, and what is in them then."""
    changes = sequence(draws, _change, lists=8)
    return [
        *(Request.of(request, "admin") for request in (*_OBJECTS, *changes)),
        *_CONTENTS,
    ]


_LEAST: Final[Mapping[int, list[Any]]] = {CLUSTER: [2], COLLATION: [260]}
"""The smallest key to read: other rows differ between the servers, or are too many."""

_CONTENTS: Final = [
    *(
        Request(
            SELECT,
            {SPACE_ID: space, INDEX_ID: 0, ITERATOR: 5, LIMIT: ALL, KEY: _LEAST.get(space, [])},
            user="admin",
            unordered=space == SEQUENCE_DATA,
        )
        for space in _ROWS
        if space != SESSION_SETTINGS
    ),
    *(Request(SELECT, select(space).body, user="admin", unordered=True) for space in (800, 801)),
]


def _change(draws: Draws) -> system_rows.Request:
    while True:
        request = _drawn(draws)
        if _is_survived(request):
            return request


def _drawn(draws: Draws) -> system_rows.Request:
    space = draws.pick(_SPACES)
    row = draws.pick(_ROWS[space])
    key = [row[number] for number in _KEYS.get(space, (0,))]
    if draws.rarely(15):
        key = [draws.pick(_ANYTHING), *key[1:]]
    if draws.below(2):
        row = _damaged(draws, row)
    match draws.below(10):
        case 0 | 1 | 2:
            return insert(space, row)
        case 3 | 4:
            return replace(space, row)
        case 5 | 6:
            return update(space, key, *_operations(draws, space))
        case 7:
            return upsert(space, row, *_operations(draws, space))
        case _:
            return delete(space, *key)


def _operations(draws: Draws, space: int) -> list[list[Any]]:
    """Fields become what they are in another row, damaged or not."""
    row = draws.pick(_ROWS[space])
    if draws.rarely(3):
        row = _damaged(draws, row)
    numbers = draws.sample(range(len(row)), draws.pick([1, 1, 1, 2]))
    return [["=", number, row[number]] for number in numbers] or [["=", 1, draws.pick(_ANYTHING)]]


def _damaged(draws: Draws, row: list[Any]) -> list[Any]:
    place = draws.below(len(row))
    match draws.below(8):
        case 0:
            return row[:place]
        case 1:
            return [*row, draws.pick(_ANYTHING)]
        case 2 | 3:
            return [*row[:place], draws.pick([*_ANYTHING, *_UUIDS]), *row[place + 1 :]]
        case _:
            return [*row[:place], _damaged_value(draws, row[place]), *row[place + 1 :]]


def _damaged_value(draws: Draws, value: Any) -> Any:
    """Something like it."""
    match value:
        case bool():
            return not value
        case int():
            return draws.pick([value + 1, max(value - 1, 0), 0, 1, 2**32 - 1, str(value)])
        case str():
            return draws.pick([value + "x", value.upper(), value[:-1], "", value + "\0", *_UUIDS])
        case list() if value:
            place = draws.below(len(value))
            match draws.below(4):
                case 0:
                    return [*value[:place], *value[place + 1 :]]
                case 1:
                    return [*value, value[place]]
            return [*value[:place], _damaged_value(draws, value[place]), *value[place + 1 :]]
        case dict() if value and draws.below(3):
            name = draws.pick(list(value))
            if draws.rarely(3):
                return {other: each for other, each in value.items() if other != name}
            return {**value, name: _damaged_value(draws, value[name])}
        case dict():
            return {**value, draws.pick(_OPTION_NAMES): draws.pick(_ANYTHING)}
    return draws.pick(_ANYTHING)


def _is_survived(request: system_rows.Request) -> bool:
    """Whether Tarantool 2.6.0 survives the request, and admin keeps its rights."""
    body = request.body
    key = body.get(KEY, [])
    rows = [] if request.kind == UPDATE else [dict(enumerate(body.get(TUPLE, [])))]
    operations = body.get(TUPLE if request.kind == UPDATE else OPERATIONS, [])
    rows += [{number: value} for _, number, value in operations]
    match body[SPACE_ID]:
        case system_rows.COLLATION:
            return request.kind != DELETE or key[0] in (0, *range(900, 1000))
        case system_rows.INDEX:
            return all(row.get(5) not in ([], {}) for row in rows)
        case system_rows.FUNC:
            bodies = [row.get(5, "") for row in rows]
            return all(body in _BODIES or not isinstance(body, str) for body in bodies) and all(
                not row.get(15) or not isinstance(row[15], dict) for row in rows
            )
        case system_rows.USER:
            auths = [row.get(4) for row in rows]
            return all(not isinstance(auth, dict) or _are_texts(auth) for auth in auths)
        case system_rows.PRIV:
            return ADMIN not in (*key[:1], *(row.get(1) for row in rows))
        case system_rows.SCHEMA:
            keys = [*key[:1], *(row[0] for row in rows if 0 in row)]
            is_about_set = any(isinstance(each, str) and each.startswith("cluster") for each in keys)
            values = [row.get(1, None if 0 in row else _SET) for row in rows]
            return not is_about_set or all(isinstance(value, str) for value in values)
    return True


def _are_texts(auth: Mapping[Any, Any]) -> bool:
    return all(isinstance(each, str) for pair in auth.items() for each in pair)
