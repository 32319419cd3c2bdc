"""`box.schema` from Python: forms of arguments and their results."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode
from iproto_server.box.api.ddl.schema_arguments import normalized_format
from tests.box.refusal import refusal


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["id"], [{"name": "id", "type": "any"}]),
        ([("id", "unsigned")], [{"name": "id", "type": "unsigned"}]),
        ([["id", "unsigned"]], [{"name": "id", "type": "unsigned"}]),
        ([{"name": "id"}], [{"name": "id", "type": "any"}]),
        ([{"name": "id", "type": "string", "more": 1}], [{"name": "id", "type": "string", "more": 1}]),
        ([{1: "id", 2: "string"}], [{"name": "id", "type": "string"}]),
        ([{1: "id", "type": "string"}], [{"name": "id", "type": "string"}]),
        ([{1: "string", "name": "id"}], [{"name": "id", "type": "string"}]),
        ([], []),
    ],
)
def test_a_field_is_a_name_a_pair_or_a_mapping(given: list[Any], kept: list[Any]) -> None:
    assert normalized_format(given) == kept


@pytest.mark.parametrize("wrong", [5, None, [], {}, [5], {"type": "any"}])
def test_a_field_has_a_name(wrong: object) -> None:
    with refusal(ErrorCode.ILLEGAL_PARAMS, r"format\[2\]: name \(string\) is expected"):
        normalized_format(["id", wrong])


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        (["id"], [[0, "unsigned"]]),
        (["word", "id"], [[1, "string"], [0, "unsigned"]]),
        ([0], [[0, "unsigned"]]),
        ([7], [[7, "scalar"]]),
        ([(1, "string")], [[1, "string"]]),
        ([["word", "string"]], [[1, "string"]]),
        ([0, "unsigned", 1, "string"], [[0, "unsigned"], [1, "string"]]),
        ([{"field": "id"}], [[0, "unsigned"]]),
        (["maybe"], [{"field": 2, "type": "string", "is_nullable": True}]),
        ([{"field": 2, "is_nullable": True}], [{"field": 2, "type": "string", "is_nullable": True}]),
    ],
)
def test_an_index_part_is_a_field_a_pair_or_a_mapping(box: Box, parts: list[Any], kept: list[Any]) -> None:
    space = box.schema.create_space(
        "t", format=["id", "word", {"name": "maybe", "type": "string", "is_nullable": True}]
    )
    space.format([("id", "unsigned"), ("word", "string"), space.format()[2]])
    space.create_index("primary")
    index = space.create_index("second", parts=parts)
    [row] = box.space["_index"].select([space.id, index.id])
    assert row[5] == kept


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (5, "options.parts parameter should be a table"),
        ([], "options.parts must have at least one part"),
        (["nosuch"], r"options.parts\[1\]: field was not found by name 'nosuch'"),
        ([None], r"options.parts\[1\]: field \(name or number\) is expected"),
    ],
)
def test_wrong_index_parts(box: Box, parts: Any, text: str) -> None:
    space = box.schema.create_space("t", format=[("id", "unsigned")])
    with refusal(ErrorCode.ILLEGAL_PARAMS, text):
        space.create_index("primary", parts=parts)
    assert len(space.index) == 0


def test_the_first_index_is_on_the_first_field_unless_it_says_otherwise(box: Box) -> None:
    box.schema.create_space("plain").create_index("primary")
    box.schema.create_space("named", format=[("name", "string")]).create_index("primary")
    assert [row[5] for row in box.space["_index"].select() if row[2] == "primary"][-2:] == [
        [[0, "unsigned"]],
        [[0, "string"]],
    ]


def test_an_index_may_choose_its_number(box: Box) -> None:
    space = box.schema.create_space("t")
    space.create_index("primary")
    assert space.create_index("fifth", id=5).id == 5
    assert space.create_index("next").id == 6
    assert space.index[5].name == "fifth"
    with refusal(ErrorCode.TUPLE_FOUND, "_index"):
        space.create_index("again", id=5)


def test_if_not_exists_answers_what_there_is(box: Box) -> None:
    space = box.schema.create_space("t", format=["id"])
    index = space.create_index("primary")
    assert box.schema.create_space("t", field_count=9, if_not_exists=True).id == space.id
    assert space.create_index("primary", parts=[5], if_not_exists=True).id == index.id
    with refusal(ErrorCode.SPACE_EXISTS, "t"):
        box.schema.create_space("t")
    with refusal(ErrorCode.INDEX_EXISTS, "primary"):
        space.create_index("primary")


def test_options_of_a_space_are_kept_in_its_row(box: Box) -> None:
    box.schema.user.create("ann")
    space = box.schema.create_space("t", id=700, temporary=True, is_local=True, field_count=2, user="ann")
    [row] = box.space["_space"].select(700)
    assert row[1] == box.access.by_name("ann").user_id
    assert row[4:6] == [2, {"temporary": True, "group_id": 1}]
    assert space.temporary
    with refusal(ErrorCode.NO_SUCH_USER, "nobody"):
        box.schema.create_space("u", user="nobody")


def test_an_index_is_altered_with_its_rows(box: Box) -> None:
    space = box.schema.create_space(
        "t", format=[("id", "unsigned"), ("word", "string"), ("size", "unsigned")]
    )
    space.create_index("pk")
    index = space.create_index("more", parts=["word"], unique=False)
    for row in ([1, "b", 20], [2, "a", 10], [3, "a", 30]):
        space.insert(row)
    with refusal(ErrorCode.TUPLE_FOUND, "Duplicate key exists in unique index 'more' in space 't'"):
        index.alter(unique=True)
    assert not index.unique
    index.alter(name="sizes", parts=["size"], unique=True)
    assert [row["id"] for row in space.index.sizes.select()] == [2, 1, 3]
    assert index.unique
    space.index.pk.alter(sequence=True)
    space.delete(1)
    assert space.insert([None, "c", 40])["id"] == 1
    with refusal(ErrorCode.PROC_LUA, "Don't know how to update both id and unique"):
        index.alter(id=7, unique=False)


def test_tarantool_3_has_a_word_for_temporary_rows(box: Box) -> None:
    assert box.schema.create_space("rows", type="data-temporary").temporary
    assert not box.schema.create_space("plain", type="normal").temporary
    with refusal(ErrorCode.ILLEGAL_PARAMS, "only one of 'type' or 'temporary' may be specified"):
        box.schema.create_space("both", type="normal", temporary=True)
    with refusal(ErrorCode.ILLEGAL_PARAMS, "unknown space type, must be one of"):
        box.schema.create_space("wrong", type="none")
    with refusal(ErrorCode.UNSUPPORTED, "This server does not support temporary definitions of spaces"):
        box.schema.create_space("all", type="temporary")


def test_the_faces_of_a_renamed_space_follow_it(box: Box) -> None:
    space = box.schema.create_space("old")
    space.create_index("primary")
    index = space.index.primary
    space.insert([1])
    space.rename("new")
    assert space.name == "new"
    assert box.space.new.get(1) == [1]
    assert index.get(1) == [1]
    assert "old" not in box.space
    with refusal(ErrorCode.TUPLE_FOUND, "in space 'new'"):
        space.insert([1])
    other = box.schema.create_space("old")
    assert other.id != space.id
    assert box.space["old"].id == other.id


def test_dropping_a_space_takes_everything_with_it(box: Box) -> None:
    box.schema.user.create("ann")
    space = box.schema.create_space("t")
    for name in ("primary", "second", "third"):
        space.create_index(name)
    space.insert([1])
    space.truncate()
    box.schema.user.grant("ann", "read", "space", "t")
    space.drop()
    for name in ("_space", "_index", "_truncate"):
        assert box.space[name].select(space.id) == []
    assert box.space["_priv"].index.object.select(["space", space.id]) == []
    with refusal(ErrorCode.NO_SUCH_SPACE, "t"):
        space.drop()


def test_a_drop_that_fails_half_way_is_undone(box: Box) -> None:
    space = box.schema.create_space("t")
    space.create_index("primary")
    space.create_index("second")
    space.insert([1])

    def keep(old: object, new: object) -> None:
        if new is None:
            raise BoxError.procedure("not this one")

    box.space["_space"].on_replace(keep)
    with refusal(ErrorCode.PROC_LUA, "not this one"):
        space.drop()
    assert [index.name for index in space.index] == ["primary", "second"]
    assert space.index.second.select() == [[1]]


def test_changes_of_the_schema_roll_back(box: Box) -> None:
    version = box.catalog.schema_version

    def change() -> None:
        space = box.schema.create_space("t")
        space.create_index("primary")
        space.rename("u")
        space.format([("id", "unsigned")])
        box.schema.user.create("ann")
        box.schema.user.grant("ann", "read", "space", "u")
        raise BoxError.procedure("enough")

    with refusal(ErrorCode.PROC_LUA, "enough"):
        box.atomic(change)
    assert "t" not in box.space
    assert "u" not in box.space
    assert not box.schema.user.exists("ann")
    # Clients that loaded the schema in between must load it again.
    assert box.catalog.schema_version > version
