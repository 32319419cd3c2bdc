"""Tubes move between our server and the module of github.com/tarantool/queue, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.interchange.database.home import DIRECTIONS, OURS, TARANTOOL, Home, Inhabitant, Server
from tests.interchange.database.statements import snapshot
from tests.queue_lua_compat.real_tubes import tubes_application

TUBES_APPLICATION = "queue_lua_compat.tubes:app"
_FIRST_SPACE = 512

TUBES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("fifo", {}),
    "timed": ("fifottl", {"ttl": 10_000, "ttr": 500, "pri": 3}),
    "limited": ("limfifottl", {"capacity": 100}),
    "grouped": ("utube", {}),
    "grouped_timed": ("utubettl", {"ttr": 500}),
}


@contextmanager
def tubes_of(home: Home, who: Server) -> Iterator[Inhabitant]:
    """Run a server of tubes with a client that is admin."""
    with home.of(who, applications=[TUBES_APPLICATION], lua=tubes_application()) as inhabitant:
        assert inhabitant.call("box.session.su", "admin").ok
        yield inhabitant


def create(inhabitant: Inhabitant, name: str, kind: str, options: dict[str, Any]) -> None:
    """Create a tube."""
    answer = inhabitant.call("queue.create_tube", name, kind, options)
    # The module returns an object with functions, which cannot be sent.
    assert answer.ok or "unsupported Lua type" in answer.failure[1], answer.failure


def call(inhabitant: Inhabitant, tube: str, method: str, *arguments: Any) -> Any:
    """Call a procedure of a tube, which must succeed."""
    answer = inhabitant.call(f"queue.tube.{tube}:{method}", *arguments)
    assert answer.ok, answer.failure
    return answer.data[0] if answer.data else None


def fill(inhabitant: Inhabitant) -> None:
    """Create a tube of each type, with tasks in every state."""
    for name, (kind, options) in TUBES.items():
        create(inhabitant, name, kind, options)
        for data in ("taken", "acknowledged", "buried", "ready"):
            call(inhabitant, name, "put", data, {"utube": data})
        call(inhabitant, name, "take")
        call(inhabitant, name, "take")
        call(inhabitant, name, "ack", 1)
        call(inhabitant, name, "bury", 2)
        if kind.endswith("ttl"):
            call(inhabitant, name, "put", "delayed", {"delay": 5000, "utube": "delayed"})


def rows(inhabitant: Inhabitant, space: str) -> list[list[Any]]:
    """Return all rows of a space."""
    client = inhabitant.client
    return [list(row) for row in client.everything(client.space_id(space)).data]


def states(inhabitant: Inhabitant, tube: str) -> dict[Any, str]:
    """Return the state of each task, by its data."""
    return {row[-1]: row[1] for row in rows(inhabitant, tube)}


def definitions(inhabitant: Inhabitant) -> tuple[list[Any], list[Any]]:
    """Return the rows of `_space` and `_index` about all objects of the queue."""
    return (
        [row[:1] + row[2:] for row in rows(inhabitant, "_space") if row[0] >= _FIRST_SPACE],
        [row for row in rows(inhabitant, "_index") if row[0] >= _FIRST_SPACE],
    )


def timeless(tasks: list[list[Any]]) -> list[list[Any]]:
    """Return tasks without their times."""
    return [[value for value in task if not (isinstance(value, int) and value > 10**15)] for task in tasks]


def test_the_spaces_are_the_same(home: Home, tmp_path: Any) -> None:
    other_home = Home(tmp_path / "other")
    other_home.directory.mkdir()
    with tubes_of(home, OURS) as ours, tubes_of(other_home, TARANTOOL) as theirs:
        for inhabitant in (ours, theirs):
            fill(inhabitant)
        assert definitions(ours) == definitions(theirs)
        assert rows(ours, "_queue") == rows(theirs, "_queue")
        for tube in TUBES:
            assert timeless(rows(ours, tube)) == timeless(rows(theirs, tube))


@pytest.mark.parametrize("first", DIRECTIONS, ids=lambda who: f"from-{who}")
class TestMoving:
    @pytest.mark.parametrize("kept_in", ["log", "snapshot"])
    def test_tubes_and_tasks_are_taken_over(self, home: Home, first: Server, kept_in: str) -> None:
        with tubes_of(home, first) as inhabitant:
            fill(inhabitant)
            before = {tube: rows(inhabitant, tube) for tube in TUBES}
            queue = rows(inhabitant, "_queue")
            described = definitions(inhabitant)
            if kept_in == "snapshot":
                inhabitant.do([snapshot()])
            inhabitant.kill()
        with tubes_of(home, first.other) as inhabitant:
            assert rows(inhabitant, "_queue") == queue
            assert definitions(inhabitant) == described
            for tube, (kind, _) in TUBES.items():
                expected = {"taken": "r", "buried": "!", "ready": "r"}
                if kind.endswith("ttl"):
                    expected["delayed"] = "~"
                assert states(inhabitant, tube) == expected
                # Only the due times of tasks that were taken have changed.
                assert rows(inhabitant, tube)[1:] == before[tube][1:]
                assert call(inhabitant, tube, "take") == [0, "t", "taken"]
                assert call(inhabitant, tube, "ack", 0) == [0, "-", "taken"]
                # No more than there are: an empty take of the module's utube leaves its transaction open.
                assert call(inhabitant, tube, "kick", 1) == 1
                assert call(inhabitant, tube, "take")[2] == "buried"
                put = call(inhabitant, tube, "put", "new", {"utube": "new"})
                assert put == [4 + kind.endswith("ttl"), "r", "new"]
        with tubes_of(home, first) as inhabitant:
            for tube in TUBES:
                assert states(inhabitant, tube)["buried"] == "r"
                assert [call(inhabitant, tube, "take")[2] for _ in range(3)] == ["buried", "ready", "new"]

    def test_tubes_may_be_dropped_and_made_by_the_other(self, home: Home, first: Server) -> None:
        with tubes_of(home, first) as inhabitant:
            create(inhabitant, "a", "fifo", {})
            create(inhabitant, "b", "fifottl", {"temporary": True})
            call(inhabitant, "b", "put", "gone with a restart")
        with tubes_of(home, first.other) as inhabitant:
            assert call(inhabitant, "b", "take", 0) is None
            assert call(inhabitant, "a", "drop") is True
            create(inhabitant, "c", "limfifottl", {"capacity": 1})
        with tubes_of(home, first) as inhabitant:
            assert sorted(inhabitant.call("queue.tube").data[0]) == ["b", "c"]
            assert [row[:2] for row in rows(inhabitant, "_queue")] == [["b", 1], ["c", 2]]
            call(inhabitant, "c", "put", "x")
            assert call(inhabitant, "c", "put", "y") is None

    def test_rights_are_taken_over(self, home: Home, first: Server) -> None:
        with tubes_of(home, first) as inhabitant:
            create(inhabitant, "a", "fifo", {})
            assert inhabitant.call("box.schema.user.create", "ann").ok
            call(inhabitant, "a", "grant", "ann", {"call": True})
        with tubes_of(home, first.other) as inhabitant:
            assert inhabitant.call("box.session.su", "ann").ok
            assert call(inhabitant, "a", "put", "x") == [0, "r", "x"]
            assert call(inhabitant, "a", "take") == [0, "t", "x"]
            assert call(inhabitant, "a", "ack", 0) == [0, "-", "x"]

    def test_what_a_replica_set_stores_is_taken_over(self, home: Home, first: Server) -> None:
        settings = {"ttr": 1000, "in_replicaset": True}
        with tubes_of(home, first) as inhabitant:
            create(inhabitant, "a", "fifo", {})
            assert inhabitant.call("queue.cfg", settings).ok
            call(inhabitant, "a", "put", "x")
            call(inhabitant, "a", "take")
            assert rows(inhabitant, "_queue_taken_2")
            inhabitant.kill()
        with tubes_of(home, first.other) as inhabitant:
            # Without the setting, the spaces are temporary again, and no session waits for a connection.
            assert states(inhabitant, "a") == {"x": "r"}
            assert rows(inhabitant, "_queue_shared_sessions") == rows(inhabitant, "_queue_taken_2") == []
            space = inhabitant.client.space_id("_queue_taken_2")
            assert next(row for row in rows(inhabitant, "_space") if row[0] == space)[5] == {
                "temporary": True
            }


def test_tubes_with_policies_work_in_tarantool_and_back_here(home: Home) -> None:
    limits = {"release_limit": 2, "release_limit_policy": "DLQ"}
    with tubes_of(home, OURS) as ours:
        for name, (kind, options) in TUBES.items():
            retry = {"retry": {"delay": 1000}} if kind.endswith("ttl") else {}
            create(ours, name, kind, options | limits | retry)
            call(ours, name, "put", "dead", {"utube": "dead", "retry": False})
            for _ in range(2):
                call(ours, name, "release", call(ours, name, "take", 0)[0])
            call(ours, name, "put", "unique", {"utube": "unique", "unique_key": "k", "unique_for": 3600})
            call(ours, name, "put", "failed", {"utube": "failed", "retry": False})
            call(ours, name, "take", 0)
            call(ours, name, "release", call(ours, name, "take", 0)[0])
            assert ours.call("operator.pause", name).ok
            assert ours.call("operator.schedule", f"yearly {name}", {"queue": name, "cron": "0 0 1 1 *"}).ok
        before = {name: rows(ours, name) for name in (*TUBES, *(f"{name}_dlq" for name in TUBES))}
        ours.kill()
    with tubes_of(home, TARANTOOL) as theirs:
        for name in TUBES:
            assert states(theirs, name) == {"unique": "r", "failed": "r"}
            assert rows(theirs, f"{name}_dlq") == before[f"{name}_dlq"]
            dead = call(theirs, f"{name}_dlq", "take", 0)
            assert call(theirs, f"{name}_dlq", "ack", dead[0])[2] == "dead"
            assert [call(theirs, name, "take", 0)[2] for _ in range(2)] == ["unique", "failed"]
            assert call(theirs, name, "ack", 0) == [0, "-", "unique"]
            call(theirs, name, "put", "new", {"utube": "new"})
    with tubes_of(home, OURS) as ours:
        assert {row[0] for row in rows(ours, "_queue_attempts")} == set(TUBES)  # those of "failed"
        assert {row[0] for row in rows(ours, "_queue_schedules")} == {f"yearly {name}" for name in TUBES}
        for name in TUBES:
            assert states(ours, f"{name}_dlq") == {}
            assert call(ours, name, "take", 0) is None
            assert ours.call("operator.resume", name).ok
            again = call(ours, name, "put", "unique", {"unique_key": "k", "unique_for": 3600})
            assert again == [0, "-", "unique"]
            failed = call(ours, name, "take", 0)
            assert failed[2] == "failed"
            assert call(ours, name, "release", failed[0])[1] == "-"
            assert states(ours, f"{name}_dlq") == {"failed": "r"}
