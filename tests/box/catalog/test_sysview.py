"""The views of the system spaces: visibility of rows, and refusal of changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space
from tests.box.refusal import refusal

VIEWS = ["_vspace", "_vindex", "_vuser", "_vpriv", "_vfunc", "_vsequence", "_vcollation"]


@pytest.fixture
def box() -> Box:
    """A box with a space of admin, one of Ann, and a user Bob without privileges."""
    box = Box()
    for user in ("ann", "bob"):
        box.schema.user.create(user)
    for name, owner in (("shared", "admin"), ("own", "ann")):
        box.schema.create_space(name, user=owner).create_index("primary")
    box.schema.func.create("some.function")
    return box


def seen(box: Box, user: str, view: str) -> list[list[Any]]:
    with box.session.su(user):
        return [list(row) for row in box.space[view].select()]


def names(box: Box, user: str, view: str) -> set[str]:
    return {row[2] for row in seen(box, user, view)}


@pytest.mark.parametrize("view", VIEWS)
def test_admin_sees_everything(box: Box, view: str) -> None:
    source = view.replace("_v", "_", 1)
    assert seen(box, "admin", view) == seen(box, "admin", source)
    assert len(box.space[view]) == len(box.space[source])


def test_an_owner_sees_what_it_owns(box: Box) -> None:
    assert {"own"} <= names(box, "ann", "_vspace")
    assert "shared" not in names(box, "ann", "_vspace")
    own = box.space.own.id
    assert [row[:3] for row in seen(box, "ann", "_vindex") if row[0] == own] == [[own, 0, "primary"]]
    assert "own" not in names(box, "bob", "_vspace")


@pytest.mark.parametrize("right", ["read", "write", "alter", "drop"])
def test_any_use_of_a_space_shows_it(box: Box, right: str) -> None:
    box.schema.user.grant("bob", right, "space", "shared")
    assert "shared" in names(box, "bob", "_vspace")
    box.schema.user.revoke("bob", right, "space", "shared")
    assert "shared" not in names(box, "bob", "_vspace")


def test_a_right_on_every_space_shows_all_of_them_and_nobodys_grants(box: Box) -> None:
    box.schema.user.grant("bob", "read", "space")
    assert seen(box, "bob", "_vspace") == seen(box, "admin", "_space")
    assert names(box, "bob", "_vuser") == {"bob", "public"}


def test_everybody_sees_itself_its_roles_and_what_it_was_given(box: Box) -> None:
    bob = box.access.by_name("bob").user_id
    assert names(box, "bob", "_vuser") == {"bob", "public"}
    assert all(bob in row[:2] for row in seen(box, "bob", "_vpriv"))
    assert len(seen(box, "bob", "_vpriv")) == 3


def test_a_callable_function_is_visible(box: Box) -> None:
    assert "some.function" not in names(box, "bob", "_vfunc")
    box.schema.user.grant("bob", "execute", "function", "some.function")
    assert "some.function" in names(box, "bob", "_vfunc")


def test_every_way_of_reading_shows_the_same(box: Box) -> None:
    view = box.space["_vspace"]
    with box.session.su("ann"):
        rows = view.select()
        assert list(view.pairs()) == rows
        assert len(view) == view.count() == view.len() == len(rows)
        assert view.index.name.get("own") == view.get(box.space.own.id)
        assert view.get(box.space.own.id) in rows
        assert view.select(limit=1, offset=1) == rows[1:2]
        assert view.index.name.get("shared") is None
        assert view.primary.max() == rows[-1]


@pytest.mark.parametrize(
    "change",
    [
        lambda view: view.insert([1, 1, "x", "user"]),
        lambda view: view.replace([1, 1, "x", "user"]),
        lambda view: view.delete(1),
        lambda view: view.update(1, [("=", 2, "x")]),
        lambda view: view.upsert([1, 1, "x", "user"], [("=", 2, "x")]),
    ],
)
def test_views_are_for_reading(box: Box, change: Callable[[Space], object]) -> None:
    with refusal(ErrorCode.VIEW_IS_RO, "View '_vuser' is read-only"):
        change(box.space["_vuser"])


def test_its_own_index_refuses_a_key_where_its_source_has_lost_that_index(box: Box) -> None:
    """As Tarantool 2.6 does."""
    view = box.space["_vspace"].index["name"]
    box.space["_index"].delete([280, 2])
    for find in (view.select, view.get):
        with refusal(ErrorCode.KEY_PART_TYPE, "Supplied key type of part 0 does not match"):
            find([280])
        with refusal(ErrorCode.NO_SUCH_INDEX_ID, "No index #2 is defined in space '_space'"):
            find(["guest"])
