"""Starting from files of other versions of Tarantool: what they have is served, kept, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iproto_server.errors import BoxError
from tests.storage.databases import replace, start, write_log
from tests.storage.recovery.foreign.foreign import (
    CLUSTER,
    FUNC,
    ID,
    INDEX,
    NEW,
    PRIV,
    SCHEMA,
    SPACE,
    USER,
    Case,
    base,
    field,
    index_row,
    space_row,
    verify,
    write_snapshot,
)

TIMES = ["", "2024-01-01 00:00:00", "2024-01-01 00:00:00"]


def func_row(*, language: str = "LUA", body: str = "", opts: dict[str, Any] | None = None) -> list[Any]:
    """A row of `_func`."""
    sandboxed = bool(body)
    return [
        *(100, 1, "f", 0, language, body, "function", [], "any", "none", "none"),
        *(True, sandboxed, True, ["LUA"], opts or {}, *TIMES),
    ]


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


def write_both(directory: Path, case: Case) -> None:
    """Write a snapshot, and a log with the row."""
    write_snapshot(directory, base(), case.program, SCHEMA, ["version", 2, 3, 1])
    write_log(directory, {1: 5}, [[replace(*case.row, space=case.space)]])


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
