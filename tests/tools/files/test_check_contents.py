"""`iproto-server check`: rows, indexes and definitions that do not fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
from iproto_server.tools.files.check_contents import check_contents
from iproto_server.tools.files.check_files import Findings
from tests.command_line import run, run_with_permissions
from tests.storage.files import insertion, replacement
from tests.tools.files.checked import SYSTEM_ROWS, Database


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
            "space 'jobs': row 9103: it does not fit its space (the row has no field for a part of the key)"
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
