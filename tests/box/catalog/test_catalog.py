"""DDL is DML on the system spaces: effects of rows of `_space`, `_index` and `_truncate`, and their undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space
from tests.box.boxes import accounts, rows, state
from tests.box.refusal import refusal

ID = 700


@pytest.fixture
def box() -> Box:
    return Box()


def space_row(name: str = "t", space_id: int = ID, **more: Any) -> list[Any]:
    return [space_id, 1, name, "memtx", 0, more.get("flags", {}), more.get("format", [])]


def index_row(parts: list[Any], index_id: int = 0, name: str = "primary", **options: Any) -> list[Any]:
    return [ID, index_id, name, options.pop("type", "tree"), {"unique": True, **options}, parts]


@pytest.fixture
def space(box: Box) -> Space:
    """Three rows; the primary index is on the first field, `third` on the third."""
    box.space._space.insert(space_row())
    box.space._index.insert(index_row([[0, "unsigned"]]))
    box.space._index.insert(index_row([[2, "unsigned"]], 1, "third", unique=False))
    for row in ([1, "a", 30], [2, "b", 20], [3, "c", 10]):
        box.space.t.insert(row)
    return box.space.t


def visible(box: Box) -> list[Any]:
    """The visible state of the schema and of all users' spaces."""
    own = sorted((face for face in box.space if face.id > 511), key=lambda face: face.id)
    return [
        rows(box.space._space),
        rows(box.space._index),
        rows(box.space._truncate),
        [(face.name, face.format(), [index.name for index in face.index], state(face)) for face in own],
    ]


def test_a_row_of_space_is_a_space(box: Box) -> None:
    box.space._space.insert(space_row(format=[{"name": "id", "type": "unsigned"}]))
    assert box.space.t.id == ID
    assert box.space.t.format() == [{"name": "id", "type": "unsigned"}]
    with refusal(ErrorCode.NO_SUCH_INDEX_ID):
        box.space.t.get(1)
    box.space._index.insert(index_row([[0, "unsigned"]]))
    box.space.t.insert([1])
    box.space._index.delete([ID, 0])
    assert len(box.space.t) == 0
    box.space._space.delete(ID)
    assert "t" not in box.space


def test_everything_of_a_space_but_its_id_and_engine_can_change(box: Box, space: Space) -> None:
    box.space._space.update(
        ID, [("=", "name", "renamed"), ("=", "owner", 0), ("=", "format", [{"name": "one"}])]
    )
    assert space.name == "renamed"
    assert box.space.renamed.get(1) == space.get(1)
    assert "t" not in box.space
    with refusal(ErrorCode.TUPLE_FOUND, "in space 'renamed'"):
        space.insert([1, "again", 1])
    with refusal(ErrorCode.CANT_UPDATE_PRIMARY_KEY):
        box.space._space.update(ID, [("=", "id", ID + 1)])


def test_a_name_in_use_is_refused(box: Box, space: Space) -> None:
    with refusal(ErrorCode.TUPLE_FOUND, "'name' in space '_space'"):
        box.space._space.insert(space_row(space_id=ID + 1))
    with refusal(ErrorCode.TUPLE_FOUND, "'name' in space '_space'"):
        box.space._space.update(ID, [("=", "name", "_space")])
    assert box.space.t.name == "t"
    assert box.space._space.id == 280


def test_a_format_must_fit_the_rows(box: Box, space: Space) -> None:
    with refusal(ErrorCode.FIELD_TYPE):
        box.space._space.update(ID, [("=", "format", [{"name": "a"}, {"name": "b", "type": "unsigned"}])])
    assert space.format() == []
    box.space._space.update(ID, [("=", "format", [{"name": "a"}, {"name": "b", "type": "string"}])])
    assert space.get(1)["b"] == "a"  # type: ignore[index]  # it is there


def test_a_space_with_rows_stays_temporary_or_not(box: Box, space: Space) -> None:
    with refusal(ErrorCode.ALTER_SPACE, "temporary flag on a non-empty space"):
        box.space._space.update(ID, [("=", "flags", {"temporary": True})])
    space.truncate()
    box.space._space.update(ID, [("=", "flags", {"temporary": True})])
    assert space.temporary


def test_a_new_index_holds_the_rows_there_are(box: Box, space: Space) -> None:
    box.space._index.insert(index_row([[1, "string"]], 2, "second"))
    assert space.index.second.get("b") == [2, "b", 20]
    space.insert([4, "d", 30])
    with refusal(ErrorCode.TUPLE_FOUND, "'unique' in space 't'"):
        box.space._index.insert(index_row([[2, "unsigned"]], 3, "unique"))
    with refusal(ErrorCode.INDEX_PART_TYPE_MISMATCH):
        box.space._index.insert(index_row([[1, "unsigned"]], 3, "wrong"))
    with refusal(ErrorCode.FIELD_MISSING):
        box.space._index.insert(index_row([[3, "unsigned"]], 3, "missing"))
    assert [index.name for index in space.index] == ["primary", "third", "second"]


def test_changing_the_primary_key_moves_every_index(box: Box, space: Space) -> None:
    box.space._index.update([ID, 0], [("=", 5, [[2, "unsigned"], [0, "unsigned"]])])
    assert rows(space) == [[3, "c", 10], [2, "b", 20], [1, "a", 30]]
    assert space.index.third.select(20) == [[2, "b", 20]]
    space.update([20, 2], [("=", 1, "changed")])
    space.delete([10, 3])
    space.insert([3, "c", 20])
    assert rows(space, 1) == [[2, "changed", 20], [3, "c", 20], [1, "a", 30]]
    box.space._index.update([ID, 0], [("=", 3, "hash")])
    assert space.get([30, 1]) == [1, "a", 30]
    box.space._index.update([ID, 0], [("=", 3, "tree"), ("=", 5, [[1, "string"]])])
    assert rows(space) == [[1, "a", 30], [3, "c", 20], [2, "changed", 20]]
    assert space.bsize() == sum(len(row.raw) for row in space.select())


