"""`iproto-server check`: what it says of good and damaged databases, and that it leaves them as they are."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from iproto_server.box.api.box import Box
from iproto_server.box.index.factory import create_index
from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import DirectoryLock
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, RowEncoder, XlogHeader, XlogReader, XlogWriter
from iproto_server.tools.files.check_contents import check_contents
from iproto_server.tools.files.check_files import Findings
from tests.command_line import Outcome, run, run_with_permissions
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import require_program
from tests.running_server import QUEUE_APPLICATION
from tests.storage.files import INSTANCE, TIMESTAMP, Request, deletion, header, insertion, replacement

REPLICA_SET = UUID("7ab1a0ee-3bc8-4a3d-8a4f-1c47dd15b5c5")

SPACE = [
    512,
    1,
    "jobs",
    "memtx",
    0,
    {},
    [{"name": "id", "type": "unsigned"}, {"name": "to", "type": "string"}],
]
INDEXES = [
    [512, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]],
    [512, 1, "to", "tree", {"unique": True}, [[1, "string"]]],
]


SYSTEM: dict[str, list[list[Any]]] = json.loads(
    package_files("iproto_server.box.catalog").joinpath("bootstrap.json").read_text(encoding="utf-8")
)
SYSTEM["_space"].append(SPACE)
SYSTEM["_index"] += INDEXES
SYSTEM["_schema"] = [
    ["cluster", str(REPLICA_SET)],
    *[row for row in SYSTEM["_schema"] if row[0] != "cluster"],
]
SYSTEM["_cluster"] = [[1, str(INSTANCE)]]
SYSTEM_ROWS = sum(map(len, SYSTEM.values()))

GOOD = f"2 snapshots, 3 logs, {SYSTEM_ROWS + 3} rows: consistent\n"


class Database:
    """Files of a database with a space `jobs`, as a server would have left them.

    Args:
        directory: Where they go.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def snapshot(self, lsn: int, *rows: list[Any]) -> Path:
        """Write a snapshot of what was there after so many rows were logged."""
        numbers: dict[str, int] = {fields[2]: fields[0] for fields in SYSTEM["_space"]}
        contents = {numbers[name]: system_rows for name, system_rows in SYSTEM.items()} | {512: list(rows)}
        clock = {1: lsn} if lsn else {}
        with SnapshotWriter(self.directory, header(FileType.SNAPSHOT, clock), TIMESTAMP) as writer:
            for space_id in sorted(contents):
                writer.write(space_id, [codec.pack(fields) for fields in contents[space_id]])
        return writer.path

    def log(
        self, after: int, *transactions: list[Request], end: bool = True, first: int | None = None
    ) -> Path:
        """Write a log that begins after that LSN, a block per transaction."""
        path = self.directory / f"{after:020}.xlog"
        encoder = RowEncoder()
        lsn = after + 1 if first is None else first
        head = XlogHeader(FileType.LOG, INSTANCE, VClock({1: after} if after else {}))
        with path.open("wb", buffering=0) as file:
            writer = XlogWriter.create(file, head, compress=False)
            for changes in transactions:
                writer.write([encoder.transaction(lsn, TIMESTAMP, changes)])
                lsn += len(changes)
            if end:
                writer.end()
        return path

    def check(self, *options: object) -> Outcome:
        """Check it; nothing may be different afterwards."""
        before = self._state()
        outcome = run("check", self.directory, *options)
        assert self._state() == before
        assert outcome.errors == []
        return outcome

    def _state(self) -> dict[Path, tuple[bytes, int]]:
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.directory.glob("*.*")}


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


def blocks_of(path: Path) -> list[tuple[int, int]]:
    """Where the blocks of a file begin and end."""
    with XlogReader.open(path) as reader:
        return [(block.start, block.end) for block in reader.blocks()]


def problems_of(outcome: Outcome, directory: Path) -> list[str]:
    """The lines of an unsuccessful check but the last, file names without their directory."""
    assert outcome.status == 1
    *lines, summary = outcome.output.replace(f"{directory}/", "").splitlines()
    count = len([line for line in lines if not line.startswith("note: ")])
    assert summary.endswith(f": {count} problem{'' if count == 1 else 's'}")
    return lines


