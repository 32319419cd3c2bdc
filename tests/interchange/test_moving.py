"""A directory keeps all contents when the servers change: in both directions, and back again."""

from __future__ import annotations

import pytest
import tarantool

from tests.interchange.database.contents import assert_same
from tests.interchange.database.home import DIRECTIONS, OURS, TARANTOOL, Home, Inhabitant, Server
from tests.interchange.database.packing import rows_of
from tests.interchange.database.statements import (
    Statement,
    atomically,
    call,
    create_index,
    create_space,
    delete,
    in_vain,
    insert,
    snapshot,
    update,
)
from tests.interchange.database.world import TEMPORARY, build, change, change_back

both_ways = pytest.mark.parametrize("first", DIRECTIONS, ids=lambda who: f"from-{who}")

JOBS = [create_space(700, "jobs"), create_index("jobs", "pk", (1, "unsigned"))]
LOCAL = [create_space(701, "local", is_local=True), create_index("local", "pk", (1, "unsigned"))]


def jobs(*numbers: int) -> list[Statement]:
    """Build insertions of rows long enough to fill a small log."""
    return [insert(700, number, f"job {number} " + "x" * 300) for number in numbers]


def job_numbers(inhabitant: Inhabitant) -> list[int]:
    """Return the first fields of the jobs."""
    return [row[0] for row in inhabitant.client.everything(700).data]


@both_ways
class TestEverythingIsThere:
    def test_of_a_database_that_was_just_made(self, home: Home, first: Server) -> None:
        with home.of(first) as inhabitant:
            new = inhabitant.contents()
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), new)
            inhabitant.do([*JOBS, *jobs(1, 2)])
            grown = inhabitant.contents()
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), grown)

    @pytest.mark.parametrize(
        ("kept_in", "end"), [("log", "killed"), ("snapshot", "stopped"), ("snapshot-and-log", "killed")]
    )
    def test_of_a_database_with_something_of_everything(
        self, home: Home, first: Server, kept_in: str, end: str
    ) -> None:
        def move_out(inhabitant: Inhabitant) -> None:
            if kept_in == "snapshot":
                inhabitant.do([snapshot()])
            if end == "killed":
                inhabitant.kill()

        with home.of(first) as inhabitant:
            inhabitant.do(build())
            if kept_in == "snapshot-and-log":
                inhabitant.do([snapshot()])
            inhabitant.do(change())
            built = inhabitant.contents()
            move_out(inhabitant)
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), built)
            inhabitant.do(change_back())
            if kept_in == "snapshot-and-log":
                inhabitant.do([snapshot()])
            inhabitant.do(change())
            changed = inhabitant.contents()
            move_out(inhabitant)
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), changed)
            inhabitant.do(change_back())

    def test_but_rows_of_temporary_spaces(self, home: Home, first: Server) -> None:
        with home.of(first) as inhabitant:
            inhabitant.do(
                [
                    create_space(TEMPORARY, "temporary", temporary=True),
                    create_index("temporary", "pk", (1, "unsigned")),
                ]
            )
            before = inhabitant.contents()
            inhabitant.do([insert(TEMPORARY, 1), insert(TEMPORARY, 2), delete(TEMPORARY, 1)])
            assert inhabitant.contents().position == before.position
            inhabitant.do([snapshot()])
        with home.of(first.other) as inhabitant:
            assert inhabitant.client.everything(TEMPORARY).data == []
            assert inhabitant.contents().position == before.position


