"""Databases of versions of Tarantool whose system spaces differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.errors import StorageError
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, RowType, XlogHeader
from tests.storage.databases import replace, save, start, write_log
from tests.storage.files import INSTANCE, TIMESTAMP
from tests.storage.recovery.foreign.foreign import (
    CLUSTER,
    FUNC,
    ID,
    INDEX,
    NEW,
    SPACE,
    USER,
    Case,
    base,
    contents,
    field,
    index_row,
    space_row,
    verify,
    write_snapshot,
)


def test_options_that_are_kept_do_not_prevent_changes(tmp_path: Path) -> None:
    """A client may alter a space or an index, but not add such an option."""
    flags = {"checks": [1], "defer_deletes": False}
    fields = space_row({}, field(default="5"))[6]
    write_snapshot(tmp_path, base(), "2.11.8-0-g1", SPACE, [*space_row(flags)[:6], fields])
    write_log(tmp_path, {1: 5}, [[replace(*index_row({"hint": False}), space=INDEX)]])
    box, _ = start(tmp_path)
    spaces, indexes = box.space._space, box.space._index
    box.space.t.rename("u")
    spaces.update(ID, [("=", 5, {**flags, "is_sync": False})])
    indexes.update([ID, 1], [("=", 2, "j")])
    assert box.catalog.rows(INDEX, 0, [ID, 1])[0][4] == {"unique": True, "hint": False}
    other = space_row({}, field(default="6"))[6]
    changes: list[tuple[Any, list[Any], list[Any], str]] = [
        (spaces, [ID], ["=", 5, {"checks": [2]}], "unexpected option 'checks'"),
        (spaces, [ID], ["=", 6, other], "the option 'default' of the field 'v'"),
        (indexes, [ID, 1], ["=", 4, {"hint": True}], "unexpected option 'hint'"),
    ]
    for space, key, change, text in changes:
        with pytest.raises(BoxError, match=text):
            space.update(key, [change])
    box.space.u.drop()


def changed_schema(
    directory: Path, version: list[Any], change: Callable[[int, list[Any]], list[Any] | None]
) -> None:
    """Write a snapshot whose rows of system spaces are changed; None leaves a row out."""
    box = base()
    header = XlogHeader(FileType.SNAPSHOT, INSTANCE, VClock({1: 5}), server_version="")
    with SnapshotWriter(directory, header, TIMESTAMP) as writer:
        for each in sorted(box.catalog, key=lambda each: each.id):
            if isinstance(each, SysviewSpace) or each.is_temporary:
                continue
            rows = [change(each.id, codec.unpack(raw)) for raw in each.rows()]
            rows = [version if row is not None and row[0] == "version" else row for row in rows]
            writer.write(each.id, iter([codec.pack(row) for row in rows if row is not None]))


LATER_SPACES = (286, 328, 341, 356, 364, 372)


def of_1_9(space: int, row: list[Any]) -> list[Any] | None:
    """A row as Tarantool 1.9 has it, without the system spaces that came later."""
    is_later = space in LATER_SPACES or (space in (SPACE, INDEX) and row[0] in LATER_SPACES)
    return None if is_later else row


def of_3_1(space: int, row: list[Any]) -> list[Any]:
    """A row as Tarantool 3.1 has it, with the fields that came later."""
    if space == SPACE and row[0] in (USER, USER + 1):
        later = [{"name": "auth_history", "type": "array"}, {"name": "last_modified", "type": "unsigned"}]
        return [*row[:6], [*row[6], *later]]
    if space == SPACE and row[0] == FUNC:
        return [*row[:6], [*row[6], {"name": "trigger", "type": "array"}]]
    return [*row, [], 0] if space == USER else [*row, []] if space == FUNC else row


@pytest.mark.parametrize(("version", "change"), [([1, 9, 0], of_1_9), ([3, 1, 0], of_3_1)])
def test_definitions_can_be_made_and_dropped(
    tmp_path: Path, version: list[Any], change: Callable[[int, list[Any]], list[Any] | None]
) -> None:
    changed_schema(tmp_path, ["version", *version], change)
    box, _ = start(tmp_path)
    schema = box.schema
    schema.sequence.create("q")
    space = schema.create_space("n")
    space.create_index("pk", sequence="q")
    space.create_index("s", parts=[{"field": 2, "type": "string", "is_nullable": True}], unique=False)
    space.insert([None])
    space.truncate()
    schema.user.create("ann", password="secret")
    schema.role.create("r")
    schema.func.create("f")
    schema.user.grant("ann", "r")
    schema.user.grant("ann", "execute", "function", "f")
    save(box, tmp_path, {1: 9})
    box, _ = start(tmp_path)
    assert box.schema.user.exists("ann")
    space, schema = box.space.n, box.schema
    space.index.s.drop()
    space.drop()
    schema.sequence.drop("q")
    schema.func.drop("f")
    schema.user.drop("ann")
    schema.role.drop("r")
    box.space.t.drop()


def of_1_6(space: int, row: list[Any]) -> list[Any]:
    """A row as Tarantool 1.6 has it: users without passwords are shorter."""
    return row[:4] if space == USER and row[0] == 0 else row


def flags_of_1_6(space: int, row: list[Any]) -> list[Any]:
    """A row as the first versions of Tarantool 1.6 have it: the options of a space are a text."""
    return [*row[:5], "", *row[6:]] if space == SPACE else row


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (of_1_6, "user 'guest': Tuple field 5 required by space format is missing"),
        (flags_of_1_6, "Tuple field 6 type does not match one required by operation: expected map"),
    ],
)
def test_a_schema_of_1_6_is_refused_with_what_to_do(
    tmp_path: Path, change: Callable[[int, list[Any]], list[Any] | None], text: str
) -> None:
    changed_schema(tmp_path, ["version", 1, 6, 8], change)
    before = contents(tmp_path)
    with pytest.raises(StorageError) as caught:
        start(tmp_path)
    assert text in str(caught.value)
    assert "the schema is that of Tarantool 1.6.8" in str(caught.value)
    assert str(caught.value).endswith("call box.schema.upgrade() and box.snapshot() there")
    with pytest.raises(StorageError, match=r"are missing|cannot be read"):
        start(tmp_path, force=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("left_out", "text"),
    [
        (
            tuple(range(512)),
            "the system spaces _schema, _space, _index, _func, _user, _priv, _cluster are missing",
        ),
        ((CLUSTER,), "the system spaces _cluster are missing"),
    ],
)
def test_a_snapshot_without_system_spaces_is_refused(
    tmp_path: Path, left_out: tuple[int, ...], text: str
) -> None:
    def change(space: int, row: list[Any]) -> list[Any] | None:
        lacks = space in left_out or (space in (SPACE, INDEX) and row[0] in left_out)
        return None if lacks or (len(left_out) > 1 and space > 511) else row

    changed_schema(tmp_path, ["version", 2, 3, 1], change)
    verify(tmp_path, Case(SPACE, [], text))


@pytest.mark.parametrize(
    ("kind", "body", "what"),
    [
        (RowType.INSERT, {0x21: [1]}, "space id"),
        (RowType.INSERT, {}, "space id"),
        (RowType.INSERT, {0x10: 512}, "tuple"),
        (RowType.REPLACE, {0x10: 280}, "tuple"),
        (RowType.DELETE, {0x10: 512}, "key"),
        (RowType.UPDATE, {0x10: 512, 0x21: []}, "key"),
        (RowType.UPDATE, {0x10: 512, 0x20: [1]}, "tuple"),
        (RowType.UPSERT, {0x10: 512, 0x21: [1, "R"]}, "operations"),
        (RowType.UPSERT, {0x10: 512, 0x28: []}, "tuple"),
    ],
)
def test_a_log_row_without_a_field_is_named(
    tmp_path: Path, kind: RowType, body: dict[int, Any], what: str
) -> None:
    save(base(), tmp_path, {1: 5})
    write_log(tmp_path, {1: 5}, [[(kind, codec.pack(body))]])
    verify(tmp_path, Case(SPACE, [], f"Missing mandatory field '{what}' in request"))
    assert [list(row) for row in start(tmp_path, force=True)[0].space.jobs.select()] == [[1, "R"]]


def test_no_client_makes_what_the_next_start_refuses(tmp_path: Path) -> None:
    """The database is that of Tarantool 3, so another start reads each row as Tarantool 3 would."""
    write_snapshot(tmp_path, base(), NEW, SPACE, space_row({"type": "normal"}))
    box, _ = start(tmp_path)
    with pytest.raises(BoxError, match="sort_order = 'desc'"):
        box.space._index.replace(index_row({}, sort_order="desc"))
    with pytest.raises(BoxError, match="the options 'type' and 'temporary' together"):
        box.space._space.update(ID, [("=", 5, {"type": "normal", "temporary": False})])
    box.space._index.replace(index_row({}, sort_order="asc"))
    save(box, tmp_path, {1: 9})
    start(tmp_path)
