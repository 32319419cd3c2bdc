"""Our files in a real Tarantool's hands, and its files in ours."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import (
    DirectoryLock,
    LogChain,
    check_reached,
    file_name,
    find_logs,
    find_snapshots,
)
from iproto_server.storage.errors import DirectoryLockedError
from iproto_server.storage.snapshot import SnapshotWriter, read_snapshot
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import (
    FileType,
    OnDamage,
    Row,
    RowEncoder,
    RowType,
    XlogReader,
    XlogWriter,
    delete_body,
    encode_row,
    insert_body,
    update_body,
    upsert_body,
)
from iproto_server.storage.xlog.block import COMPRESS_SIZE, HEAD_SIZE, encode_block
from tests.programs import require_program
from tests.real_tarantool import RealTarantool
from tests.storage.files import INSTANCE, TIMESTAMP, header, insertion, rows_in

pytestmark = pytest.mark.real_tarantool

OPTIONS = {"wal_mode": "'write'"}

WRITE_ALL_KINDS = """
local s = box.schema.space.create('t', {format = {{'id', 'unsigned'}, {'v', 'any'}}})
s:create_index('pk')
s:create_index('text', {parts = {{2, 'string', is_nullable = true}}, unique = false})
for i = 1, 5 do s:insert{i, 'v' .. i} end
s:update(1, {{'=', 2, 'x'}, {'!', 3, 10}})
s:upsert({1, 'zz'}, {{'+', 3, 5}})
s:upsert({9, 'new'}, {{'+', 3, 5}})
s:delete(2)
s:replace{3, 'replaced', {1, {a = 'b'}}, require('decimal').new('1.50'), box.NULL, -1.5}
box.begin() s:insert{100, 'a'} s:insert{101, 'b'} s:delete{100} box.commit()
s:insert{200, string.rep('big', 2000)}
box.begin() for i = 300, 400 do s:insert{i, string.rep('x', 50)} end box.commit()
local digest = require('digest')
box.begin() for i = 1000, 1300 do s:insert{i, digest.urandom(1000):hex()} end box.commit()
local l = box.schema.space.create('local', {is_local = true})
l:create_index('pk')
l:insert{1, 'local'}
box.begin() l:insert{2, 'x'} s:insert{2000, 'g'} l:insert{3} box.commit()
box.snapshot()
s:insert{2001, 'after the snapshot'}
"""

DUMP_FILES = """
local fio, xlog, msgpack = require('fio'), require('xlog'), require('msgpack')
local contents = {}
for _, name in ipairs(fio.glob('*.xlog')) do
    contents[name] = setmetatable({}, {__serialize = 'seq'})
    for _, row in xlog.pairs(name) do table.insert(contents[name], row) end
end
for _, name in ipairs(fio.glob('*.snap')) do
    contents[name] = setmetatable({}, {__serialize = 'seq'})
    for _, row in xlog.pairs(name) do table.insert(contents[name], row) end
end
local file = fio.open('files.msgpack', {'O_CREAT', 'O_WRONLY', 'O_TRUNC'}, tonumber('644', 8))
file:write(msgpack.encode(contents))
file:close()
"""

DUMP_SPACES = """
local fio, msgpack = require('fio'), require('msgpack')
local contents = {}
for _, space in box.space._space:pairs() do
    if box.space[space.id].index[0] and space.engine == 'memtx' then
        contents[space.id] = box.space[space.id]:select()
    end
end
local file = fio.open('spaces.msgpack', {'O_CREAT', 'O_WRONLY', 'O_TRUNC'}, tonumber('644', 8))
file:write(msgpack.encode(contents))
file:close()
"""


@pytest.fixture(scope="module")
def tarantool_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a Tarantool has left: everything that logs can hold, a snapshot, and a log that follows it."""
    directory = tmp_path_factory.mktemp("tarantool")
    with RealTarantool(directory, WRITE_ALL_KINDS + DUMP_SPACES, OPTIONS):
        pass
    dump = directory / "dump.lua"
    dump.write_text(DUMP_FILES)
    subprocess.run([require_program("tarantool", "tarantool"), dump], cwd=directory, check=True)
    return directory