@both_ways
def test_users_log_in_with_their_passwords_and_have_their_rights(home: Home, first: Server) -> None:
    with home.of(first) as inhabitant:
        inhabitant.do([*JOBS, insert(700, 1)])
        inhabitant.do(
            [
                call("box.schema.user.create", "alice", {"password": "wonderland"}),
                call("box.schema.role.create", "reader"),
                call("box.schema.role.grant", "reader", "read", "space", "jobs"),
                call("box.schema.user.grant", "alice", "execute", "role", "reader"),
            ]
        )
    with home.of(first.other) as inhabitant:
        host, port = inhabitant.server.host, inhabitant.server.port
        with pytest.raises(tarantool.DatabaseError, match=r"Incorrect password|User not found"):
            tarantool.Connection(host, port, user="alice", password="looking-glass")
        alice = tarantool.Connection(host, port, user="alice", password="wonderland")
        assert alice.select("jobs").data == [[1]]
        with pytest.raises(tarantool.DatabaseError, match="Write access to space 'jobs' is denied"):
            alice.insert("jobs", [2])
        alice.close()


@both_ways
class TestLogs:
    @pytest.mark.parametrize("wal_mode", ["none", "fsync"])
    def test_of_every_mode(self, home: Home, first: Server, wal_mode: str) -> None:
        """Without a log, the contents of a snapshot are there."""
        with home.of(first, wal_mode=wal_mode) as inhabitant:
            inhabitant.do([*JOBS, *jobs(1, 2, 3), snapshot()])
            kept = inhabitant.contents()
            inhabitant.do(jobs(4))
            if wal_mode != "none":
                kept = inhabitant.contents()
        with home.of(first.other, wal_mode=wal_mode) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([delete(700, 1), *jobs(5), snapshot()])
            kept = inhabitant.contents()
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_one_behind_the_other(self, home: Home, first: Server) -> None:
        with home.of(first, wal_max_size=2048) as inhabitant:
            inhabitant.do([*JOBS, *jobs(*range(1, 40))])
            kept = inhabitant.contents()
            assert len(home.logs()) > 3
        with home.of(first.other, wal_max_size=2048) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            logs = len(home.logs())
            inhabitant.do(jobs(*range(40, 80)))
            kept = inhabitant.contents()
            assert len(home.logs()) > logs + 3
            inhabitant.kill()
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_whose_older_ones_are_gone(self, home: Home, first: Server) -> None:
        expected: list[int] = []
        for stay, who in enumerate((first, first.other, first)):
            with home.of(who, wal_max_size=2048, checkpoint_count=1) as inhabitant:
                assert expected == [] or job_numbers(inhabitant) == expected
                if not expected:
                    inhabitant.do(JOBS)
                before = home.logs()
                for number in range(stay * 60, stay * 60 + 60, 20):
                    inhabitant.do([*jobs(*range(number, number + 20)), snapshot()])
                inhabitant.do([delete(700, stay * 60)])
                expected = job_numbers(inhabitant)
                kept = inhabitant.contents()
                inhabitant.kill()
            assert len(home.snapshots()) == 1
            assert not set(before) & set(home.logs())
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    @pytest.mark.parametrize("torn", ["inside-its-head", "inside-its-rows"])
    def test_whose_last_write_was_torn(self, home: Home, first: Server, torn: str) -> None:
        """A write that was interrupted by a crash was never answered; answered ones before it are there."""
        with home.of(first) as inhabitant:
            inhabitant.do([*JOBS, *jobs(1, 2)])
            kept = inhabitant.contents()
            size = home.logs()[-1].stat().st_size
            inhabitant.do(jobs(3))
            inhabitant.kill()
        with home.logs()[-1].open("r+b") as log:
            log.truncate(size + 7 if torn == "inside-its-head" else size + 100)
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do(jobs(4, 5))
            kept = inhabitant.contents()
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), kept)


