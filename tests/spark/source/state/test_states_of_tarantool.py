"""States read from a real Tarantool's directory, compared with what it selected at that moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iproto_server.codec import msgpack as codec
from tests.real_tarantool import RealTarantool
from tests.spark.source.states import small_pieces, state

pytestmark = pytest.mark.real_tarantool

LIFE = """
local fiber, fio, msgpack = require('fiber'), require('fio'), require('msgpack')
math.randomseed(7)
local function create()
    local format = {{'id', 'number'}, {'kind', 'string'}, {'count', 'number'}}
    local s = box.schema.space.create('t', {id = 600, format = format})
    s:create_index('pk', {parts = {{2, 'string', collation = 'unicode_ci'}, {1, 'number'}}})
    s:create_index('id', {parts = {1, 'number', 2, 'string'}})
end
create()
local kinds = {'a', 'B', 'b', 'ß', 'long ' .. string.rep('x', 300)}
local memories = setmetatable({}, {__serialize = 'seq'})
local function row()
    local id = math.random(12)
    if math.random(2) == 1 then id = require('ffi').new('double', id) end
    return id, kinds[math.random(#kinds)], math.random(100) + 0.5
end
for step = 1, 400 do
    local s, id, kind, count = box.space.t, row()
    local what = math.random(40)
    if what <= 8 then s:replace{id, kind, count}
    elseif what <= 12 then pcall(s.insert, s, {id, kind, count})
    elseif what <= 20 then pcall(s.update, s, {kind, id}, {{'+', 'count', 1}, {'!', 4, {step, 'x'}}})
    elseif what <= 30 then s:upsert({id, kind, count}, {{'+', 3, 1}, {'=', 4, step}})
    elseif what <= 34 then s:delete{kind, id}
    elseif what <= 35 then s.index.id:update({id, kind}, {{'-', 'count', 2}})
    elseif what <= 36 then s.index.id:delete{id, kind}
    elseif what == 37 then
        box.begin() s:replace{1, 'a', 1} s:upsert({2, 'a', 1}, {{'=', 3, 5}}) s:delete{'a', 1} box.commit()
    elseif what == 38 and step % 3 == 0 then s:truncate()
    elseif what == 39 and step % 3 == 0 then s:drop() create()
    elseif what == 40 then box.snapshot() end
    fiber.sleep(0.002)
    local rows = setmetatable(box.space.t:select(), {__serialize = 'seq'})
    table.insert(memories, {box.info.lsn, fiber.time(), rows})
    fiber.sleep(0.002)
end
local file = fio.open('memories.msgpack', {'O_CREAT', 'O_WRONLY', 'O_TRUNC'}, tonumber('644', 8))
file:write(msgpack.encode(memories))
file:close()
"""

OPTIONS = {"wal_mode": "'write'", "checkpoint_count": "1000", "wal_max_size": "4096"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a Tarantool has left, and what it remembers: LSN, time and rows."""
    directory = tmp_path_factory.mktemp("tarantool")
    with RealTarantool(directory, LIFE, OPTIONS):
        pass
    return directory


@pytest.fixture
def memories(directory: Path) -> Iterator[list[Any]]:
    with small_pieces():
        yield codec.unpack((directory / "memories.msgpack").read_bytes())


def in_order(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("partition_bytes", [0, 4000])
def test_now(directory: Path, memories: list[Any], partition_bytes: int) -> None:
    assert in_order(state(directory, "t", partition_bytes=partition_bytes)) == in_order(memories[-1][2])


def test_then(directory: Path, memories: list[Any]) -> None:
    assert len(list(directory.glob("*.snap"))) > 3
    for number, (lsn, time, rows) in enumerate(memories[::20]):
        size = {"partition_bytes": (0, 8000)[number % 2]}
        expected = in_order(rows)
        assert in_order(state(directory, "t", mode="at_lsn", lsn=lsn, **size)) == expected
        assert in_order(state(directory, "t", mode="at_time", time=f"{time:.6f}", **size)) == expected


def test_all_from_the_logs(directory: Path, memories: list[Any], tmp_path: Path) -> None:
    """With the snapshot of the bootstrap only."""
    lsn, _, rows = memories[-1]
    options = {"mode": "at_lsn", "lsn": lsn, "wal_dir": directory}
    snapshots = tmp_path / "snapshots"
    snapshots.mkdir()
    first = min(directory.glob("*.snap"))
    (snapshots / first.name).write_bytes(first.read_bytes())
    assert in_order(state(snapshots, "t", **options)) == in_order(rows)
