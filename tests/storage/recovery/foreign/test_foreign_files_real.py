"""Files of other versions, taken over by this server and opened by Tarantool 2.6."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.real_tarantool import RealTarantool
from tests.storage.databases import save, start
from tests.storage.recovery.foreign.foreign import INDEX, SPACE, base, contents, write_snapshot
from tests.storage.recovery.foreign.test_foreign_files import CASES

pytestmark = pytest.mark.real_tarantool

KNOWN_TO_2_6 = (
    "checks of 2.1",
    "no checks",
    "a field's default of SQL",
    "no compression",
    "a field's key of an application",
    "index options without effect",
    "sort_order desc of 2.x",
    "is_multikey",
    "a user of 2.11",
    "a member with a name",
)
"""Rows of `CASES` that 2.6 reads."""

WRITE = """
local json, file = require('json'), io.open('found.json', 'w')
local rows = {box.space.t:select(), box.space._space:get(600), box.space._index:get{600, 1}}
file:write(json.encode(rows))
file:close()
"""


@pytest.mark.parametrize("name", KNOWN_TO_2_6)
def test_what_is_kept_is_opened_by_2_6(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    taken_over, ours = tmp_path / "taken_over", tmp_path / "ours"
    for directory in (taken_over, ours):
        directory.mkdir()
    write_snapshot(taken_over, base(), case.program, case.space, case.row)
    save(start(taken_over)[0], ours, {1: 9})
    before = contents(ours)
    with RealTarantool(ours, WRITE):
        rows, space, index = json.loads((ours / "found.json").read_text())
    assert rows == [[1, 5, 7]]
    if case.space in (SPACE, INDEX):
        assert (space if case.space == SPACE else index) == case.row
    assert {file: contents(ours)[file] for file in before} == before
