"""Recovery: rows that cannot be applied, snapshots that are not complete, and the progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from iproto_server import Box
from iproto_server.box.catalog.foreign.advice import UNSERVED
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import StorageError, XlogError
from iproto_server.storage.recovery.damage_report import HOW_TO_GO_ON
from iproto_server.storage.recovery.recovery import recover, remove_unfinished
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, RowType
from tests.storage.databases import (
    JOBS,
    delete,
    insert,
    jobs,
    jobs_box,
    jobs_in,
    new_database,
    replace,
    save,
    start,
    update,
    write_log,
)
from tests.storage.files import TIMESTAMP, header


def test_what_other_servers_would_do_is_kept_and_said_not_to_be_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = jobs_box()
    row = [JOBS, "positive", False, "SQL", "id > 0", True]
    box.catalog.load(box.catalog.space_by_name("_ck_constraint"), codec.pack(row))
    save(box, tmp_path, {})
    again, _ = start(tmp_path)
    assert [list(each) for each in again.space._ck_constraint.select()] == [row]
    assert "the rows of _ck_constraint are kept but have no effect in this server" in caplog.text


@pytest.mark.parametrize("number", [0, 1], ids=["guest", "admin"])
def test_a_user_that_every_database_has_may_have_another_name(tmp_path: Path, number: int) -> None:
    box = jobs_box()
    users = box.space._user
    users.update(number, [("=", 2, "renamed")])
    save(box, tmp_path, {})
    again, _ = start(tmp_path)
    session = again.session.open("binary", "127.0.0.1:50000")
    assert session.user.name == ("renamed" if number == 0 else "guest")
    assert again.run(again.session.background, again.session.user) == ("renamed" if number else "admin")


class TestRowsThatCannotBeApplied:
    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            (
                insert(1, "again"),
                "space 'jobs': Duplicate key exists in unique index 'primary' in space 'jobs'",
            ),
            (insert(2, "R", space=999), "space 999: Space '999' does not exist"),
            ((RowType.ROLLBACK, b"\x80"), "synchronous transactions that were rolled back"),
            ((99, b"\x80"), "Unknown request type 99"),
            (replace("two", "R"), "space 'jobs': it does not fit its space"),
            (update([1], [["?", 1, 1]]), "space 'jobs': "),
            (
                update([1], [["=", 0, 2]]),
                "Attempt to modify a tuple field which is part of index 'primary' in space 'jobs'",
            ),
            (
                insert(512, 5, "geo", "rtree", {"unique": False}, [[2, "array"]], space=288),
                "index 'geo' of space 'jobs': ",
            ),
            (delete(512, space=280), "Can't drop space 'jobs': the space has indexes"),
        ],
    )
    def test_stop_the_start_or_are_left_out(
        self, tmp_path: Path, request_: tuple[int, bytes], reason: str
    ) -> None:
        save(jobs_box([1, "R"]), tmp_path, {1: 5})
        log = write_log(tmp_path, {1: 5}, [[insert(7, "R")], [request_], [insert(8, "R")]])
        with pytest.raises(StorageError) as caught:
            start(tmp_path)
        assert str(caught.value).startswith(f"{log}, block at offset ")
        assert "row 7 of member 1" in str(caught.value)
        assert reason in str(caught.value)
        box, found = start(tmp_path, force=True)
        assert jobs_in(box) == {1: "R", 7: "R", 8: "R"}
        advice = UNSERVED if "support" in str(caught.value) else HOW_TO_GO_ON
        assert f"{found.damages[0]}; {advice}" == str(caught.value)
        assert len(found.damages) == 1
        assert found.vclock == {1: 8}

    def test_two_rows_with_one_key_of_a_unique_index(self, tmp_path: Path) -> None:
        box = jobs_box()
        box.space.jobs.create_index("unique_status", parts=["status"])
        save(box, tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(1, "R"), insert(2, "T"), insert(3, "R")]])
        reason = r"Duplicate key exists in unique index 'unique_status' in space 'jobs': \['R'\]"
        with pytest.raises(StorageError, match=reason):
            start(tmp_path)
        assert jobs(tmp_path, force=True) == {1: "R", 2: "T"}


class TestSnapshotsThatAreNotComplete:
    def test_stop_the_start_unless_an_older_one_will_do(self, tmp_path: Path) -> None:
        save(jobs_box([1, "R"]), tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(2, "R")]])
        newest = save(jobs_box([1, "R"], [2, "R"]), tmp_path, {1: 6})
        newest.write_bytes(newest.read_bytes()[:-4])
        with pytest.raises(StorageError, match=f"{newest}: the snapshot is incomplete"):
            start(tmp_path)
        box, found = start(tmp_path, force=True)
        assert jobs_in(box) == {1: "R", 2: "R"}
        assert found.checkpoint == {1: 5}
        assert found.damages == [f"{newest}: the snapshot is incomplete: it has no end marker"]

    def test_the_only_one_is_read_as_far_as_it_goes(self, tmp_path: Path) -> None:
        with SnapshotWriter(tmp_path, header(FileType.SNAPSHOT, {1: 5}), TIMESTAMP) as writer:
            for space in sorted(jobs_box().catalog, key=lambda space: space.id):
                writer.write(space.id, space.rows() if space.engine == "memtx" else [])
            writer.write(JOBS, (codec.pack([number, "R" * 1000]) for number in range(1000)))
        data = writer.path.read_bytes()
        writer.path.write_bytes(data[:-100])
        with pytest.raises(StorageError, match="the snapshot is incomplete"):
            start(tmp_path)
        found = jobs(tmp_path, force=True)
        assert list(found) == list(range(len(found)))
        assert 0 < len(found) < 1000

    def test_one_whose_header_cannot_be_read_is_no_better(self, tmp_path: Path) -> None:
        save(jobs_box([1, "R"]), tmp_path, {1: 5})
        newest = save(jobs_box([2, "R"]), tmp_path, {1: 6})
        newest.write_bytes(newest.read_bytes().replace(b"0.13", b"9.99", 1))
        with pytest.raises(XlogError, match=rf"{newest}: unsupported format version '9.99'"):
            start(tmp_path)
        assert jobs(tmp_path, force=True) == {1: "R"}

    def test_those_that_never_got_their_names_are_removed(self, tmp_path: Path) -> None:
        new_database(tmp_path)
        for name in ("00000000000000000007.snap.inprogress", "00000000000000000007.xlog.inprogress"):
            (tmp_path / name).write_bytes(b"SNAP\n")
        (tmp_path / "notes.inprogress").write_bytes(b"")
        remove_unfinished(tmp_path)
        names = ["00000000000000000000.snap", "notes.inprogress"]
        assert sorted(path.name for path in tmp_path.iterdir()) == names


class TestProgress:
    def test_it_is_told_how_far_recovery_is(self, tmp_path: Path) -> None:
        class Seen:
            def __init__(self) -> None:
                self.size, self.rows, self.positions, self.ends = 0, [0], [0], 0

            def begin(self, size: int) -> None:
                self.size = size

            def update(self, rows: int, position: int) -> None:
                self.rows.append(rows)
                self.positions.append(position)

            def end(self) -> None:
                self.ends += 1

        snapshot = save(jobs_box([1, "R"]), tmp_path, {1: 5})
        log = write_log(tmp_path, {1: 5}, [[insert(number, "R")] for number in range(2, 50)])
        seen = Seen()
        found = recover(Box(), tmp_path, tmp_path, progress=seen)
        assert found is not None
        assert seen.size == snapshot.stat().st_size + log.stat().st_size
        assert seen.rows == sorted(seen.rows)
        assert seen.positions == sorted(seen.positions)
        assert seen.rows[-1] == found.rows
        assert seen.size - 8 <= seen.positions[-1] <= seen.size
        assert seen.ends == 1

    def test_it_is_told_of_the_end_where_recovery_fails(self, tmp_path: Path) -> None:
        class Ended:
            ends = 0

            def begin(self, size: int) -> None:
                pass

            def update(self, rows: int, position: int) -> None:
                pass

            def end(self) -> None:
                self.ends += 1

        save(jobs_box([1, "R"]), tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(1, "R")]])
        progress = Ended()
        with pytest.raises(StorageError):
            recover(Box(), tmp_path, tmp_path, progress=progress)
        assert progress.ends == 1


def test_the_clock_of_what_was_recovered_is_a_copy(tmp_path: Path) -> None:
    save(jobs_box(), tmp_path, {1: 5})
    write_log(tmp_path, {1: 5}, [[insert(1, "R")]])
    found = start(tmp_path)[1]
    found.vclock[1] = 100
    assert found.checkpoint == VClock({1: 5})
    assert found.previous_vclock == VClock({1: 5})
