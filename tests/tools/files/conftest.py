"""A database and a log that the tests of the commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.files import deletion, insertion, replacement, update, upsert
from tests.tools.files.checked import Database
from tests.tools.files.sample_files import write_log


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A database with two snapshots and three logs, the last of which is open."""
    database = Database(tmp_path)
    database.snapshot(0)
    database.log(0, [insertion(512, 1, "a")], [insertion(512, 2, "b")], [insertion(512, 3, "c")])
    database.log(3, [replacement(512, 1, "alice")])
    database.snapshot(4, [1, "alice"], [2, "b"], [3, "c"])
    database.log(4, [deletion(512, 2)], [insertion(512, 4, "dave")], end=False)
    return database


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with a row of each kind, one transaction of three rows, and rows of a system space."""
    return write_log(
        tmp_path / "00000000000000000000.xlog",
        [
            [insertion(280, 512, 1, "tasks", "memtx", 0, {}, [])],
            [insertion(512, 1, "one")],
            [replacement(512, 1, "uno"), update(512, [1], [["=", 1, "due"]]), deletion(513, 7)],
            [upsert(512, [2, 5], [["+", 1, 1]], 0)],
        ],
    )
