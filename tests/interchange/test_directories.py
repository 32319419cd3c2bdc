"""Directories of every kind: separate ones, several snapshots, unused ones, members of a replica set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interchange.database.contents import assert_same, read_position
from tests.interchange.database.home import DIRECTIONS, OURS, TARANTOOL, Home, Inhabitant, Server
from tests.interchange.database.statements import (
    atomically,
    call,
    create_index,
    create_space,
    delete,
    insert,
    replace,
    snapshot,
)

JOBS = [create_space(700, "jobs"), create_index("jobs", "pk", (1, "unsigned"))]
LOCAL = [create_space(701, "local", is_local=True), create_index("local", "pk", (1, "unsigned"))]

_CLUSTER = 320

both_ways = pytest.mark.parametrize("first", DIRECTIONS, ids=lambda who: f"from-{who}")


@both_ways
class TestFiles:
    def test_of_logs_and_snapshots_in_directories_of_their_own(self, home: Home, first: Server) -> None:
        with home.of(first, wal_dir="logs", memtx_dir="snapshots") as inhabitant:
            inhabitant.do([*JOBS, insert(700, 1), snapshot(), insert(700, 2)])
            kept = inhabitant.contents()
        with home.of(first.other, wal_dir="logs", memtx_dir="snapshots") as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([insert(700, 3), snapshot(), insert(700, 4)])
            kept = inhabitant.contents()
            inhabitant.kill()
        assert {path.parent.name for path in home.logs()} == {"logs"}
        assert {path.parent.name for path in home.snapshots()} == {"snapshots"}
        with home.of(first, wal_dir="logs", memtx_dir="snapshots") as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_of_several_snapshots_of_which_any_will_do(self, home: Home, first: Server) -> None:
        """If the newest snapshot is lost, an older one and the logs after it give the same database."""
        with home.of(first, checkpoint_count=10) as inhabitant:
            inhabitant.do([*JOBS, *LOCAL])
            for number in range(1, 6):
                inhabitant.do([insert(700, number), insert(701, number), snapshot(), delete(700, number - 1)])
            kept = inhabitant.contents()
        assert len(home.snapshots()) == 6
        for path in home.snapshots()[-3:]:
            path.unlink()
        with home.of(first.other, checkpoint_count=10) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([insert(700, 10), snapshot(), insert(700, 11)])
            kept = inhabitant.contents()
        for path in home.snapshots()[1:]:
            path.unlink()
        with home.of(first, checkpoint_count=10) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_of_one_that_only_started_and_stopped(self, home: Home, first: Server) -> None:
        """Starting adds nothing to be read later, however often it happens."""
        with home.of(first) as inhabitant:
            inhabitant.do([*JOBS, insert(700, 1)])
            kept = inhabitant.contents()
        for who in (first.other, first, first.other, first.other, first, first):
            with home.of(who) as inhabitant:
                assert_same(inhabitant.contents(), kept)
        with home.of(first) as inhabitant:
            inhabitant.do([insert(700, 2)])
            kept = inhabitant.contents()
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_of_one_whose_own_spaces_were_truncated(self, home: Home, first: Server) -> None:
        """Truncations of local spaces are local to this instance, as their rows are."""
        with home.of(first) as inhabitant:
            inhabitant.do(
                [
                    *LOCAL,
                    create_space(702, "temporary", temporary=True),
                    create_index("temporary", "pk", (1, "unsigned")),
                ]
            )
            before = inhabitant.contents().position["vclock"]
            inhabitant.do(
                [
                    insert(701, 1),
                    call("box.space.local:truncate"),
                    insert(701, 2),
                    call("box.space.local:truncate"),
                    insert(701, 3),
                    call("box.space.temporary:truncate"),
                ]
            )
            kept = inhabitant.contents()
            assert kept.position["vclock"] == {**before, 0: 6}
            inhabitant.kill()
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_of_one_that_took_a_snapshot_of_nothing_new(self, home: Home, first: Server) -> None:
        with home.of(first) as inhabitant:
            inhabitant.do([*JOBS, insert(700, 1), snapshot(), snapshot()])
            kept = inhabitant.contents()
        with home.of(first.other) as inhabitant:
            inhabitant.do([snapshot()])
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([insert(700, 2)])
            kept = inhabitant.contents()
            inhabitant.kill()
        with home.of(first) as inhabitant:
            assert_same(inhabitant.contents(), kept)


MASTER_LUA = """
box.schema.user.grant('guest', 'replication', nil, nil, {if_not_exists = true})
"""

WAIT_FOR_EACH_OTHER = """
local expected, fiber = ..., require('fiber')
for member, lsn in pairs(expected) do
    while (box.info.vclock[tonumber(member)] or 0) < lsn do fiber.sleep(0.005) end
