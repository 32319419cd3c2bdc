"""Rows about constraints and triggers: nobody adds one, and those that are there are minded."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space
from tests.box.boxes import new_box, refused, rows
from tests.box.refusal import refusal

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
    """A box with two spaces, and with rows about them that came from elsewhere."""
    box = new_box()[0]
    for number, name in ((PARENT, "parent"), (CHILD, "child")):
        space = box.schema.create_space(name, id=number)
        space.create_index("pk")
        space.create_index("other", parts=[(1, "unsigned")])
    return box


def load(box: Box, name: str) -> Space:
    """Have a row as if it had been in a log."""
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