def test_a_primary_key_that_does_not_tell_the_rows_apart_is_refused(box: Box, space: Space) -> None:
    space.insert([4, "a", 30])
    before = visible(box)
    with refusal(ErrorCode.TUPLE_FOUND, "'primary' in space 't'"):
        box.space._index.update([ID, 0], [("=", 5, [[1, "string"]])])
    with refusal(ErrorCode.FIELD_TYPE):
        box.space._index.update([ID, 0], [("=", 5, [[1, "unsigned"]])])
    assert visible(box) == before


@pytest.mark.parametrize(
    ("index_id", "code"), [(0, ErrorCode.DROP_PRIMARY_KEY), (1, None)], ids=["primary", "secondary"]
)
def test_the_primary_index_goes_last(box: Box, space: Space, index_id: int, code: ErrorCode | None) -> None:
    if code is None:
        box.space._index.delete([ID, index_id])
        assert len(space.index) == 1
    else:
        with refusal(code):
            box.space._index.delete([ID, index_id])


def test_a_space_in_use_is_not_dropped(box: Box, space: Space) -> None:
    with refusal(ErrorCode.DROP_SPACE, "the space has indexes"):
        box.space._space.delete(ID)
    box.space._truncate.insert([ID, 1])
    box.schema.user.grant("guest", "read", "space", "t")
    for index_id in (1, 0):
        box.space._index.delete([ID, index_id])
    with refusal(ErrorCode.DROP_SPACE, "the space has grants"):
        box.space._space.delete(ID)
    box.schema.user.revoke("guest", "read", "space", "t")
    with refusal(ErrorCode.DROP_SPACE, "the space has truncate record"):
        box.space._space.delete(ID)
    box.space._truncate.delete(ID)
    box.space._space.delete(ID)
    with refusal(ErrorCode.NO_SUCH_SPACE):
        space.len()


def test_truncating_is_a_row_too_but_not_a_new_one(box: Box, space: Space) -> None:
    box.space._truncate.insert([ID, 1])
    assert len(space) == 3
    box.space._truncate.replace([ID, 2])
    assert len(space) == len(space.index.third.select()) == space.bsize() == 0
    space.insert([1, "a", 1])
    box.space._truncate.update(ID, [("+", 1, 1)])
    assert len(space) == 0
    with refusal(ErrorCode.TRUNCATE_SYSTEM_SPACE):
        box.space._truncate.replace([280, 1])


def test_the_system_spaces_stay(box: Box) -> None:
    with refusal(ErrorCode.LAST_DROP):
        box.space._index.delete([280, 0])
    with refusal(ErrorCode.DROP_SPACE):
        box.space._space.delete(280)


CHANGES: dict[str, Callable[[Box], object]] = {
    "create a space": lambda box: box.space._space.insert(space_row("other", ID + 1)),
    "rename a space": lambda box: box.space._space.update(ID, [("=", "name", "renamed")]),
    "change a format": lambda box: box.space._space.update(ID, [("=", "format", [{"name": "a"}])]),
    "create an index": lambda box: box.space._index.insert(index_row([[1, "string"]], 2, "second")),
    "change an index": lambda box: box.space._index.update([ID, 1], [("=", 5, [[1, "string"]])]),
    "rename an index": lambda box: box.space._index.update([ID, 1], [("=", 2, "renamed")]),
    "change the primary key": lambda box: box.space._index.update([ID, 0], [("=", 5, [[2, "unsigned"]])]),
    "drop an index": lambda box: box.space._index.delete([ID, 1]),
    "drop the space": lambda box: box.schema.drop_space(ID),
    "truncate": lambda box: box.schema.truncate(ID),
    "change the schema by hand": lambda box: box.space._schema.replace(["key", 1]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_the_schema_is_undone_with_its_transaction(
    box: Box, space: Space, change: Callable[[Box], object]
) -> None:
    other = accounts(box)
    before = visible(box)

    def fail() -> None:
        space.insert([4, "d", 40])
        other.delete(1)
        change(box)
        other.insert([9, "Zoe", 0])
        if "t" in box.space and len(box.space.t.index):
            box.space.t.insert([5, "e", 50])
        raise KeyError

    with pytest.raises(KeyError):
        box.run(box.session.background, fail)
    assert visible(box) == before
    space.insert([4, "d", 40])
    with refusal(ErrorCode.TUPLE_FOUND, "'primary' in space 't'"):
        space.insert([4, "d", 40])
    space.delete(4)
    assert visible(box) == before


SCHEMA_CHANGES = {
    name: change for name, change in CHANGES.items() if name not in ("truncate", "drop the space")
}


@pytest.mark.parametrize("name", SCHEMA_CHANGES)
def test_the_version_of_the_schema_rises_by_one(box: Box, space: Space, name: str) -> None:
    before = box.catalog.schema_version
    SCHEMA_CHANGES[name](box)
    assert box.catalog.schema_version - before == (0 if name == "change the schema by hand" else 1)


def test_truncation_and_rows_leave_the_version_alone(box: Box, space: Space) -> None:
    before = box.catalog.schema_version
    space.insert([4, "d", 40])
    space.truncate()
    assert box.catalog.schema_version == before


def test_the_version_does_not_come_back(box: Box, space: Space) -> None:
    """A client that knows the version of an undone transaction must load the schema again."""
    before = box.catalog.schema_version
    with pytest.raises(KeyError), box.in_transaction():
        CHANGES["create an index"](box)
        raise KeyError
    assert box.catalog.schema_version > before
