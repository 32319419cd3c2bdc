"""The spaces that files define."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from spark.source import definitions
from spark.source.damages import Damages
from spark.source.files import DataFiles
from spark.source.options import OnDamaged, ReadOptions
from spark.source.ranges import split_file
from tests.spark.source.changing_spaces import Database, primary, space
from tests.storage.files import Request, insertion


def _filling(first: int) -> list[Request]:
    """Rows that take some blocks, though they are compressed."""
    random = Random(first)
    return [insertion(600, first + number, random.randbytes(50_000)) for number in range(10)]


def test_rows_that_define_spaces_are_found_in_all_parts_of_a_large_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take effect in the order of the log, though several parts are looked through at a time."""
    monkeypatch.setattr(definitions, "_PART_BYTES", 1)
    Database(tmp_path).log(
        *(space(600, "jobs", "id", "data"), primary(600), *_filling(0)),
        *(space(600, "tasks", "id", "text"), space(601, "old", "id"), primary(601), *_filling(100)),
        space(601, "new", "id", "name"),
    )
    files = DataFiles.find(ReadOptions.parse({"path": str(tmp_path), "mode": "changes"}))
    assert len(split_file(files.logs[-1], 1)) > 10
    found = definitions.read_definitions(files.snapshots[-1], files.logs, Damages(OnDamaged.FAIL))
    assert [field.name for field in found.space("tasks").fields] == ["id", "text"]
    assert [field.name for field in found.space("new").fields] == ["id", "name"]
    assert {"jobs", "old"}.isdisjoint(each.name for each in found.values())
