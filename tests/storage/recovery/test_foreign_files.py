"""Starting from files of other versions of Tarantool: what they have is served, kept, or refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from iproto_server import Box
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.errors import StorageError
from iproto_server.storage.snapshot import SnapshotWriter, read_snapshot
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogHeader, XlogReader
from iproto_server.tools.check import check_database
from iproto_server.tools.check_files import Findings
from tests.storage.databases import jobs_box, replace, save, start, write_log
from tests.storage.files import INSTANCE, TIMESTAMP, Request

SCHEMA, SPACE, INDEX, FUNC, USER, PRIV, CLUSTER = 272, 280, 288, 296, 304, 312, 320
ID = 600
UNSERVED = "drop or alter it with Tarantool, and take a snapshot there"
TIMES = ["", "2024-01-01 00:00:00", "2024-01-01 00:00:00"]


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


def space_row(flags: dict[str, Any] | None = None, *fields: dict[str, Any], engine: str = "memtx") -> list[Any]:
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


def func_row(*, language: str = "LUA", body: str = "", opts: dict[str, Any] | None = None) -> list[Any]:
    """A row of `_func`."""
    sandboxed = bool(body)
    return [
        *(100, 1, "f", 0, language, body, "function", [], "any", "none", "none"),
        *(True, sandboxed, True, ["LUA"], opts or {}, *TIMES),
    ]


NEW = "3.5.0-0-g1"
OF_SPACE, OF_FIELD = "of a space", "of the field 'v'"
CASES: dict[str, Case] = {
    "checks of 2.1": Case(SPACE, space_row({"checks": [{"expr": "id > 5", "name": "c"}]}), program="2.1.2-0-g1"),
    "no checks": Case(SPACE, space_row({"checks": []})),
    "defer_deletes": Case(SPACE, space_row({"defer_deletes": True})),
    "type normal": Case(SPACE, space_row({"type": "normal"}), program=NEW),
    "type of a later version": Case(SPACE, space_row({"type": "replicated"}), "the space type 'replicated'", NEW),
    "type that is no text": Case(SPACE, space_row({"type": 5}), "the space type 5", NEW),
    "type and temporary": Case(
        SPACE, space_row({"type": "normal", "temporary": False}), "the options 'type' and 'temporary' together", NEW
    ),
    "constraint": Case(SPACE, space_row({"constraint": {"c": 100}}), f"the option 'constraint' {OF_SPACE}"),
    "no constraint": Case(SPACE, space_row({"constraint": {}, "foreign_key": {}})),
    "foreign_key": Case(
        SPACE,
        space_row({"foreign_key": {"f": {"space": 512, "field": {0: 0}}}}),
        f"the option 'foreign_key' {OF_SPACE}",
    ),
    "upgrade": Case(SPACE, space_row({"upgrade": {"func": 1}}), f"the option 'upgrade' {OF_SPACE}"),
    "a later option": Case(SPACE, space_row({"wings": 2}), f"the option 'wings' {OF_SPACE}", NEW),
    "is_sync": Case(SPACE, space_row({"is_sync": True}), "synchronous spaces"),
    "view": Case(SPACE, space_row({"view": True, "sql": "SELECT"}), "SQL views"),
    "vinyl": Case(SPACE, [601, 1, "u", "vinyl", 0, {}, []], "Space engine 'vinyl' does not exist"),
    "memcs": Case(SPACE, [601, 1, "u", "memcs", 0, {}, []], "Space engine 'memcs' does not exist", NEW),
    "a field's constraint": Case(
        SPACE, space_row({}, field(constraint={"c": 100})), f"the option 'constraint' {OF_FIELD}"
    ),
    "a field's foreign_key": Case(
        SPACE, space_row({}, field(foreign_key={"f": {"space": 512, "field": 0}})), "the option 'foreign_key'"
    ),
    "a field's default of SQL": Case(SPACE, space_row({}, field(default="5")), program="2.11.8-0-g1"),
    "a field's default of 3.0": Case(
        SPACE, space_row({}, field(default=5)), f"the option 'default' {OF_FIELD}", "3.0.0-0-g1"
    ),
    "a field's default_func": Case(SPACE, space_row({}, field(default_func=100)), "the option 'default_func'", NEW),
    "compression": Case(SPACE, space_row({}, field(compression="zstd")), "the option 'compression'"),
    "no compression": Case(SPACE, space_row({}, field(compression="none"))),
    "a field's key of an application": Case(SPACE, space_row({}, field(comment="how many"))),
    **{
        f"a field of the type {name}": Case(
            SPACE, space_row({}, field(type=name)), f"the type '{name}' {OF_FIELD}", NEW
        )
        for name in ("int8", "uint8", "int64", "float32", "float64", "decimal128")
    },
    "hint": Case(INDEX, index_row({"hint": False})),
    "index options without effect": Case(
        INDEX, index_row({"dimension": 2, "distance": "euclid", "bloom_fpr": 0.05, "sql": "CREATE", "lsn": 5})
    ),
    "covers": Case(INDEX, index_row({"covers": [2]}), "the option 'covers' of an index", NEW),
    "aggregates": Case(INDEX, index_row({"aggregates": [2]}), "the option 'aggregates' of an index", NEW),
    "func": Case(INDEX, index_row({"func": 100}), "functional indexes"),
    "exclude_null": Case(INDEX, index_row({}, is_nullable=True, exclude_null=True), "exclude_null in an index part"),
    "no exclude_null": Case(INDEX, index_row({}, is_nullable=True, exclude_null=False)),
    "sort_order desc of 2.x": Case(INDEX, index_row({}, sort_order="desc")),
    "sort_order asc": Case(INDEX, index_row({}, sort_order="asc"), program=NEW),
    "sort_order desc of 3.x": Case(
        INDEX, index_row({}, sort_order="desc"), "the option sort_order = 'desc' of an index part", NEW
    ),
    "a part of the type int8": Case(INDEX, index_row({}, type="int8"), "the type 'int8' of an index part", NEW),
    "a part with a scale": Case(INDEX, index_row({}, scale=2), "the option 'scale' of an index part", NEW),
    "takes_raw_args": Case(FUNC, func_row(opts={"takes_raw_args": True})),
    "takes_raw_args that is no boolean": Case(
        FUNC, func_row(opts={"takes_raw_args": 1}), "'takes_raw_args' must be boolean"
    ),
    "is_multikey": Case(FUNC, func_row(opts={"is_multikey": True})),
    "a function's later option": Case(FUNC, func_row(opts={"wings": 2}), "unexpected option 'wings'"),
    "SQL_EXPR": Case(FUNC, func_row(language="SQL_EXPR", body="a > 5")),
    "a later language": Case(FUNC, func_row(language="RUST"), "Unsupported language 'RUST'", NEW),
    "a function of 3.1": Case(FUNC, [*func_row(), []], program=NEW),
    "a trigger": Case(
        FUNC,
        [*func_row(body="function() end"), ["box.space.t.on_replace"]],
        "a stored function that runs as a trigger",
        NEW,
    ),
    "lua_call": Case(PRIV, [1, 0, "lua_call", "", 4], program=NEW),
    "lua_call of a name": Case(PRIV, [1, 0, "lua_call", "f", 4], program=NEW),
    "lua_eval": Case(PRIV, [1, 0, "lua_eval", "", 4], program=NEW),
    "sql": Case(PRIV, [1, 0, "sql", "", 4], program=NEW),
    "a grant on something later": Case(PRIV, [1, 0, "wings", "", 4], "Unknown object type 'wings'", NEW),
    "a user of 2.11": Case(USER, [40, 1, "ann", "user", {"chap-sha1": "x" * 28}, [], 1700000000]),
    "a user with a later method": Case(USER, [40, 1, "ann", "user", {"later": "x"}, [], 0], program=NEW),
    "a member with a name": Case(CLUSTER, [2, "11111111-1111-4111-8111-111111111111", "replica"], program=NEW),
    "a setting of 3.0": Case(SCHEMA, ["replicaset_name", "storage"], program=NEW),
}
"""What any version from 1.7.5 to 3.x adds to rows of 2.6."""


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


def write_both(directory: Path, case: Case) -> None:
    """Write a snapshot, and a log with the row."""
    header = XlogHeader(FileType.SNAPSHOT, INSTANCE, VClock({1: 5}), server_version=case.program)
    write_snapshot(directory, base(), case.program, SCHEMA, ["version", 2, 3, 1])
    assert header.server_version
    write_log(directory, {1: 5}, [[replace(*case.row, space=case.space)]])


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


@pytest.mark.parametrize("name", CASES)
def test_a_row_in_a_snapshot(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write_snapshot(tmp_path, base(), case.program, case.space, case.row)
    verify(tmp_path, case)


@pytest.mark.parametrize("name", CASES)
def test_a_row_in_a_log(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write_both(tmp_path, case)
    verify(tmp_path, case)
