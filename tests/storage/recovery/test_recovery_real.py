"""A real Tarantool's directories in our hands, and ours in its: every row, by every index."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from iproto_server import Box
from iproto_server.box.catalog.system_space_ids import SYSTEM_ID_MAX
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.recovery import RecoveryResult
from tests.real_tarantool import RealTarantool, queue_application
from tests.storage.databases import jobs_box, new_database, save, start
from tests.storage.files import INSTANCE

pytestmark = pytest.mark.real_tarantool

OPTIONS = {"wal_mode": "'write'", "memtx_memory": "128 * 1024 * 1024"}

DUMP = """
local fio, msgpack = require('fio'), require('msgpack')
local contents = {}
for _, space in box.space._space:pairs() do
    if space.engine == 'memtx' then
        contents[space.id] = {}
        for _, index in box.space._index:pairs(space.id) do
            contents[space.id][index.iid] = box.space[space.id].index[index.iid]:select()
        end
    end
end
local file = fio.open('contents.msgpack', {'O_CREAT', 'O_WRONLY', 'O_TRUNC'}, tonumber('644', 8))
file:write(msgpack.encode(contents))
file:close()
"""

FIELD_TYPES = """
local decimal, uuid = require('decimal'), require('uuid')
local values = {
    unsigned = {0, 1, 2^53, 18446744073709551615ULL},
    integer = {-9223372036854775808LL, -1, 0, 1, 18446744073709551615ULL},
    number = {-1.5, 0, 1, 1.25, decimal.new('1.30'), 1e300, 18446744073709551615ULL},
    double = {require('ffi').cast('double', -1), 0.5, require('ffi').cast('double', 3)},
    string = {'', 'a', 'a\\0b', 'b', string.rep('x', 300), '\\xd1\\x8f'},
    boolean = {false, true},
    decimal = {decimal.new('-1.5'), decimal.new('0'), decimal.new('1e20')},
    uuid = {uuid.fromstr('00000000-0000-0000-0000-000000000001'), uuid.new()},
    scalar = {true, -1, 2.5, decimal.new('7.7'), 'text'},
}
for type, list in pairs(values) do
    local kinds = type == 'decimal' and {'tree'} or {'tree', 'hash'}
    for _, kind in ipairs(kinds) do
        local s = box.schema.space.create(type .. '_' .. kind)
        s:create_index('pk', {type = kind, parts = {{1, type}}})
        s:create_index('nullable', {parts = {{2, type, is_nullable = true}}, unique = false})
        s:create_index('two', {parts = {{1, type}, {3, 'unsigned'}}})
        for i, value in ipairs(list) do s:insert{value, i % 2 == 0 and value or box.NULL, i} end
    end