class TestReadingItsFiles:
    def test_every_row_is_the_one_that_its_own_reader_shows(self, tarantool_directory: Path) -> None:
        contents = codec.unpack((tarantool_directory / "files.msgpack").read_bytes())
        assert len(contents) >= 4
        for name, shown in contents.items():
            rows = rows_in(tarantool_directory / name)
            assert len(rows) == len(shown)
            for row, expected in zip(rows, shown, strict=True):
                assert_same(row, expected)

    def test_its_rows_are_encoded_as_it_encodes_them(self, tarantool_directory: Path) -> None:
        compressed = 0
        for path in [*tarantool_directory.glob("*.xlog"), *tarantool_directory.glob("*.snap")]:
            with XlogReader.open(path) as reader:
                data = path.read_bytes()
                text = reader.header.encode()
                assert data.startswith(text)
                for block, rows in reader.row_blocks():
                    assert b"".join(map(encode_row, rows)) == block.payload
                    if len(block.payload) < COMPRESS_SIZE - HEAD_SIZE:
                        assert encode_block(block.payload, None) == data[block.start : block.end]
                    else:
                        compressed += data[block.start : block.end].startswith(b"\xd5\xba\x0b\xba")
                assert reader.closed
        assert compressed >= 5

    def test_its_snapshot_and_logs_make_its_database(self, tarantool_directory: Path) -> None:
        expected = codec.unpack((tarantool_directory / "spaces.msgpack").read_bytes())
        snapshots = find_snapshots(tarantool_directory)
        assert snapshots.newest is not None
        assert snapshots.incomplete == []
        spaces: dict[int, dict[Any, Any]] = defaultdict(dict)
        with XlogReader.open(snapshots.newest.path) as reader:
            for batch in read_snapshot(reader):
                for space_id, raw in batch:
                    fields = codec.unpack(raw)
                    spaces[space_id][fields[0]] = fields
        clock = VClock(snapshots.newest.header.vclock)
        chain = find_logs(tarantool_directory, clock, snapshots.newest.header.instance_uuid)
        assert chain.truncated is None
        for log in chain.logs:
            check_reached(clock, log)
            for row in rows_in(log.path):
                if row.lsn > clock.get(row.replica_id, 0):
                    clock[row.replica_id] = row.lsn
                    assert row.type == RowType.INSERT
                    assert row.space_id is not None
                    assert row.tuple_raw is not None
                    fields = codec.unpack(row.tuple_raw)
                    spaces[row.space_id][fields[0]] = fields
        for space_id in (512, 513):
            assert list(spaces[space_id].values()) == expected[space_id]

    def test_the_logs_of_a_directory_follow_each_other(self, tarantool_directory: Path) -> None:
        chain = find_logs(tarantool_directory, VClock())
        assert [log.path.name for log in chain.logs] == sorted(
            path.name for path in tarantool_directory.glob("*.xlog")
        )
        clock = VClock()
        for log in chain.logs:
            check_reached(clock, log)
            for row in rows_in(log.path):
                assert row.lsn == clock.get(row.replica_id, 0) + 1
                clock[row.replica_id] = row.lsn


def assert_same(row: Row, expected: Any) -> None:
    """Check a row against what Tarantool's `xlog` module shows of it."""
    shown = expected["HEADER"]
    assert row.lsn == shown.get("lsn", 0)
    assert RowType(row.type).name == shown["type"]
    assert row.timestamp == shown["timestamp"]
    assert row.replica_id == shown.get("replica_id", 0)
    assert row.group_id == shown.get("group_id", 0)
    body = expected.get("BODY", {})
    assert row.space_id == body.get("space_id")
    assert row.index_base == body.get("index_base", 0)
    named_values = [("key", row.key_raw), ("operations", row.operations_raw), ("tuple", row.tuple_raw)]
    if row.type == RowType.UPDATE:
        named_values[1:] = [("tuple", row.operations_raw)]
    for name, raw in named_values:
        assert (None if raw is None else codec.unpack(raw)) == body.get(name)


def system_rows() -> dict[int, list[list[Any]]]:
    """The rows of the system spaces of an instance that was just bootstrapped."""
    text = files("iproto_server.box.catalog").joinpath("bootstrap.json").read_text(encoding="utf-8")
    by_name = json.loads(text)
    ids = {row[2]: row[0] for row in by_name["_space"]}
    rows = {ids[name]: rows for name, rows in by_name.items()}
    rows[ids["_schema"]].insert(0, ["cluster", "b5d2e0b8-5c0a-4a0e-8a3b-0f6f3f3c6e11"])
    rows[ids["_cluster"]] = [[1, str(INSTANCE)]]
    rows[ids["_space"]] += [
        [512, 1, "jobs", "memtx", 0, {}, [{"name": "id", "type": "unsigned"}]],
        [513, 1, "own", "memtx", 0, {"group_id": 1}, []],
    ]
    rows[ids["_index"]] += [
        [512, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]],
        [512, 1, "text", "tree", {"unique": False}, [[1, "string"]]],
        [513, 0, "pk", "hash", {"unique": True}, [[0, "unsigned"]]],
    ]
    return rows


