"""Functions under `box.` that clients call by name: a real Tarantool and our server answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.differential.both import Both

SPACE = "called"

Call = tuple[Any, ...]


@pytest.fixture
def on_space(both: Both) -> Iterator[Callable[..., None]]:
    """Calls methods of a space with two rows, a primary index, and one on the second field, not unique."""
    both.prepare("box.schema.create_space", SPACE)
    for call in [
        ("create_index", "primary", {"parts": [1, "unsigned"]}),
        ("create_index", "word", {"parts": [[2, "string"]], "unique": False}),
        ("insert", [1, "one"]),
        ("insert", [2, "two", {"more": 2}]),
    ]:
        both.call(f"box.space.{SPACE}:{call[0]}", *call[1:])

    def ask(*calls: Call) -> None:
        for method, *arguments in calls:
            separator = "." if method.startswith("index.") else ":"
            both.call(f"box.space.{SPACE}{separator}{method}", *arguments)

    yield ask
    both.prepare(f"box.space.{SPACE}:drop")


def test_reading(on_space: Callable[..., None]) -> None:
    on_space(
        ("get", 1),
        ("get", [1]),
        ("get", 9),
        ("get", []),
        ("get", [1, 2]),
        ("get", "x"),
        ("get",),
        ("select",),
        ("select", None),
        ("select", []),
        ("select", 2),
        ("select", [], {"iterator": "LT"}),
        ("select", 1, {"iterator": "GE", "limit": 1, "offset": 1}),
        ("select", 1, {"iterator": "foo"}),
        ("select", 1, {"limit": 0}),
        ("select", "x"),
        ("count",),
        ("count", 1),
        ("count", 1, {"iterator": "GT"}),
        ("len",),
        ("index.word:select", "two"),
        ("index.word:select", ["zero"]),
        ("index.word:count", "one"),
        ("index.word:get", "one"),
        ("index.word:min",),
        ("index.word:max", "one"),
        ("index.word:max", "zero"),
        ("index.primary:min",),
        ("index.primary:max",),
        ("no_such_method",),
        ("index.no_such_index:get", 1),
    )


def test_altering_an_index(on_space: Callable[..., None]) -> None:
    alter = "index.word:alter"
    on_space(
        (alter,),
        (alter, None),
        (alter, {}),
        (alter, 5),
        (alter, {"foo": 1}),
        (alter, {"if_not_exists": True}),
        (alter, {"unique": "yes"}),
        (alter, {"unique": True}),
        ("insert", [3, "one"]),
        (alter, {"parts": [[2, "unsigned"]]}),
        (alter, {"parts": [[3, "map", None, True]]}),
        (alter, {"parts": []}),
        (alter, {"parts": [{"field": 2, "type": "string"}, {"field": 1, "type": "unsigned"}]}),
        ("index.word:select", ["one", 1]),
        (alter, {"type": "hash"}),
        ("index.word:select", ["one", 1]),
        ("index.word:select", ["one"]),
        (alter, {"type": "rtree"}),
        (alter, {"type": "tree", "unique": False}),
        (alter, {"sequence": True}),
        (alter, {"id": 5, "unique": True}),
        (alter, {"id": 5}),
        (alter, {"name": "primary"}),
        ("index.primary:alter", {"unique": False}),
        ("index.primary:alter", {"parts": [[2, "string"]]}),
        ("select",),
        ("index.primary:alter", {"parts": [[1, "integer"]], "sequence": True}),
        ("insert", [None, "next"]),
        ("index.primary:alter", {"sequence": False}),
        ("insert", [None, "none"]),
        ("index.word:alter", {"name": "words"}),
        ("index.words:select", "two"),
    )


def test_writing(on_space: Callable[..., None]) -> None:
    on_space(
        ("insert", [1, "again"]),
        ("insert", ["x", "y"]),
        ("insert", [3]),
        ("insert", []),
        ("insert", 5),
        ("insert", {"a": 1}),
        ("insert",),
        ("replace", [3, "three"]),
        ("put", [3, "drei", None]),
        ("update", 3, [["=", 2, "trois"]]),
        ("update", [3], [["=", 9, "x"]]),
        ("update", [3], [["=", 0, "x"]]),
        ("update", [3], [["?", 1, "x"]]),
        ("update", [3], [5]),
        ("update", [3], 5),
        ("update", [3]),
        ("update",),
        ("update", [9], [["=", 2, "x"]]),
        ("index.primary:update", 3, [["=", 2, "tre"]]),
        ("index.word:update", "tre", [["=", 2, "x"]]),
        ("upsert", [3, "x"], [["=", 2, "tri"]]),
        ("upsert", [4, "four"], [["=", 2, "tri"]]),
        ("upsert", [4, "four"]),
        ("upsert",),
        ("delete", 4),
        ("delete", 4),
        ("index.word:delete", "tri"),
        ("index.primary:delete", [3]),
        ("select",),
        ("truncate",),
        ("len",),
        ("index.primary:min",),
    )


def test_changing_the_schema(on_space: Callable[..., None]) -> None:
    on_space(
        ("format",),
        ("format", [["id", "unsigned"], ["word", "string"]]),
        ("format",),
        ("format", [["id", "string"]]),
        ("format", [["id", "no such type"]]),
        ("format", [["same", "any"], ["same", "any"]]),
        ("format", 5),
        ("create_index", "word"),
        ("create_index",),
        ("create_index", "x", {"type": "no such type"}),
        ("create_index", "x", {"no such option": 1}),
        ("create_index", "x", {"parts": []}),
        ("create_index", "x", {"parts": [2, "no such type"]}),
        ("create_index", "x", {"parts": [[0, "string"]]}),
        ("create_index", "x", {"parts": [["no such field", "string"]]}),
        ("create_index", "by name", {"parts": ["word"]}),
        ("create_index", "hashed", {"type": "hash", "parts": [2, "string"]}),
        ("index.hashed:select", "one"),
        ("index.hashed:drop",),
        ("index.hashed:drop",),
        ("index.primary:drop",),
        ("index.word:rename", "words"),
        ("index.word:len",),
        ("index.words:len",),
        ("index.words:rename",),
        ("rename",),
        ("rename", "_space"),
    )


def test_spaces(both: Both) -> None:
    both.call("box.schema.create_space")
    both.call("box.schema.create_space", 5)
    both.call("box.schema.create_space", "_space")
    both.call("box.schema.create_space", "other", {"no such option": 1})
    both.call("box.schema.create_space", "other", {"engine": "no such engine"})
    both.prepare("box.schema.space.create", "other", {"id": 701, "field_count": 2})
    both.call("box.space.other:insert", [1, 2])
    both.call("box.space.other:create_index", "primary")
    both.call("box.space.other:insert", [1, 2])
    both.call("box.space.other:insert", [1])
    both.call("box.space._space:select", 701)
    both.call("box.space._index:select", 701)
    both.call("box.space.other:rename", "another")
    both.call("box.space.other:len")
    both.call("box.space.another:len")
    both.call("box.space.another:drop")
    both.call("box.space.another:drop")


def test_users_and_roles(both: Both) -> None:
    both.call("box.schema.user.create", "ann", {"password": "secret"})
    both.call("box.schema.user.create", "ann")
    both.call("box.schema.user.create", "ann", {"if_not_exists": True})
    both.call("box.schema.user.exists", "ann")
    both.call("box.schema.user.exists", "nobody")
    both.call("box.schema.user.info", "ann")
    both.call("box.schema.user.passwd", "ann", "other secret")
    both.call("box.space._vuser.index.name:select", "ann")
    both.call("box.schema.role.create", "reader")
    both.call("box.schema.role.create", "reader")
    both.call("box.schema.user.grant", "ann", "reader")
    both.call("box.schema.user.grant", "ann", "reader")
    both.call("box.schema.user.info", "ann")
    both.call("box.schema.user.revoke", "ann", "reader")
    both.call("box.schema.user.grant", "ann", "no such right", "space", "_space")
    both.call("box.schema.user.grant", "ann", "read", "no such kind", "_space")
    both.call("box.schema.user.grant", "nobody", "read", "space", "_space")
    both.call("box.schema.role.drop", "reader")
    both.call("box.schema.user.drop", "ann")
    both.call("box.schema.user.drop", "ann")
    both.call("box.schema.user.drop", "guest")


def test_only_an_owner_or_admin_grants(both: Both) -> None:
    both.prepare("box.schema.create_space", SPACE)
    both.call("box.schema.user.create", "ann")
    both.call("box.schema.user.grant", "ann", "read,write", "space", SPACE)
    both.call("box.schema.user.grant", "ann", "read,write", "space", SPACE)
    both.call("box.schema.user.grant", "ann", "read", "space", "_space")
    both.call("box.schema.user.grant", "ann", "read,write", "universe")
    both.call("box.schema.user.grant", "ann", "super")
    both.call("box.schema.user.grant", "ann", "public")
    both.call("box.schema.func.create", "some.function")
    both.call("box.schema.user.grant", "ann", "execute", "function", "some.function")
    both.call("box.schema.user.grant", "ann", "execute", "function", "some.function")
    both.call("box.schema.user.grant", "ann", "execute", "function", "no.such.function")
    both.call("box.schema.user.info", "ann")
    both.call("box.schema.user.grant", "guest", "execute", "universe")
    both.call("box.schema.user.revoke", "ann", "execute", "function", "some.function")
    both.call("box.schema.func.drop", "some.function")
    both.call("box.schema.user.revoke", "ann", "write", "space", SPACE)
    both.call("box.schema.user.revoke", "ann", "write", "space", SPACE)
    both.call("box.schema.user.info", "ann")
    both.call("box.schema.user.drop", "ann")
    both.call(f"box.space.{SPACE}:drop")


def test_functions(both: Both) -> None:
    both.call("box.schema.func.create", "some.function")
    both.call("box.schema.func.create", "some.function")
    both.call("box.schema.func.exists", "some.function")
    both.call("box.schema.func.drop", "some.function")
    both.call("box.schema.func.drop", "some.function")
    both.call("box.schema.func.exists", "some.function")


def test_session(both: Both) -> None:
    both.call("box.session.user")
    both.call("box.session.uid")
    both.call("box.session.euid")
    both.call("box.session.effective_user")
    both.call("box.session.type")
    both.call("box.session.exists", 2**20)


def test_becoming_somebody_else(both: Both) -> None:
    no_functions: list[tuple[object, ...]] = [(), (5,), ("f",), (None,), (True,), ([],)]
    both.call("box.schema.user.create", "somebody")
    both.call("box.schema.user.create", "without_session")
    both.call("box.schema.user.disable", "without_session")
    both.call("box.session.su")
    for user in ("nobody", "", "public", 9999, 2, "without_session", "admin"):
        for arguments in no_functions:
            both.call("box.session.su", user, *arguments)
            both.call("box.session.user")
    both.call("box.session.su", "somebody")
    both.call("box.session.user")
    both.call("box.session.su", "admin")


@pytest.mark.parametrize("user", [0, None, True, [], {"a": 1}, 0.0])
def test_becoming_guest_by_what_is_no_number(both: Both, user: object) -> None:
    both.call("box.session.su", "admin")
    both.call("box.session.su", user)
    both.call("box.session.user")