end
local s = box.schema.space.create('varbinary', {format = {{'id', 'varbinary'}}})
s:create_index('pk')
"""

DDL = """
local s = box.schema.space.create('changed', {format = {{'id', 'unsigned'}, {'name', 'string'}}})
s:create_index('pk')
s:create_index('name', {parts = {{2, 'string'}}})
for i = 1, 50 do s:insert{i, 'name ' .. i, i % 7} end
s:create_index('third', {parts = {{3, 'unsigned'}}, unique = false})
s.index.name:rename('by_name')
s.index.pk:alter({parts = {{1, 'unsigned'}, {3, 'unsigned'}}})
s.index.pk:alter({parts = {{1, 'integer'}}})
s:format({{'id', 'unsigned'}, {'name', 'string'}, {name = 'third', type = 'unsigned'}})
s:rename('renamed')
s.index.third:drop()
s:create_index('third', {parts = {{3, 'unsigned'}, {1, 'unsigned'}}})
local gone = box.schema.space.create('gone')
gone:create_index('pk')
gone:insert{1}
gone:drop()
local emptied = box.schema.space.create('emptied')
emptied:create_index('pk')
emptied:create_index('second', {parts = {{2, 'string'}}})
emptied:insert{1, 'before'}
emptied:truncate()
emptied:insert{2, 'after'}
emptied:truncate()
emptied:insert{3, 'after'}
box.schema.space.create('without_index')
"""

CHANGES = """
local s = box.space.renamed
s:update(1, {{'=', 2, 'updated'}, {'!', 4, {a = {1, 2}}}, {'+', 3, 1}})
s:update(2, {{'#', 3, 1}, {'!', 3, 5}, {':', 2, 1, 4, 'NAME'}})
s:upsert({3, 'not', 0}, {{'-', 3, 1}, {'=', 9, 'ignored'}})
s:upsert({60, 'inserted', 0}, {{'+', 3, 1}})
s.index.by_name:update('name 5', {{'=', 3, 600}})
s.index.by_name:delete('name 6')
s:delete(7)
s:replace{8, 'replaced', 8, require('decimal').new('1.50'), box.NULL, -1.5, 2^60}
box.begin() s:insert{70, 'a', 1} s:insert{71, 'b', 1} s:delete{70} s:update(71, {{'=', 2, 'c'}}) box.commit()
box.begin() for i = 1000, 1600 do s:insert{i, 'zip ' .. i, i % 10, string.rep('x', 50)} end box.commit()
local own = box.schema.space.create('own', {is_local = true})
own:create_index('pk')
own:insert{1, 'local'}
box.begin() own:insert{2, 'x'} s:insert{2000, 'global', 2} own:insert{3} box.commit()
local temporary = box.schema.space.create('temporary', {temporary = true})
temporary:create_index('pk')
temporary:insert{1}
"""

ACCOUNTS = """
box.schema.user.create('ann', {password = 'secret'})
box.schema.user.create('bob')
box.schema.role.create('clerk')
box.schema.role.grant('clerk', 'read,write', 'space', 'renamed')
box.schema.user.grant('ann', 'clerk')
box.schema.user.grant('bob', 'execute', 'universe')
box.schema.func.create('compute', {setuid = true})
box.schema.user.grant('bob', 'execute', 'function', 'compute')
box.schema.user.revoke('bob', 'execute', 'universe')
box.schema.user.passwd('bob', 'another')
box.schema.user.create('gone')
box.schema.user.drop('gone')
"""

APPLICATION = FIELD_TYPES + DDL + CHANGES + ACCOUNTS

QUEUE = """
for i = 1, 30 do queue.put('task ' .. i) end
for i = 1, 5 do queue.put({n = i, list = {1, 2, 'three'}}, {delay = 1000 + i}) end
for i = 1, 10 do
    local task = queue.take(0)
    if i % 3 == 0 then queue.ack(task.id) end
    if i % 3 == 1 then queue.release(task.id, i == 1 and {delay = 2000} or nil) end
end
"""


def contents_of(directory: Path) -> dict[int, dict[int, list[Any]]]:
    """What a Tarantool has said it has: rows by space and index."""
    contents = codec.unpack((directory / "contents.msgpack").read_bytes())
    return {
        # Lua's tables from 0 or 1 on look like arrays.
        space_id: dict(enumerate(indexes)) if isinstance(indexes, list) else indexes
        for space_id, indexes in contents.items()
    }


def assert_same(box: Box, contents: dict[int, dict[int, list[Any]]]) -> None:
    """Check that every space has the same rows, in the same order where there is one."""
    kept = [space for space in box.catalog if not isinstance(space, SysviewSpace) and space.engine == "memtx"]
    assert {space.id for space in kept} == set(contents)
    for space in kept:
        assert set(space.indexes) == set(contents[space.id])
        for index in space.indexes.values():
            found = [codec.unpack(raw) for raw in space.iterate(index, 2, [])]
            expected = contents[space.id][index.id]
            if space.is_temporary:
                assert found == []
                continue
            if index.type == "HASH":
                found.sort(key=codec.pack)
                expected.sort(key=codec.pack)
            assert found == expected, f"{space.name}, {index.name}"


def stopped(directory: Path, application: str, *, is_killed: bool = False) -> None:
    """A Tarantool that did something, said what it has, and ended."""
    with RealTarantool(directory, application + DUMP, OPTIONS) as tarantool:
        if is_killed:
            tarantool.process.kill()


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a Tarantool has left that was killed, all of it in the log."""
    directory = tmp_path_factory.mktemp("logged")
    stopped(directory, APPLICATION, is_killed=True)
    return directory


