"""Refusal of rows that Tarantool 2.6 accepts although it cannot start from their snapshot."""

from __future__ import annotations

import pytest

from iproto_server import Box
from tests.box.boxes import new_box, refused, rows


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.mark.parametrize(
    ("before", "after", "granted_as"),
    [("role", "user", "role"), ("user", "role", "user"), ("role", "user", "ROLE")],
)
def test_granted_objects_keep_their_kind(box: Box, before: str, after: str, granted_as: str) -> None:
    """Grants are loaded after all users, and require a role or a user."""
    users, grants = box.space["_user"], box.space["_priv"]
    users.insert([900, 1, "granted", before, {}])
    users.insert([901, 1, "ann", "user", {}])
    grants.insert([1, 901, granted_as, 900, 4])
    reason = f"This server does not support a {after} that has been granted as a {before}"
    assert refused(users.replace, [900, 1, "granted", after, {}]) == (5, reason)
    users.replace([900, 1, "renamed", before, {}])
    grants.delete([901, granted_as, 900])
    users.replace([900, 1, "granted", after, {}])


def test_a_sequence_that_a_later_space_has_is_nobodys_own(box: Box) -> None:
    """Rows are loaded by space id; a second space after the owner is refused."""
    box.schema.sequence.create("numbers")
    sequence_id = rows(box.space["_sequence"])[0][0]
    for number in (600, 601, 602):
        box.schema.create_space(f"space {number}", id=number).create_index("pk")
    attachments = box.space["_space_sequence"]
    attachments.insert([601, sequence_id, False, 0, ""])
    reason = "This server does not support a sequence of one space that another has"
    assert refused(attachments.insert, [600, sequence_id, True, 0, ""]) == (5, reason)
    attachments.insert([602, sequence_id, True, 0, ""])


def test_objects_granted_in_capitals_are_not_dropped(box: Box) -> None:
    """Grants on missing objects are refused when they are loaded."""
    box.schema.create_space("granted", id=600)
    box.space["_priv"].insert([1, 0, "SPACE", 600, 1])
    reason = "Can't drop space 'granted': the space has grants"
    assert refused(box.space["_space"].delete, [600]) == (11, reason)


def test_the_space_of_the_version_keeps_its_name(box: Box) -> None:
    """Tarantool reads the schema version from `box.space._schema` when it starts."""
    reason = "This server does not support another name of the space _schema"
    spaces = box.space["_space"]
    assert refused(spaces.update, 272, [("=", 2, "renamed")]) == (5, reason)
    spaces.update(272, [("=", 6, [])])
    spaces.update(280, [("=", 2, "renamed")])
    spaces.update(280, [("=", 2, "_space")])


@pytest.mark.parametrize(
    ("space_id", "index_id", "reason"),
    [
        (257, 0, "Blackhole does not support indexes"),
        (380, 3, "Session_settings space does not support create_index()"),
    ],
)
@pytest.mark.parametrize("kind", ["x", "rtree", "bitset", "hash", "tree"])
def test_a_space_without_rows_of_its_own_refuses_indexes_of_every_type(
    box: Box, space_id: int, index_id: int, reason: str, kind: str
) -> None:
    """The checks of memtx do not apply; the types of parts are checked before."""
    indexes = box.space["_index"]
    for parts in ([[1, "any"]], [{"field": 0, "type": "string", "is_nullable": True}]):
        row = [space_id, index_id, "new", kind, {"unique": True}, parts]
        assert refused(indexes.insert, row) == (5, reason)
    code, _ = refused(indexes.insert, [space_id, index_id, "new", kind, {"unique": True}, [[0, "x"]]])
    assert code == 107


def test_parts_of_an_index_of_session_settings_fit_its_other_index(box: Box) -> None:
    indexes = box.space["_index"]
    row = [380, 3, "new", "tree", {"unique": True}, [[0, "unsigned"]]]
    assert refused(indexes.insert, row)[0] == 24
    row[4] = {"unique": True, "func": 1}
    reason = "Session_settings space does not support create_index()"
    assert refused(indexes.insert, row) == (5, reason)


def test_a_space_does_not_go_without_the_index_of_grants(box: Box) -> None:
    """Tarantool looks up grants there, also during recovery from a log."""
    box.schema.create_space("new", id=600)
    box.space["_index"].delete([312, 2])
    reason = "No index #2 is defined in space '_priv'"
    assert refused(box.space["_space"].delete, 600) == (35, reason)
