"""States of synchronous spaces have confirmed changes only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import RowType
from pyspark_tarantool.source.errors import SourceError
from tests.real_tarantool import RealTarantool
from tests.spark.source.changing_spaces import SPACE, primary
from tests.spark.source.reading import Read
from tests.storage.databases import new_database, write_log
from tests.storage.files import Request, insertion, replacement

LIFE = """
local s = box.schema.space.create('s', {is_sync = true}) s:create_index('pk')
local a = box.schema.space.create('a') a:create_index('pk')
s:insert{1}
box.snapshot()
s:insert{2}
a:insert{1}
box.cfg{replication_synchro_quorum = 2, replication_synchro_timeout = 100}
require('fiber').create(function() s:insert{3} end)
require('fiber').sleep(0.1)
"""


def _confirm(lsn: int, kind: int = RowType.CONFIRM) -> Request:
    return kind, codec.pack({2: 1, 3: lsn})


def _write(directory: Path, *logs: list[Request], is_sync: bool = True) -> None:
    clock = dict(new_database(directory).vclock)
    space = replacement(SPACE, 600, 1, "jobs", "memtx", 0, {"is_sync": is_sync}, [])
    for number, log in enumerate(logs):
        requests = [space, primary(600), *log] if number == 0 else log
        write_log(directory, clock, [[request] for request in requests])
        clock = {1: clock.get(1, 0) + len(requests)}


def _keys(directory: Path, **options: Any) -> list[int]:
    return sorted(int(key) for key in Read(directory, space="jobs", **options).column("field_1"))


def test_a_change_that_is_not_confirmed_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, [insertion(600, 1), _confirm(3), insertion(600, 2), insertion(600, 3)])
    with pytest.raises(SourceError, match=r"space 'jobs' is synchronous, .* from the LSN 5 of the member 1"):
        _keys(tmp_path)
    assert _keys(tmp_path, mode="at_lsn", lsn=4) == [1]
    assert len(Read(tmp_path, space="jobs", mode="changes").rows) == 3


@pytest.mark.parametrize("kind", [RowType.CONFIRM, RowType.PROMOTE])
def test_a_confirmation_may_be_in_a_later_log(tmp_path: Path, kind: int) -> None:
    """A state of before knows of it, too."""
    _write(tmp_path, [insertion(600, 1)], [insertion(600, 2)], [_confirm(4, kind)], [])
    assert _keys(tmp_path) == [1, 2]
    assert _keys(tmp_path, mode="at_lsn", lsn=3) == [1]


def test_other_spaces_do_not_wait(tmp_path: Path) -> None:
    _write(tmp_path, [insertion(600, 1)], is_sync=False)
    assert _keys(tmp_path) == [1]


@pytest.mark.real_tarantool
def test_what_tarantool_writes(tmp_path: Path) -> None:
    with RealTarantool(tmp_path, LIFE, {"wal_mode": "'write'"}):
        pass
    with pytest.raises(SourceError, match="space 's' is synchronous"):
        Read(tmp_path, space="s")
    lsn = Read(tmp_path, space="s", mode="changes").column("lsn")[-1] - 1
    assert len(Read(tmp_path, space="s", mode="at_lsn", lsn=lsn).rows) == 2
    assert len(Read(tmp_path, space="a").rows) == 1