def flip(path: Path, offset: int) -> None:
    """Request a byte."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x55
    path.write_bytes(content)


class TestConsistent:
    def test_a_database(self, database: Database) -> None:
        assert database.check() == (0, GOOD, [])

    def test_the_torn_end_of_the_last_log_is_said_and_no_error(self, database: Database) -> None:
        log = database.directory / "00000000000000000004.xlog"
        start, end = blocks_of(log)[-1]
        whole = log.read_bytes()
        for size in (start + 5, end - 1):
            log.write_bytes(whole[:size])
            note, summary = database.check().output.splitlines()
            assert re.fullmatch(
                rf"note: {log}: the file ends .* at offset {start}: a write was interrupted, "
                "a server that starts cuts it off",
                note,
            )
            assert summary == f"2 snapshots, 3 logs, {SYSTEM_ROWS + 2} rows: consistent"

    def test_a_last_log_without_rows(self, database: Database) -> None:
        log = database.directory / "00000000000000000006.xlog"
        log.write_bytes(b"XLOG\n0.13\nVers")
        note, summary = database.check().output.splitlines()
        assert note == (
            f"note: {log}: the file ends within its header at offset 0: it has no rows, "
            "and a server that starts does without it"
        )
        assert summary == GOOD.rstrip()

    def test_what_was_never_completed_is_said(self, database: Database) -> None:
        left = database.directory / "00000000000000000006.snap.inprogress"
        left.write_bytes(b"SNAP")
        outcome = database.check()
        assert outcome.status == 0
        assert outcome.output.startswith(f"note: {left}: it was never completed")

    def test_other_files_do_not_matter(self, database: Database) -> None:
        (database.directory / "jobs.log").write_text("hello")
        (database.directory / "notes.xlog").write_text("hello")
        assert database.check().status == 0

    def test_directories_of_their_own(self, database: Database, tmp_path: Path) -> None:
        logs, snapshots = tmp_path / "logs", tmp_path / "snapshots"
        logs.mkdir()
        snapshots.mkdir()
        for path in tmp_path.glob("*.xlog"):
            path.rename(logs / path.name)
        for path in tmp_path.glob("*.snap"):
            path.rename(snapshots / path.name)
        outcome = run("check", tmp_path, "--wal-dir", "logs", "--memtx-dir", snapshots)
        assert outcome == (0, GOOD, [])

    def test_a_directory_in_use(self, database: Database) -> None:
        with DirectoryLock(database.directory):
            note, summary = database.check().output.splitlines()
        assert note.startswith(f"note: {database.directory}: a server works with this directory")
        assert summary.endswith("consistent")

    def test_the_rest_of_a_failed_write_in_a_log_before_the_last(self, database: Database) -> None:
        """Nobody was told that these rows were written, and their numbers were given to others."""
        database.log(3, [replacement(512, 1, "alice")], [insertion(512, 9, "nobody")])
        assert database.check() == (0, GOOD, [])

    def test_our_own_server_leaves_a_consistent_database(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        server = start_server([QUEUE_APPLICATION], work_dir=tmp_path)
        with IprotoClient.at(server.address) as client:
            for number in range(100):
                assert client.call("queue.put", {"number": number}).ok
        note, in_use = run("check", tmp_path).output.splitlines()
        assert note.startswith(f"note: {tmp_path}: a server works with this directory")
        server.stop()
        assert run("check", tmp_path) == (0, f"{in_use}\n", [])
        assert in_use.endswith(": consistent")

    @pytest.mark.real_tarantool
    def test_so_does_a_tarantool(self, tmp_path: Path) -> None:
        program = require_program("tarantool", "tarantool")
        (tmp_path / "write.lua").write_text(
            "box.cfg{checkpoint_interval = 0} local s = box.schema.space.create('s') s:create_index('pk')"
            " s:create_index('by', {parts = {{2, 'string'}}, unique = false})"
            " for i = 1, 1000 do s:insert{i, 'x' .. i % 7} end box.snapshot()"
            " box.begin() for i = 1, 500 do s:delete{i} end box.commit() os.exit(0)"
        )
        subprocess.run([program, "write.lua"], cwd=tmp_path, capture_output=True, timeout=60, check=True)
        outcome = run("check", tmp_path)
        assert (outcome.status, outcome.errors) == (0, [])
        assert re.fullmatch(r"2 snapshots, \d logs, \d+ rows: consistent\n", outcome.output)


class TestProblems:
    def test_a_damaged_block_in_a_log(self, database: Database) -> None:
        log = database.directory / "00000000000000000004.xlog"
        start, end = blocks_of(log)[0]
        flip(log, end - 1)
        assert problems_of(database.check(), database.directory) == [
            f"{log.name}: wrong checksum of a block at offset {start}",
            f"note: a server does not start from these files: "
            f"{log.name}: wrong checksum of a block at offset {start}",
        ]

    def test_a_last_log_with_rows_is_none_without(self, database: Database) -> None:
        """Its header does not end where it should, but is no header that somebody was about to write."""
        log = database.directory / "00000000000000000004.xlog"
        start, _ = blocks_of(log)[0]
        flip(log, start - 1)
        lines = problems_of(database.check(), database.directory)
        assert lines[0] == f"{log.name}: no header at offset 0"

    def test_every_damage_is_named(self, database: Database) -> None:
        log = database.directory / "00000000000000000000.xlog"
        blocks = blocks_of(log)
        for _, end in blocks[::2]:
            flip(log, end - 1)
        assert problems_of(database.check(), database.directory) == [
            f"{log.name}: wrong checksum of a block at offset {start}" for start, _ in blocks[::2]
        ]

    def test_a_damaged_snapshot(self, database: Database) -> None:
        snapshot = database.directory / "00000000000000000004.snap"
        start, _ = blocks_of(snapshot)[0]
        flip(snapshot, start + 100)
        lines = problems_of(database.check(), database.directory)
        assert lines[0] == f"{snapshot.name}: wrong checksum of a block at offset {start}"
        assert lines[1].startswith("note: a server does not start from these files: ")

    def test_an_old_snapshot_is_verified_too(self, database: Database) -> None:
        snapshot = database.directory / "00000000000000000000.snap"
        start, _ = blocks_of(snapshot)[0]
        flip(snapshot, start + 100)
        assert problems_of(database.check(), database.directory) == [
            f"{snapshot.name}: wrong checksum of a block at offset {start}"
        ]

    def test_a_snapshot_that_is_not_complete(self, database: Database) -> None:
        snapshot = database.directory / "00000000000000000004.snap"
        snapshot.write_bytes(snapshot.read_bytes()[:-4])
        size = snapshot.stat().st_size
        assert problems_of(database.check(), database.directory)[0] == (
            f"{snapshot.name}: the snapshot ends without end marker at offset {size}"
        )

    @pytest.mark.parametrize("name", ["00000000000000000000.xlog", "00000000000000000004.snap"])
    def test_what_is_no_log_or_snapshot(self, database: Database, name: str) -> None:
        (database.directory / name).write_bytes(b"hello\n\n" + bytes(5000))
        assert problems_of(database.check(), database.directory)[0] == f"{name}: no header at offset 0"

    def test_a_file_under_another_ones_name(self, database: Database) -> None:
        log = database.directory / "00000000000000000003.xlog"
        log.rename(database.directory / "00000000000000000002.xlog")
        lines = problems_of(database.check(), database.directory)
        assert lines == ["00000000000000000002.xlog: the name does not fit the clock {1: 3} at offset 0"]

    def test_a_log_of_another_instance(self, database: Database) -> None:
        log = database.directory / "00000000000000000000.xlog"
        other = "11111111-1111-1111-1111-111111111111"
        log.write_bytes(log.read_bytes().replace(str(INSTANCE).encode(), other.encode()))
        assert problems_of(database.check(), database.directory) == [
            f"{log.name}: the instance is {other}, but {INSTANCE} in 00000000000000000000.snap, at offset 0"
        ]

    def test_a_log_that_is_missing(self, database: Database) -> None:
        (database.directory / "00000000000000000003.xlog").unlink()
        assert problems_of(database.check(), database.directory) == [
            "00000000000000000004.xlog: rows are missing between {1: 3}, where the log before it ends, "
            "and {1: 4} at offset 0"
        ]

    def test_rows_that_are_missing_within_a_log(self, database: Database) -> None:
        log = database.log(4, [deletion(512, 2)], first=7, end=False)
        [(start, _)] = blocks_of(log)
        lines = problems_of(database.check(), database.directory)
        assert lines[0] == f"{log.name}: LSN 7 of member 1 comes behind 4 at offset {start}"

    def test_logs_without_a_snapshot(self, database: Database) -> None:
        for path in database.directory.glob("*.snap"):
            path.unlink()
        [line] = problems_of(database.check(), database.directory)
        assert "there are logs but no snapshot" in line

    def test_a_row_that_does_not_fit_its_space(self, database: Database) -> None:
        database.log(4, [insertion(512, 5)], end=False)
        [line] = problems_of(database.check(), database.directory)
        assert line.startswith("a server does not start from these files: ")
        assert "jobs" in line

    def test_an_index_that_the_log_alters_and_its_rows_do_not_fit(self, database: Database) -> None:
        database.log(4, [replacement(288, *INDEXES[1][:5], [[1, "unsigned"]])], end=False)
        [line] = problems_of(database.check(), database.directory)
        assert line.startswith("a server does not start from these files: ")
        assert "to" in line

    def test_a_key_that_is_there_twice(self, database: Database) -> None:
        database.log(4, [insertion(512, 5, "c")], end=False)
        [line] = problems_of(database.check(), database.directory)
        assert "Duplicate key exists in unique index 'to' in space 'jobs'" in line


class TestAlteredIndexes:
    """The log tells of DDL; the indexes that follow from it are held against the rows."""

    def test_the_primary_key_was_altered_before_there_were_rows(self, database: Database) -> None:
        database.log(
            4,
            [insertion(280, 600, 1, "t", "memtx", 0, {}, [])],
            [insertion(288, 600, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"], [3, "unsigned"]])],
            [insertion(288, 600, 1, "by", "tree", {"unique": False}, [[1, "string"]])],
            [replacement(288, 600, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"], [2, "unsigned"]])],
            [insertion(600, 6, "b", 1, 1)],
            [insertion(600, 6, "b", 2, 1)],
            end=False,
        )
        outcome = database.check()
        assert outcome == (0, f"2 snapshots, 3 logs, {SYSTEM_ROWS + 8} rows: consistent\n", [])


class TestContents:
    """What is checked in memory can hardly be wrong in the files; so it is made wrong here."""

    @pytest.fixture
    def space(self) -> MemtxSpace:
        box = Box()
        created = box.schema.create_space("jobs", format=[("id", "unsigned"), ("to", "string")])
        # Scalars are kept under keys of their own, so that an entry can be one that its row does not have.
        created.create_index("pk", parts=[("id", "scalar")])
        created.create_index("to", parts=["to"])
        for number in range(1, 4):
            created.insert([number, f"name {number}"])
        self.box = box
        return box.catalog.space_by_name("jobs")

    def problems(self) -> list[str]:
        problems: list[str] = []
        check_contents(self.box, Findings(problems.append, pytest.fail))
        return problems

    def test_nothing_wrong(self, space: MemtxSpace) -> None:
        assert self.problems() == []
        assert len(space) == 3

    def test_an_entry_that_is_missing(self, space: MemtxSpace) -> None:
        index = space.index_by_name("to")
        index.remove(index.encode_key(["name 2"]))
        assert self.problems() == [
            "space 'jobs': index 'to' does not lead to row [2]",
            "space 'jobs': index 'to' has 2 entries for 3 rows",
        ]

    def test_an_entry_too_many(self, space: MemtxSpace) -> None:
        index = space.index_by_name("to")
        index.insert(index.encode_key(["nobody"]), space.primary_index().encode_key([1]))
        assert self.problems() == ["space 'jobs': index 'to' has 4 entries for 3 rows"]

    def test_an_entry_that_leads_elsewhere(self, space: MemtxSpace) -> None:
        index = space.index_by_name("to")
        index.set(index.encode_key(["name 2"]), space.primary_index().encode_key([1]))
        assert self.problems() == ["space 'jobs': index 'to' does not lead to row [2]"]

    def test_the_elements_of_an_array(self, space: MemtxSpace) -> None:
        self.box.space.jobs.truncate()
        part = {"field": 2, "type": "unsigned", "path": "[*]"}
        self.box.space.jobs.create_index("all", parts=[part])
        self.box.space.jobs.insert([1, "one", [5, 6, 5]])
        self.box.space.jobs.insert([2, "none", []])
        assert self.problems() == []
        index = space.index_by_name("all")
        index.remove(index.encode_key([6]))
        assert self.problems() == [
            "space 'jobs': index 'all' does not lead to row [1]",
            "space 'jobs': index 'all' has 1 entries for 2 elements",
        ]

    def test_a_row_under_the_wrong_key(self, space: MemtxSpace) -> None:
        primary = space.primary_index()
        primary.set(primary.encode_key([3]), codec.pack([4, "name 3"]))
        assert self.problems()[0] == "space 'jobs': the primary index has row [4] elsewhere"

    def test_keys_that_end_with_parts_of_a_primary_key_there_was(self, space: MemtxSpace) -> None:
        """Each key leads to its row, but keys of other rows would be the same."""
        primary = space.primary_index()
        former = KeyDef([KeyPart(1, FieldType.STRING)])
        row = IndexDef.parse([space.id, 1, "to", "tree", {"unique": False}, [[1, "string"]]], space.name)
        index = create_index(row, space.name, former)
        index.build([index.encode_key([f"name {number}"]) for number in (1, 2, 3)], list(primary.keys()))
        space.set_indexes({0: primary, 1: index})
        assert self.problems() == [
            "space 'jobs': index 'to' does not lead to row [1]",
            "space 'jobs': index 'to' does not lead to row [2]",
            "space 'jobs': index 'to' does not lead to row [3]",
            "space 'jobs': index 'to' is laid out for another primary key",
        ]

    def test_entries_out_of_order(self, space: MemtxSpace) -> None:
        class Misplaced(TreeIndex):
            """Walks through its entries backwards."""

            def keys(self) -> Iterator[bytes]:
                return reversed(list(super().keys()))

        present = space.index_by_name("to")
        index = Misplaced(present.definition, space.name, space.primary_index().key_def)
        index.adopt(present)
        space.set_indexes({0: space.primary_index(), 1: index})
        assert self.problems() == ["space 'jobs': index 'to' is out of order"]

    def test_a_key_that_clients_cannot_ask_for(self, space: MemtxSpace) -> None:
        """The entry is under the key of another type than the one that the index says it has."""
        index = space.index_by_name("to")
        index.encode_key = KeyDef([KeyPart(0, FieldType.SCALAR)]).encode_key
        assert self.problems() == [
            f"space 'jobs': index 'to' does not lead to row [{number}]" for number in (1, 2, 3)
        ]

    def test_bytes_that_are_counted_wrongly(self, space: MemtxSpace) -> None:
        size = space.bsize
        space.bsize += 1
        assert self.problems() == [f"space 'jobs': the rows have {size} bytes, and {size + 1} are counted"]

    def test_a_row_whose_field_no_key_can_be_made_of(self, space: MemtxSpace) -> None:
        """The format does not know what an index demands, so nothing else finds it out."""
        space.set_format(Format.parse([], space.name))
        primary = space.primary_index()
        primary.set(primary.encode_key([3]), codec.pack([3]))
        assert self.problems()[0] == (
            "space 'jobs': row 9103: it does not fit its space (list index out of range)"
        )

    def test_a_row_that_does_not_fit_the_format(self, space: MemtxSpace) -> None:
        primary = space.primary_index()
        primary.set(primary.encode_key([3]), codec.pack([3, 5]))
        assert self.problems()[0].startswith("space 'jobs': row 920305: Tuple field 2")


class TestCommandLine:
    def test_no_database(self, tmp_path: Path) -> None:
        assert run("check", tmp_path) == (2, "", [f"there is no database in {tmp_path}"])

    def test_no_directory(self, tmp_path: Path) -> None:
        missing = tmp_path / "none"
        assert run("check", missing) == (2, "", [f"cannot read {missing}: No such file or directory"])

    def test_a_file(self, database: Database) -> None:
        path = database.directory / "00000000000000000000.snap"
        assert run("check", path) == (2, "", [f"cannot read {path}: Not a directory"])

    def test_a_log_directory_that_is_not_there(self, database: Database) -> None:
        outcome = run("check", database.directory, "--wal-dir", "logs")
        assert outcome == (2, "", [f"cannot read {database.directory / 'logs'}: No such file or directory"])

    def test_what_must_not_be_read(self, database: Database) -> None:
        log = database.directory / "00000000000000000000.xlog"
        log.chmod(0)
        outcome = run_with_permissions("check", database.directory)
        log.chmod(0o600)
        assert outcome.status == 1
        assert f"cannot read {log}: Permission denied" in outcome.output

    def test_a_directory_that_must_not_be_read(self, tmp_path: Path) -> None:
        directory = tmp_path / "private"
        directory.mkdir(mode=0)
        outcome = run_with_permissions("check", directory)
        assert outcome == (2, "", [f"cannot read {directory}: Permission denied"])

    @pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--force"]])
    def test_mistakes(self, arguments: list[str]) -> None:
        outcome = run("check", *arguments)
        assert (outcome.status, outcome.output, len(outcome.errors)) == (2, "", 1)

    def test_help_has_examples(self) -> None:
        outcome = run("check", "--help")
        assert outcome.status == 0
        assert "\nExamples:\n  iproto-server check " in outcome.output
