"""Files of other versions of Tarantool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from iproto_server import Box
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import StorageError
from iproto_server.storage.snapshot import SnapshotWriter, read_snapshot
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogHeader, XlogReader
from iproto_server.tools.files.check import check_database
from iproto_server.tools.files.check_files import Findings
from tests.storage.databases import jobs_box, save, start
from tests.storage.files import INSTANCE, TIMESTAMP

SCHEMA, SPACE, INDEX, FUNC, USER, PRIV, CLUSTER = 272, 280, 288, 296, 304, 312, 320
ID = 600
UNSERVED = "drop or alter it with Tarantool, and take a snapshot there"


class Case(NamedTuple):
    """A row of a system space that another version writes.

    Attributes:
        space: the id of the system space.
        row: the row.
        refused: what the error says; None: the row is kept.
        program: the version of the program that has written the files.
    """

    space: int
    row: list[Any]
    refused: str | None = None
    program: str = "2.11.8-0-g1"


def space_row(
    flags: dict[str, Any] | None = None, *fields: dict[str, Any], engine: str = "memtx"
) -> list[Any]:
    """A row of `_space` with options and more fields behind `id`."""
    return [ID, 1, "t", engine, 0, flags or {}, [{"name": "id", "type": "unsigned"}, *fields]]


def field(**options: Any) -> dict[str, Any]:
    """A field of a format with options."""
    return {"name": "v", "type": "any", "is_nullable": True, **options}


def index_row(options: dict[str, Any] | None = None, **part: Any) -> list[Any]:
    """A row of `_index` with options, whose second part has options."""
    first = {"field": 0, "type": "unsigned"}
    parts = [first, {"field": 1, "type": "unsigned", **part}] if part else [first]
    return [ID, 1, "i", "tree", {"unique": True, **(options or {})}, parts]


NEW = "3.5.0-0-g1"


def base() -> Box:
    """A box with a space `t` that the rows change."""
    box = jobs_box([1, "R"])
    space = box.schema.create_space("t", id=ID, format=[("id", "unsigned")])
    space.create_index("primary")
    space.create_index("i", parts=[(1, "unsigned")])
    space.insert([1, 5, 7])
    return box


def key_of(space: int, row: list[Any]) -> list[Any]:
    """The fields of a system space's primary key."""
    return row[1:4] if space == PRIV else row[:2] if space == INDEX else row[:1]


def write_snapshot(directory: Path, box: Box, program: str, space_id: int, row: list[Any]) -> None:
    """Write a snapshot of a box with another row in a system space."""
    header = XlogHeader(FileType.SNAPSHOT, INSTANCE, VClock({1: 5}), server_version=program)
    with SnapshotWriter(directory, header, TIMESTAMP) as writer:
        for each in sorted(box.catalog, key=lambda each: each.id):
            if isinstance(each, SysviewSpace) or each.is_temporary:
                continue
            stored = [codec.unpack(raw) for raw in each.rows()]
            if each.id == space_id:
                kept = [other for other in stored if key_of(space_id, other) != key_of(space_id, row)]
                stored = sorted([*kept, row], key=lambda other: str(key_of(space_id, other)))
                if space_id in (SPACE, INDEX):
                    stored.sort(key=lambda other: other[:2] if space_id == INDEX else other[:1])
            writer.write(each.id, iter(map(codec.pack, stored)))


def contents(directory: Path) -> dict[str, bytes]:
    """All files of a directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def stored_rows(path: Path, space_id: int) -> Iterator[list[Any]]:
    """The rows of a space in a snapshot."""
    with XlogReader.open(path) as reader:
        for tuples in read_snapshot(reader):
            for number, raw in tuples:
                if number == space_id:
                    yield codec.unpack(raw)


def verify(directory: Path, case: Case) -> None:
    """Start from a directory; check what is served or said, and that `check` says the same."""
    before = contents(directory)
    problems: list[str] = []
    findings = Findings(problems.append, lambda note: None)
    if case.refused is not None:
        with pytest.raises(StorageError) as caught:
            start(directory)
        text = str(caught.value)
        assert case.refused in text
        assert "Traceback" not in text
        if "does not support" in text or "engine" in text:
            assert text.endswith(UNSERVED)
        assert contents(directory) == before
        assert check_database(directory, directory, findings) is None
        assert problems == [f"a server does not start from these files: {text}"]
        return
    box, _ = start(directory)
    check_database(directory, directory, findings)
    assert problems == []
    assert case.row in box.catalog.rows(case.space, 0, [])
    assert [list(row) for row in box.space.t.select()] == [[1, 5, 7]]
    rewritten = save(box, directory, {1: 9})
    assert case.row in list(stored_rows(rewritten, case.space))
    assert case.row in start(directory)[0].catalog.rows(case.space, 0, [])