class TestSnapshots:
    def test_taken_while_clients_write(self, home: Home) -> None:
        """Every acknowledged row is either in the snapshot or in a log, never in both."""
        statements = [*jobs(*range(300)), snapshot(), *jobs(*range(300, 900)), delete(700, 5)]
        with home.of(OURS) as inhabitant:
            inhabitant.do(JOBS)
            for statement in statements:
                inhabitant.client.send(statement.kind, statement.body)
            answers = [inhabitant.client.receive() for _ in statements]
            assert all(answer.ok for answer in answers)
            kept = inhabitant.contents()
            inhabitant.kill()
        assert len(home.snapshots()) == 2
        with home.of(TARANTOOL) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    @both_ways
    def test_that_were_never_completed_are_passed_over(self, home: Home, first: Server) -> None:
        with home.of(first) as inhabitant:
            inhabitant.do([*JOBS, *jobs(1, 2)])
            kept = inhabitant.contents()
            inhabitant.kill()
        (snap,) = home.snapshots()
        signature = kept.position["signature"]
        unfinished = snap.with_name(f"{signature:020}.snap.inprogress")
        unfinished.write_bytes(snap.read_bytes()[:1000])
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([snapshot(), *jobs(3)])
            kept = inhabitant.contents()
        assert not unfinished.exists()
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), kept)


class TestTablesOfSql:
    def test_are_spaces(self, home: Home) -> None:
        """Their defaults and collations work in Tarantool only, and are kept."""
        table = (
            'CREATE TABLE t (id INT PRIMARY KEY, a STRING COLLATE "unicode_ci", b DOUBLE DEFAULT 1.5,'
            " c SCALAR, d BOOLEAN, UNIQUE (b, d))"
        )
        with home.of(TARANTOOL) as inhabitant:
            for statement in (table, "INSERT INTO t (id, a, c, d) VALUES (1, 'text', 2, true)"):
                assert inhabitant.evaluate("return select(2, box.execute(...))", statement) == []
            kept = inhabitant.contents()
        with home.of(OURS) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([insert(512, 2, "TEXT", 2.5, None, False)])
            kept = inhabitant.contents()
        with home.of(TARANTOOL) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            (found,) = inhabitant.evaluate(
                "return box.execute('SELECT id FROM t WHERE a = ?', {'Text'}).rows"
            )
            assert found == [[1], [2]]


@both_ways
class TestTransactions:
    def test_with_rows_of_local_spaces_between_others(self, home: Home, first: Server) -> None:
        """Rows of local spaces have LSNs of their own, those of member 0."""
        mixtures = [
            atomically(["local", "insert", [1]], ["jobs", "insert", [1]]),
            atomically(["jobs", "insert", [2]], ["local", "insert", [2]]),
            atomically(["local", "insert", [3]], ["jobs", "insert", [3]], ["local", "insert", [4]]),
            atomically(["local", "insert", [5]], ["local", "delete", [1]], ["local", "insert", [6]]),
            atomically(["local", "replace", [6, 6]]),
            in_vain(["local", "insert", [7]], ["jobs", "insert", [7]]),
            insert(701, 8),
            update(701, [8], ["!", 1, "updated"]),
        ]
        with home.of(first) as inhabitant:
            inhabitant.do([*JOBS, *LOCAL, *mixtures])
            kept = inhabitant.contents()
            inhabitant.kill()
        assert kept.position["vclock"][0] == 10
        assert rows_of(b"\x91" + kept.of("local.pk")[-1]) == [b"\x92\x08\xa7updated"]
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([delete(700, 3), delete(701, 8)])
            inhabitant.do(
                [atomically(["local", "replace", [2]], ["jobs", "insert", [4]], ["local", "insert", [9]])]
            )
            kept = inhabitant.contents()
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_of_many_rows(self, home: Home, first: Server) -> None:
        """They are written as one compressed block."""
        steps = [["jobs", "insert", [number, "text " * 20]] for number in range(2000)]
        with home.of(first) as inhabitant:
            inhabitant.do(
                [*JOBS, atomically(*steps), atomically(*(["jobs", "delete", [n]] for n in range(500)))]
            )
            kept = inhabitant.contents()
            inhabitant.kill()
        assert home.logs()[-1].read_bytes().count(b"\xd5\xba\x0b\xba") >= 1
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)