end
"""


@dataclass(slots=True)
class ReplicaSet:
    """Two real Tarantools that replicate each other while they run.

    Parameters:
        first: The directory of the first member.
        second: The directory of the second member.
    """

    first: Home
    second: Home

    @contextmanager
    def run(self) -> Iterator[tuple[Inhabitant, Inhabitant]]:
        """Run both until they have replicated each other."""
        with self.first.of(TARANTOOL, lua=MASTER_LUA) as first:
            address = f"127.0.0.1:{first.server.port}"
            with self.second.of(TARANTOOL, replication=address) as second:
                first.evaluate("box.cfg{replication = ...}", f"127.0.0.1:{second.server.port}")
                yield first, second


def meet(*members: Inhabitant) -> None:
    """Wait until each has the other's rows."""
    for member in members:
        vclock = {str(key): lsn for key, lsn in read_position(member.client)["vclock"].items() if key}
        for other in members:
            other.evaluate(WAIT_FOR_EACH_OTHER, vclock)


@pytest.fixture
def replica_set(tmp_path: Path) -> ReplicaSet:
    """Two members, each of which has written rows, and has the rows of the other."""
    directories = [tmp_path / name for name in ("first", "second")]
    for directory in directories:
        directory.mkdir()
    members = ReplicaSet(*map(Home, directories))
    with members.run() as (first, second):
        first.do([*JOBS, *LOCAL, insert(700, 1)])
        meet(first, second)
        second.do(
            [insert(700, 2), insert(701, 2), atomically(["jobs", "insert", [3]], ["local", "insert", [3]])]
        )
        meet(first, second)
        first.do([insert(700, 4), insert(701, 1), replace(700, 2, "by the first")])
        meet(first, second)
        second.do([snapshot(), insert(700, 5)])
        meet(first, second)
        first.do([delete(700, 1), insert(700, 6)])
        meet(first, second)
    return members


class TestMembersOfAReplicaSet:
    def test_are_who_they_were(self, replica_set: ReplicaSet) -> None:
        """The second member writes rows with its own id; the first one replicates them later."""
        with replica_set.second.of(TARANTOOL) as inhabitant:
            kept = inhabitant.contents()
        assert kept.position["id"] == 2
        assert kept.position["vclock"].keys() == {0, 1, 2}
        with replica_set.second.of(OURS) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([insert(700, 100), insert(701, 100), delete(700, 6)])
            inhabitant.do(
                [atomically(["jobs", "insert", [101]], ["local", "insert", [101]], ["jobs", "delete", [5]])]
            )
            kept = inhabitant.contents()
            inhabitant.kill()
        with replica_set.run() as (first, second):
            assert_same(second.contents(), kept)
            meet(first, second)
            assert first.contents().of("jobs.pk") == kept.of("jobs.pk")
            assert first.contents().of("local.pk") != kept.of("local.pk")
            first.do([insert(700, 200)])
            meet(first, second)
            kept = second.contents()
        with replica_set.second.of(OURS) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([snapshot(), insert(700, 201)])
            kept = inhabitant.contents()
        with replica_set.second.of(TARANTOOL) as inhabitant:
            assert_same(inhabitant.contents(), kept)

    def test_one_of_them_goes_on_alone(self, replica_set: ReplicaSet) -> None:
        with replica_set.first.of(TARANTOOL) as inhabitant:
            kept = inhabitant.contents()
        for who in (OURS, TARANTOOL, OURS):
            with replica_set.first.of(who) as inhabitant:
                assert_same(inhabitant.contents(), kept)
                assert inhabitant.contents().position["id"] == 1
                inhabitant.do(
                    [insert(700, kept.position["lsn"] + 1000), insert(701, kept.position["lsn"] + 1000)]
                )
                kept = inhabitant.contents()

    def test_of_whom_one_was_removed_keep_its_number(self, replica_set: ReplicaSet) -> None:
        """Its rows stay, and so does the number of the last one."""
        with replica_set.first.of(TARANTOOL) as inhabitant:
            inhabitant.do([delete(_CLUSTER, 2), insert(700, 1000), snapshot(), insert(700, 1001)])
            kept = inhabitant.contents()
            inhabitant.kill()
        for who in (OURS, TARANTOOL):
            with replica_set.first.of(who) as inhabitant:
                assert_same(inhabitant.contents(), kept)
                inhabitant.do([insert(700, kept.position["lsn"] + 2000)])
                kept = inhabitant.contents()
        assert kept.position["vclock"].keys() == {0, 1, 2}

    def test_or_only_followed_one_and_become_members_now(self, replica_set: ReplicaSet, home: Home) -> None:
        """An anonymous replica has no number, so it writes nothing but rows of local spaces."""
        with replica_set.first.of(TARANTOOL) as first:
            address = f"127.0.0.1:{first.server.port}"
            with home.of(TARANTOOL, replication=address, replication_anon=True, read_only=True) as inhabitant:
                first.do([insert(700, 1000)])
                inhabitant.do([insert(701, 1000)])
                meet(first, inhabitant)
                kept = inhabitant.contents()
        assert kept.position["id"] == 0
        with home.of(OURS) as inhabitant:
            found = inhabitant.contents()
            assert found.of("_cluster.primary")[:2] == kept.of("_cluster.primary")
            assert found.of("local.pk") == kept.of("local.pk")
            assert found.of("jobs.pk") == kept.of("jobs.pk")
            assert found.position["vclock"] == {**kept.position["vclock"], 3: 1}
            inhabitant.do([insert(700, 1001)])
            kept = inhabitant.contents()
        with home.of(TARANTOOL) as inhabitant:
            assert inhabitant.contents().position["id"] == 3
            assert_same(inhabitant.contents(), kept)
