"""Rows of constraints and triggers: new ones are refused, existing ones are checked."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space
from tests.box.boxes import new_box, refused, rows
from tests.box.refusal import refusal
from tests.differential.ddl.system_rows import INDEX, SPACE

PARENT, CHILD = 600, 601

ROWS: dict[str, tuple[list[Any], str]] = {
    "_trigger": (["t", PARENT, {"sql": "CREATE TRIGGER …"}], "SQL triggers"),
    "_fk_constraint": (
        ["f", CHILD, PARENT, False, "simple", "no_action", "no_action", [0], [0]],
        "foreign key constraints",
    ),
    "_ck_constraint": ([PARENT, "c", False, "SQL", "id > 5", True], "check constraints"),
    "_func_index": ([PARENT, 0, 1], "functional indexes"),
}


@pytest.fixture
def box() -> Box:
    """A box with two spaces and rows of constraints from another server."""
    box = new_box()[0]
    for number, name in ((PARENT, "parent"), (CHILD, "child")):
        space = box.schema.create_space(name, id=number)
        space.create_index("pk")
        space.create_index("other", parts=[(1, "unsigned")])
    return box


def load(box: Box, name: str) -> Space:
    """Store a row as recovery from a log would."""
    space = box.space[name]
    box.catalog.is_loading = True
    space.insert(ROWS[name][0])
    box.catalog.is_loading = False
    return space


@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_added(box: Box, name: str) -> None:
    row, what = ROWS[name]
    for change in (box.space[name].insert, box.space[name].replace):
        assert refused(change, row) == (5, f"This server does not support {what}")
    with refusal(ErrorCode.UNSUPPORTED):
        box.space[name].upsert(row, [])
    assert rows(box.space[name]) == []


@pytest.mark.parametrize("name", ["_trigger", "_fk_constraint", "_ck_constraint"])
def test_a_row_that_is_there_goes_with_its_space(box: Box, name: str) -> None:
    kept = load(box, name)
    with refusal(ErrorCode.UNSUPPORTED):
        kept.replace(ROWS[name][0])
    box.space.child.drop()
    box.space.parent.drop()
    assert rows(kept) == []


def test_a_row_that_is_there_can_be_taken_away(box: Box) -> None:
    assert load(box, "_trigger").delete("t") is not None
    assert len(box.space._trigger) == 0


@pytest.mark.parametrize(
    ("name", "space_id", "reason"),
    [
        ("_fk_constraint", CHILD, "the space has foreign key constraints"),
        ("_ck_constraint", PARENT, "the space has check constraints"),
    ],
)
def test_a_space_with_constraints_is_not_dropped_without_them(
    box: Box, name: str, space_id: int, reason: str
) -> None:
    load(box, name)
    space = box.space[space_id]
    space.index.other.drop()
    space.index.pk.drop()
    assert refused(box.space._space.delete, space_id) == (11, f"Can't drop space '{space.name}': {reason}")


def test_an_index_that_foreign_keys_refer_to_is_not_dropped(box: Box) -> None:
    load(box, "_fk_constraint")
    parent = box.space.parent
    parent.index.other.drop()
    text = "Can't modify space 'parent': can not drop a referenced index"
    assert refused(parent.index.pk.drop) == refused(parent.drop) == (12, text)
    box.space.child.drop()
    parent.drop()


def without_the_index_of_names(box: Box, space_id: int) -> None:
    """Allow duplicate names in a system space, whose index of names has the number 2."""
    box.space._index.delete([space_id, 2])


@pytest.mark.parametrize(
    ("index_id", "name", "text"),
    [
        (1, "pk", "PRIMARY KEY constraint 'pk' already exists in space 'parent'"),
        (2, "other", "UNIQUE constraint 'other' already exists in space 'parent'"),
    ],
)
def test_unique_indexes_of_a_space_have_different_names(
    box: Box, index_id: int, name: str, text: str
) -> None:
    """For created, replaced and altered indexes, independently of the indexes of `_index`."""
    indexes = box.space._index
    without_the_index_of_names(box, INDEX)
    row = [PARENT, index_id, name, "tree", {"unique": True}, [[1, "unsigned"]]]
    if index_id == 2:
        assert refused(indexes.insert, row) == (170, text)
        box.space.parent.create_index("third", id=2, parts=[(1, "unsigned")])
    assert refused(indexes.replace, row) == (170, text)
    assert refused(indexes.update, [PARENT, index_id], [("=", 2, name)]) == (170, text)
    assert refused(indexes.upsert, row, [("=", 2, name)]) == (170, text)


def test_an_index_that_is_not_unique_is_no_constraint(box: Box) -> None:
    indexes = box.space._index
    without_the_index_of_names(box, INDEX)
    indexes.insert([PARENT, 2, "other", "tree", {"unique": False}, [[1, "unsigned"]]])
    text = "UNIQUE constraint 'other' already exists in space 'parent'"
    become_unique = [PARENT, 2], [("=", 4, {"unique": True})]
    assert refused(indexes.update, *become_unique) == (170, text)
    indexes.update([PARENT, 1], [("=", 2, "renamed")])
    indexes.update(*become_unique)
    assert box.space.parent.index.other.id == 2


def test_indexes_of_a_view_have_different_names(box: Box) -> None:
    indexes = box.space._index
    without_the_index_of_names(box, INDEX)
    text = "PRIMARY KEY constraint 'primary' already exists in space '_vfunc'"
    assert refused(indexes.update, [297, 2], [("=", 2, "primary")]) == (170, text)
    row = [297, 2, "primary", "tree", {"unique": True}, [[2, "string"]]]
    assert refused(indexes.replace, row) == (170, text)
    indexes.delete([297, 2])
    assert refused(indexes.insert, row) == (170, text)


@pytest.mark.parametrize(
    ("name", "space_id", "text"),
    [
        ("_fk_constraint", CHILD, "FOREIGN KEY constraint 'f' already exists in space 'child'"),
        ("_ck_constraint", PARENT, "CHECK constraint 'c' already exists in space 'parent'"),
    ],
)
def test_a_unique_index_has_no_other_constraints_name(box: Box, name: str, space_id: int, text: str) -> None:
    load(box, name)
    taken = text.split("'")[1]
    space, another = box.space[space_id], box.space[PARENT + CHILD - space_id]
    assert refused(space.create_index, taken, parts=[(1, "unsigned")]) == (170, text)
    assert refused(space.index.other.rename, taken) == (170, text)
    space.create_index(taken, parts=[(1, "unsigned")], unique=False)
    another.create_index(taken, parts=[(1, "unsigned")])


def test_two_spaces_have_different_names_whatever_indexes_there_are(box: Box) -> None:
    """Tarantool 2.6 confuses the two when the second is dropped, and frees invalid memory."""
    spaces = box.space._space
    without_the_index_of_names(box, SPACE)
    text = "Duplicate key exists in unique index 'name' in space '_space'"
    row = [602, 1, "parent", "memtx", 0, {}, []]
    assert refused(spaces.insert, row) == (3, text)
    assert refused(spaces.update, CHILD, [("=", 2, "parent")]) == (3, text)
    spaces.update(PARENT, [("=", 3, "memtx")])
    spaces.update(PARENT, [("=", 2, "free again")])
    spaces.insert(row)


def test_spaces_of_one_name_in_a_database_go_one_by_one(box: Box) -> None:
    without_the_index_of_names(box, SPACE)
    box.catalog.is_loading = True
    for number in (602, 603):
        box.space._space.insert([number, 1, "twin", "memtx", 0, {}, []])
    box.catalog.is_loading = False
    for number in (602, 603):
        box.space[number].drop()
    assert "twin" not in box.space


FIELD_OPTIONS: list[dict[str, Any]] = [
    {"constraint": "no_such_function"},
    {"constraint": {"positive": "no_such_function"}},
    {"foreign_key": {"space": "parent", "field": "id"}},
    {"default": "text"},
    {"default": 5},
    {"default_func": 1},
    {"compression": "zstd"},
]


@pytest.mark.parametrize("option", FIELD_OPTIONS, ids=str)
def test_a_field_has_no_option_that_is_not_enforced(box: Box, option: dict[str, Any]) -> None:
    """Neither when a space is created, nor in a later format, nor in a row of `_space`."""
    [name] = option
    text = f"This server does not support the option '{name}' of the field 'v'"
    fields = [{"name": "id", "type": "unsigned"}, {"name": "v", "type": "any", **option}]
    parent = box.space.parent
    assert refused(box.schema.create_space, "new", format=fields) == (5, text)
    assert "new" not in box.space
    assert refused(parent.format, fields) == (5, text)
    assert refused(box.space._space.insert, [700, 1, "new", "memtx", 0, {}, fields]) == (5, text)
    assert refused(box.space._space.update, PARENT, [("=", 6, fields)]) == (5, text)
    assert parent.format() == []


@pytest.mark.parametrize("option", ["constraint", "foreign_key"])
def test_a_space_has_no_constraint(box: Box, option: str) -> None:
    row = [700, 1, "new", "memtx", 0, {option: {"c": 1}}, []]
    text = f"Wrong space options (field 5): unexpected option '{option}'"
    assert refused(box.space._space.insert, row) == (111, text)
