"""The spaces that files define."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from iproto_server.box.catalog.system_space_ids import COLLATION, INDEX, SPACE
from iproto_server.storage.xlog import Block
from pyspark_tarantool.source.io import byte_ranges
from pyspark_tarantool.source.io.byte_ranges import split_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFiles
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from pyspark_tarantool.source.schema import system_rows
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
    monkeypatch.setattr(byte_ranges, "_PART_BYTES", 1)
    Database(tmp_path).log(
        *(space(600, "jobs", "id", "data"), primary(600), *_filling(0)),
        *(space(600, "tasks", "id", "text"), space(601, "old", "id"), primary(601), *_filling(100)),
        space(601, "new", "id", "name"),
    )
    files = DataFiles.find(ReadOptions.parse({"path": str(tmp_path), "mode": "changes"}))
    assert len(split_file(files.logs[-1], 1)) > 10
    found = system_rows.read_definitions(files.snapshots[-1], files.logs, DamageHandler(OnDamaged.FAIL))
    assert [field.name for field in found.space("tasks").fields] == ["id", "text"]
    assert [field.name for field in found.space("new").fields] == ["id", "name"]
    assert {"jobs", "old"}.isdisjoint(each.name for each in found.values())


@pytest.mark.parametrize("size", [0, 100_000])
@pytest.mark.parametrize("place", [0, 0.5, 1])
@pytest.mark.parametrize("form", ["cd%04x", "ce%08x", "cf%016x"])
@pytest.mark.parametrize("space_id", [SPACE, INDEX, COLLATION])
def test_a_block_with_such_rows_is_known_by_its_bytes(
    space_id: int, form: str, place: float, size: int
) -> None:
    row = b"\x82\x10" + bytes.fromhex(form % space_id) + b"\x21\x90"
    others = (b"\x82\x10\xcd\x02\x00\x21\x90" * (size // 7))[: int(size * place)]
    rest = b"\x82\x10\xcd\x02\x00\x21\x90" * int(size * (1 - place) / 7)
    assert system_rows.may_define(Block(0, 1, others + row + rest))
    assert not system_rows.may_define(Block(0, 1, others + rest))