SNAPSHOT_CLOCK = {0: 2, 1: 10}
JOBS: list[list[Any]] = [[number, f"job {number}", {"data": "x" * (number % 100)}] for number in range(5000)]
OWN: list[list[Any]] = [[1, "one"], [2, b"\x00\xff"]]


def write_snapshot(directory: Path) -> Path:
    """A snapshot with the system rows, two spaces of a user's and rows in them."""
    rows = {**system_rows(), 512: JOBS, 513: OWN}
    with SnapshotWriter(directory, header(FileType.SNAPSHOT, SNAPSHOT_CLOCK), TIMESTAMP) as writer:
        for space_id in sorted(rows):
            tuples = (codec.pack(row) for row in rows[space_id])
            writer.write(space_id, tuples, group_id=int(space_id == 513))
    return writer.path


def write_log(directory: Path) -> Path:
    """A log that follows the snapshot: every request, a transaction of many rows, a compressed block."""
    encoder = RowEncoder()
    pack = codec.pack
    single = [
        insertion(512, 10000, "inserted"),
        (RowType.REPLACE, insert_body(512, pack([0, "replaced"]))),
        (RowType.UPDATE, update_body(512, pack([1]), pack([["=", 1, "updated"]]))),
        (RowType.UPDATE, update_body(512, pack([2]), pack([["=", 2, "updated"]]), index_base=1)),
        (RowType.UPSERT, upsert_body(512, pack([20000, "upserted"]), pack([["=", 1, "not"]]))),
        (RowType.UPSERT, upsert_body(512, pack([3, "not"]), pack([["=", 2, "upserted"]]), index_base=1)),
        (RowType.DELETE, delete_body(512, pack([4]))),
    ]
    path = directory / file_name(FileType.LOG, sum(SNAPSHOT_CLOCK.values()))
    with path.open("xb", buffering=0) as file:
        writer = XlogWriter.create(file, header(FileType.LOG, SNAPSHOT_CLOCK))
        lsn = 11
        for request in single:
            writer.write((encoder.transaction(lsn, TIMESTAMP, (request,)),))
            lsn += 1
        several = [insertion(512, number, f"in one {number}") for number in range(30000, 30300)]
        writer.write((encoder.transaction(lsn, TIMESTAMP, several),))
        lsn += len(several)
        together = [
            encoder.transaction(lsn + number, TIMESTAMP, (insertion(512, 40000 + number, "together"),))
            for number in range(10)
        ]
        writer.write([b"".join(together)])
        local = Row(
            RowType.INSERT, 3, body=insertion(513, 3, "logged")[1], timestamp=TIMESTAMP, group_id=1, tsn=3
        )
        writer.write((encode_row(local),))
        writer.end()
    return path


def expected_jobs() -> list[list[Any]]:
    """The rows of the space `jobs` after the snapshot and the log."""
    jobs = {row[0]: list(row) for row in JOBS}
    jobs[10000] = [10000, "inserted"]
    jobs[0] = [0, "replaced"]
    jobs[1][1] = jobs[2][1] = "updated"
    jobs[20000] = [20000, "upserted"]
    jobs[3][1] = "upserted"
    del jobs[4]
    jobs.update({number: [number, f"in one {number}"] for number in range(30000, 30300)})
    jobs.update({40000 + number: [40000 + number, "together"] for number in range(10)})
    return [jobs[number] for number in sorted(jobs)]


