"""Facades of indexes, and changes of spaces' definitions, for procedures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space
from tests.box.api.ids import ids
from tests.box.boxes import accounts, refused, state


class TestIndexes:
    @pytest.mark.parametrize(
        ("parts", "stored"),
        [
            (["name"], [[1, "string"]]),
            ([1], [[1, "string"]]),
            ([("name", "string")], [[1, "string"]]),
            ([{"field": "name"}], [[1, "string"]]),
            (["balance", (0, "unsigned")], [[2, "integer"], [0, "unsigned"]]),
            ([("note", "scalar")], [{"field": 3, "type": "scalar", "is_nullable": True}]),
            (None, [[0, "unsigned"]]),
        ],
    )
    def test_parts(self, box: Box, space: Space, parts: Any, stored: list[Any]) -> None:
        index = space.create_index("new", parts=parts)
        row = box.space["_index"].get([space.id, index.id])
        assert row is not None
        assert row["parts"] == stored
        assert ids(index.select(limit=1)) == [1]

    @pytest.mark.parametrize(
        ("parts", "code"),
        [
            (["nobody"], 1),
            ([], 1),
            ("name", 1),
            ([[]], 1),
            ([None], 1),
            ([-1], 1),
            ([True], 1),
            ([("name", "unsigned")], 24),
            ([("name", "bogus")], 107),
            ([(9, "unsigned")], 39),
            ([{"field": 1, "type": "string", "collation": "bogus"}], 1),
        ],
    )
    def test_parts_that_do_not_fit(self, space: Space, parts: Any, code: int) -> None:
        before = state(space)
        assert refused(space.create_index, "new", parts=parts)[0] == code
        assert (state(space), "new" in space.index) == (before, False)

    def test_a_unique_index_on_what_is_not(self, space: Space) -> None:
        assert refused(space.create_index, "new", parts=["balance"]) == (
            3,
            "Duplicate key exists in unique index 'new' in space 'accounts'",
        )
        assert "new" not in space.index

    def test_a_name_that_is_taken(self, space: Space) -> None:
        assert refused(space.create_index, "name") == (85, "Index 'name' already exists")
        assert space.create_index("name", parts=[0], if_not_exists=True).id == 1

    def test_numbers(self, space: Space) -> None:
        assert space.create_index("far", id=9).id == 9
        assert space.create_index("next").id == 10
        assert refused(space.create_index, "again", id=9)[0] == ErrorCode.TUPLE_FOUND

    def test_dropping(self, space: Space) -> None:
        dropped = space.index.name
        dropped.drop()
        assert refused(dropped.select)[0] == ErrorCode.NO_SUCH_INDEX_ID
        assert repr(dropped) == "<index 1 of space accounts>"
        space.insert([4, "Ann", 40])
        assert refused(space.index.primary.drop)[0] == ErrorCode.DROP_PRIMARY_KEY
        space.index.balance.drop()
        space.index.primary.drop()
        assert (len(space), space.bsize(), len(space.index)) == (0, 0, 0)

    def test_renaming(self, space: Space) -> None:
        index = space.index.name
        index.rename("who")
        assert (index.name, "name" in space.index) == ("who", False)
        assert index.get("Ann") == [1, "Ann", 10]
        assert refused(index.rename, "balance")[0] == ErrorCode.TUPLE_FOUND
        assert refused(index.rename, "")[0] == ErrorCode.IDENTIFIER


class TestDropAndRename:
    def test_a_dropped_space_is_of_no_use(self, box: Box, space: Space) -> None:
        index = space.index.name
        space.truncate()
        space.drop()
        uses: list[Callable[[], object]] = [
            lambda: space.insert([1, "Ann", 1]),
            lambda: space.select(),
            lambda: space.len(),
            lambda: space.drop(),
            lambda: space.truncate(),
            lambda: space.format(),
            lambda: space.create_index("new"),
            lambda: space.on_replace(print),
            lambda: index.get("Ann"),
            lambda: box.space.accounts,
        ]
        assert [refused(use)[0] for use in uses] == [ErrorCode.NO_SUCH_SPACE] * len(uses)
        assert repr(space) == "<space accounts>"

    def test_another_of_its_name_is_another(self, box: Box, space: Space) -> None:
        space.drop()
        again = accounts(box)
        assert again.id != space.id
        assert refused(space.select)[0] == ErrorCode.NO_SUCH_SPACE
        assert len(again) == 3

    def test_renaming(self, box: Box, space: Space) -> None:
        space.rename("people")
        assert (space.name, "accounts" in box.space) == ("people", False)
        assert box.space.people.get(1) == [1, "Ann", 10]
        assert refused(space.insert, [1, "Ann", 1])[1].endswith("in space 'people'")

    @pytest.mark.parametrize(("name", "code"), [("_space", 3), ("", 70), ("a\n", 70)])
    def test_a_name_that_cannot_be(self, space: Space, name: str, code: int) -> None:
        assert refused(space.rename, name)[0] == code
        assert space.name == "accounts"

    def test_creating_one_that_is_there(self, box: Box, space: Space) -> None:
        assert refused(box.schema.create_space, "accounts") == (10, "Space 'accounts' already exists")
        assert box.schema.create_space("accounts", if_not_exists=True).id == space.id

    @pytest.mark.parametrize(
        ("name", "options", "code"),
        [
            ("", {}, 70),
            ("s", {"engine": "vinyl"}, 57),
            ("s", {"id": 280}, 3),
            ("s", {"format": [5]}, 1),
            (5, {}, 1),
        ],
    )
    def test_one_that_cannot_be(self, box: Box, name: Any, options: dict[str, Any], code: int) -> None:
        before = len(box.space["_space"])
        assert refused(box.schema.create_space, name, **options)[0] == code
        assert len(box.space["_space"]) == before


def test_its_use_needs_a_privilege(box: Box, space: Space) -> None:
    box.schema.user.create("ann")
    box.schema.user.grant("ann", "read", "space", "accounts")
    before = state(space)
    with box.session.su("ann"):
        assert space.get(1) == [1, "Ann", 10]
        uses: list[Callable[[], object]] = [
            lambda: space.insert([4, "Dan", 40]),
            lambda: space.replace([1, "Dan", 40]),
            lambda: space.upsert([1, "Dan", 40], []),
            lambda: space.update(1, [("=", "note", "")]),
            lambda: space.index.name.delete("Ann"),
            lambda: space.truncate(),
        ]
        for use in uses:
            assert refused(use) == (42, "Write access to space 'accounts' is denied for user 'ann'")
        assert refused(space.drop)[0] == ErrorCode.ACCESS_DENIED
    assert state(space) == before
