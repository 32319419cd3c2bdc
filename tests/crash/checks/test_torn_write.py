"""Torn writes are appended only where a write could have been torn, and a server starts with them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from iproto_server.storage.directory import list_files
from iproto_server.storage.errors import StorageError
from iproto_server.storage.xlog import FileType, OnDamage, XlogReader
from tests.crash.checks.data_files import check_files
from tests.crash.checks.test_data_files import write_log, write_snapshot
from tests.crash.checks.torn_write import tear


def rows(path: Path, on_damage: OnDamage = OnDamage.STOP) -> int:
    with XlogReader.open(path, on_damage) as reader:
        return sum(len(transaction) for transaction in reader.transactions())


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_write(tmp_path: Path, seed: int) -> None:
    write_snapshot(tmp_path, 0, [])
    path = write_log(tmp_path, 0, [1, 2, 3])
    whole = path.read_bytes()
    assert tear(tmp_path, Random(seed))
    assert path.read_bytes().startswith(whole)
    with pytest.raises(StorageError):
        rows(path)
    assert rows(path, OnDamage.CUT_TAIL) == 3
    assert check_files(tmp_path) == []
    assert not tear(tmp_path, Random(seed)), "a second one would be damage"


def test_an_empty_directory(tmp_path: Path) -> None:
    assert not tear(tmp_path, Random(1))


def test_a_log_without_rows(tmp_path: Path) -> None:
    write_log(tmp_path, 0, [])
    assert not tear(tmp_path, Random(1))


def test_a_log_that_is_complete(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 0, [1])
    [snapshot] = list_files(tmp_path, FileType.SNAPSHOT)
    path = write_log(tmp_path, 0, [1])
    path.write_bytes(path.read_bytes() + snapshot.read_bytes()[-4:])
    assert not tear(tmp_path, Random(1))