class TestWritingItsFiles:
    def test_it_starts_from_our_directory_and_we_read_what_it_adds(self, tmp_path: Path) -> None:
        write_snapshot(tmp_path)
        log = write_log(tmp_path)
        clock = VClock({0: 3, 1: 10 + 7 + 300 + 10})
        application = DUMP_SPACES + "box.space.jobs:insert{50000, 'by Tarantool'}"
        with RealTarantool(tmp_path, application, OPTIONS) as tarantool:
            output = tarantool.process.output
        assert str(INSTANCE) in output
        assert "E>" not in output
        contents = codec.unpack((tmp_path / "spaces.msgpack").read_bytes())
        assert contents[512] == expected_jobs()
        assert sorted(contents[513]) == [*OWN, [3, "logged"]]
        for space_id, rows in system_rows().items():
            assert contents[space_id] == rows
        added = [row for row in all_rows(find_logs(tmp_path, clock, INSTANCE)) if row.lsn > clock[1]]
        assert [row.tuple_raw for row in added] == [codec.pack([50000, "by Tarantool"])]
        assert log.exists()

    def test_we_go_on_with_the_log_of_one_that_was_killed_and_it_goes_on_with_ours(
        self, tmp_path: Path
    ) -> None:
        create = (
            "box.schema.space.create('t'):create_index('pk')\nfor i = 1, 100 do box.space.t:insert{i} end"
        )
        with RealTarantool(tmp_path, create, OPTIONS) as tarantool:
            tarantool.process.kill()
        (log,) = find_logs(tmp_path, VClock()).logs
        with log.path.open("r+b", buffering=0) as file:
            reader = XlogReader(file, log.path.name, OnDamage.CUT_TAIL)
            rows = [row for transaction in reader.transactions() for row in transaction]
            assert [row.tuple_raw for row in rows[-100:]] == [
                codec.pack([number]) for number in range(1, 101)
            ]
            assert not reader.closed
            lsn = rows[-1].lsn + 1
            writer = XlogWriter(file, reader.good_end)
            writer.write(
                (RowEncoder().transaction(lsn, TIMESTAMP, [insertion(512, 101), insertion(512, 102)]),)
            )
        with RealTarantool(tmp_path, "box.space.t:insert{103}\n" + DUMP_SPACES, OPTIONS):
            pass
        contents = codec.unpack((tmp_path / "spaces.msgpack").read_bytes())
        assert contents[512] == [[number] for number in range(1, 104)]
        added = [row for row in all_rows(find_logs(tmp_path, VClock())) if row.lsn > lsn + 1]
        assert [(row.lsn, row.tuple_raw) for row in added] == [(lsn + 2, codec.pack([103]))]

    def test_its_tool_shows_our_files(self, tmp_path: Path) -> None:
        tool = require_program("tarantoolctl", "tarantool")
        for path in (write_snapshot(tmp_path), write_log(tmp_path)):
            run = subprocess.run(
                [tool, "cat", path, "--format=json", "--show-system"],
                cwd=tmp_path,
                capture_output=True,
                check=True,
            )
            shown = [json.loads(line) for line in run.stdout.decode(errors="replace").splitlines()]
            rows = rows_in(path)
            assert [row["HEADER"].get("lsn", 0) for row in shown] == [row.lsn for row in rows]
            assert [row["BODY"]["space_id"] for row in shown] == [row.space_id for row in rows]

    def test_our_snapshot_has_its_layout(self, tmp_path: Path, tarantool_directory: Path) -> None:
        """Rewriting a snapshot of its own makes the same rows, byte by byte."""
        newest = find_snapshots(tarantool_directory).newest
        assert newest is not None
        rows = rows_in(newest.path)
        with SnapshotWriter(tmp_path, newest.header, rows[0].timestamp) as writer:
            for (space_id, group_id), group in groupby(rows, lambda row: (row.space_id, row.group_id)):
                assert space_id is not None
                writer.write(space_id, (row.tuple_raw or b"" for row in group), group_id=group_id)
        assert writer.path.name == newest.path.name
        assert payload_of(writer.path) == payload_of(newest.path)

    def test_the_lock_is_the_one_it_takes(self, tmp_path: Path) -> None:
        with RealTarantool(tmp_path, "", OPTIONS), pytest.raises(DirectoryLockedError, match=str(tmp_path)):
            DirectoryLock(tmp_path)
        with DirectoryLock(tmp_path), pytest.raises(AssertionError, match="Failed to lock WAL directory"):
            RealTarantool(tmp_path, "", OPTIONS)


def all_rows(chain: LogChain) -> list[Row]:
    """The rows of all logs."""
    return [row for log in chain.logs for row in rows_in(log.path)]


def payload_of(path: Path) -> bytes:
    """The rows of all blocks of a file."""
    with XlogReader.open(path) as reader:
        return b"".join(block.payload for block in reader.blocks())