class TestItsDirectories:
    def test_everything_in_the_log(self, logged: Path) -> None:
        box, found = start(logged)
        assert_same(box, contents_of(logged))
        assert found.checkpoint == {}
        assert found.vclock[0] == 3
        assert found.vclock[1] > 800

    def test_everything_in_the_snapshot(self, logged: Path, tmp_path: Path) -> None:
        directory = shutil.copytree(logged, tmp_path / "copy")
        stopped(directory, "box.snapshot()")
        for log in directory.glob("*.xlog"):
            log.unlink()
        box, found = start(directory)
        assert_same(box, contents_of(directory))
        assert found.checkpoint == found.vclock

    def test_some_in_the_snapshot_and_some_in_the_logs(self, tmp_path: Path) -> None:
        stopped(tmp_path, FIELD_TYPES + DDL + "box.snapshot()" + CHANGES + ACCOUNTS)
        stopped(tmp_path, "box.space.renamed:insert{5000, 'after a restart', 1}")
        box, _ = start(tmp_path)
        assert_same(box, contents_of(tmp_path))
        assert box.space.renamed.get(5000) is not None

    def test_users_and_rights(self, logged: Path) -> None:
        box, _ = start(logged)
        ann, bob = box.access.by_name("ann"), box.access.by_name("bob")
        assert ann.granted("space", box.space.renamed.id) & 3 == 3
        assert bob.granted("function", box.catalog.users.functions["compute"].id) & 4
        assert not bob.granted("universe", 0) & 4
        assert set(box.access.by_name("bob").auth) == {"chap-sha1"}
        assert box.access.find("gone") is None

    def test_the_queue_with_tasks_in_every_status(self, tmp_path: Path) -> None:
        queue = queue_application()
        stopped(tmp_path, f"{queue}\n{QUEUE}")
        box, _ = start(tmp_path)
        assert_same(box, contents_of(tmp_path))
        statuses = [task["status"] for task in box.space.queue.index.status.select()]
        assert {status: statuses.count(status) for status in set(statuses)} == {"R": 23, "T": 3, "W": 6}

    def test_what_this_server_does_not_do_stops_the_start(self, tmp_path: Path) -> None:
        geo = "s:create_index('geo', {type = 'rtree', unique = false, parts = {2, 'array'}})"
        application = (
            f"local s = box.schema.space.create('t') s:create_index('pk') {geo} s:insert{{1, {{1, 2}}}}"
        )
        stopped(tmp_path, application)
        with pytest.raises(StorageError, match="This server does not support RTREE indexes"):
            start(tmp_path)
        stopped(tmp_path, "box.snapshot()")
        with pytest.raises(
            StorageError, match="index 'geo' of space 't': This server does not support RTREE indexes"
        ):
            start(tmp_path)
        box, found = start(tmp_path, force=True)
        assert [list(row) for row in box.space.t.select()] == [[1, [1, 2]]]
        assert len(found.damages) == 1


class TestOurDirectories:
    def test_a_new_one(self, tmp_path: Path) -> None:
        made: RecoveryResult = new_database(tmp_path)
        with RealTarantool(tmp_path, DUMP, OPTIONS) as tarantool:
            output = tarantool.process.output
        assert str(made.instance_uuid) in output
        assert " E> " not in output
        box = Box(instance_uuid=INSTANCE)
        contents = contents_of(tmp_path)
        for space in box.catalog:
            if (
                space.id <= SYSTEM_ID_MAX
                and space.engine == "memtx"
                and space.name not in ("_schema", "_cluster")
            ):
                assert [codec.unpack(raw) for raw in space.rows()] == contents[space.id][0], space.name
        assert contents[320][0] == [[1, str(INSTANCE)]]
        assert ["cluster", str(made.cluster_uuid)] in contents[272][0]

    def test_and_back(self, tmp_path: Path) -> None:
        """It writes to a directory of ours, we start from that, and it starts from what we found."""
        new_database(tmp_path)
        stopped(tmp_path, APPLICATION)
        contents = contents_of(tmp_path)
        box, found = start(tmp_path)
        assert_same(box, contents)
        again = tmp_path / "again"
        again.mkdir()
        save(box, again, found.vclock)
        stopped(again, "")
        assert {**contents, **contents_of(again)} == contents_of(again)

    def test_one_with_jobs(self, tmp_path: Path) -> None:
        box = jobs_box(*([number, "RTW"[number % 3]] for number in range(2000)))
        save(box, tmp_path, {1: 10})
        stopped(tmp_path, "")
        assert_same(box, contents_of(tmp_path))
