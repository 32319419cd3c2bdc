"""Starting from files of other versions of Tarantool: what they have is served, kept, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from iproto_server import Box
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.errors import StorageError
from iproto_server.storage.snapshot import SnapshotWriter, read_snapshot
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, RowType, XlogHeader, XlogReader
from iproto_server.tools.files.check import check_database
from iproto_server.tools.files.check_files import Findings
from tests.storage.databases import jobs_box, replace, save, start, write_log
from tests.storage.files import INSTANCE, TIMESTAMP

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
    "checks of 2.1": Case(
        SPACE, space_row({"checks": [{"expr": "id > 5", "name": "c"}]}), program="2.1.2-0-g1"
    ),
    "no checks": Case(SPACE, space_row({"checks": []})),
    "defer_deletes": Case(SPACE, space_row({"defer_deletes": True})),
    "type normal": Case(SPACE, space_row({"type": "normal"}), program=NEW),
    "type of a later version": Case(
        SPACE, space_row({"type": "replicated"}), "the space type 'replicated'", NEW
    ),
    "type that is no text": Case(SPACE, space_row({"type": 5}), "the space type 5", NEW),
    "type and temporary": Case(
        SPACE,
        space_row({"type": "normal", "temporary": False}),
        "the options 'type' and 'temporary' together",
        NEW,
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
    "a field's default_func": Case(
        SPACE, space_row({}, field(default_func=100)), "the option 'default_func'", NEW
    ),
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
    "exclude_null": Case(
        INDEX, index_row({}, is_nullable=True, exclude_null=True), "exclude_null in an index part"
    ),
    "no exclude_null": Case(INDEX, index_row({}, is_nullable=True, exclude_null=False)),
    "sort_order desc of 2.x": Case(INDEX, index_row({}, sort_order="desc")),
    "sort_order asc": Case(INDEX, index_row({}, sort_order="asc"), program=NEW),
    "sort_order desc of 3.x": Case(
        INDEX, index_row({}, sort_order="desc"), "the option sort_order = 'desc' of an index part", NEW
    ),
    "a part of the type int8": Case(
        INDEX, index_row({}, type="int8"), "the type 'int8' of an index part", NEW
    ),
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
    "a member with a name": Case(
        CLUSTER, [2, "11111111-1111-4111-8111-111111111111", "replica"], program=NEW
    ),
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
    write_snapshot(directory, base(), case.program, SCHEMA, ["version", 2, 3, 1])
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


@pytest.mark.parametrize("kind", ["temporary", "data-temporary"])
def test_a_temporary_space_of_3_0_has_no_rows_in_files(tmp_path: Path, kind: str) -> None:
    box = base()
    box.space.t.delete([1])
    write_snapshot(tmp_path, box, NEW, SPACE, space_row({"type": kind}))
    box, _ = start(tmp_path)
    assert box.space.t.core().is_temporary
    box.space.t.rename("u")
    assert box.catalog.rows(SPACE, 0, [ID])[0][5] == {"type": kind}


@pytest.mark.parametrize(
    ("row", "name", "is_allowed"),
    [
        ([1, 0, "lua_call", "", 4], "work", True),
        ([1, 0, "lua_call", "work", 4], "work", True),
        ([1, 0, "lua_call", "rest", 4], "work", False),
        ([1, 0, "lua_call", "", 4], "box.info", False),
        ([1, 0, "lua_call", "box.info", 4], "box.info", True),
        ([1, 0, "lua_eval", "", 4], "work", False),
    ],
)
def test_a_grant_of_3_0_on_calls_is_obeyed(
    tmp_path: Path, row: list[Any], name: str, is_allowed: bool
) -> None:
    write_snapshot(tmp_path, base(), NEW, PRIV, row)
    box, _ = start(tmp_path)
    access = box.access
    if is_allowed:
        access.check_call(access.by_id(0), name, None)
    else:
        with pytest.raises(BoxError, match="is denied"):
            access.check_call(access.by_id(0), name, None)
    box.space._priv.delete(row[1:4])
    with pytest.raises(BoxError, match="is denied"):
        access.check_call(access.by_id(0), name, None)


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
