"""Starting from a log in which indexes are made, altered and dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iproto_server import Box
from iproto_server.box.catalog.system_space_ids import INDEX, SPACE
from iproto_server.box.memtx.consistency import faults_of
from tests.box.boxes import rows
from tests.storage.databases import insert, new_database, replace, start, write_log
from tests.storage.files import Request

ID = 600


def index(number: int, parts: list[list[Any]], *, is_unique: bool = True, kind: str = "tree") -> list[Any]:
    """A row of `_index`."""
    return [ID, number, f"index {number}", kind, {"unique": is_unique}, parts]


DEFINITION = [
    [insert(ID, 1, "t", "memtx", 0, {}, [], space=SPACE)],
    [insert(*index(0, [[0, "unsigned"], [3, "unsigned"]]), space=INDEX)],
    [insert(*index(1, [[1, "string"], [0, "unsigned"]], is_unique=False), space=INDEX)],
    [insert(*index(2, [[2, "unsigned"]], is_unique=False), space=INDEX)],
]
ROWS = [[6, "b", 0, 1], [6, "b", 1, 1], [6, "b", 2, 1], [5, "c", 2, 1]]
WHOLE = [[0, "unsigned"], [1, "string"], [2, "unsigned"]]


def recovered(directory: Path, *transactions: list[Request]) -> Box:
    """What a server starts with that finds a new database and a log."""
    new_database(directory)
    write_log(directory, {}, transactions)
    return start(directory)[0]


@pytest.mark.parametrize("kind", ["tree", "hash"])
@pytest.mark.parametrize("before", [0, 1])
def test_the_primary_key_was_altered(tmp_path: Path, kind: str, before: int) -> None:
    box = recovered(
        tmp_path,
        *DEFINITION,
        *([insert(*row, space=ID)] for row in ROWS[:before]),
        [replace(*index(0, WHOLE, kind=kind), space=INDEX)],
        *([insert(*row, space=ID)] for row in ROWS[before:]),
    )
    assert list(faults_of(box.catalog.space(ID))) == []
    assert rows(box.space.t, 1) == ROWS
    assert rows(box.space.t, 2) == [ROWS[0], ROWS[1], ROWS[3], ROWS[2]]
    box.space.t.insert([6, "b", 3, 1])
    assert list(faults_of(box.catalog.space(ID))) == []
    assert [row[2] for row in rows(box.space.t, 1)] == [0, 1, 2, 3, 2]


def test_it_was_altered_in_the_transaction_that_made_the_rows(tmp_path: Path) -> None:
    box = recovered(
        tmp_path,
        *DEFINITION,
        [
            insert(*ROWS[0], space=ID),
            replace(*index(0, WHOLE), space=INDEX),
            *(insert(*row, space=ID) for row in ROWS[1:]),
            replace(*index(2, [[3, "unsigned"]], is_unique=False), space=INDEX),
        ],
    )
    assert list(faults_of(box.catalog.space(ID))) == []
    assert rows(box.space.t, 1) == ROWS
    assert rows(box.space.t, 2) == [ROWS[3], *ROWS[:3]]
