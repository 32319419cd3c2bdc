"""Rollbacks lose no task and never deliver one to two owners."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iproto_server import BoxError, ManualClock, Tuple
from tests.conftest import StartServer
from tests.iproto_client import (
    BEGIN,
    CALL,
    COMMIT,
    FUNCTION_NAME,
    ROLLBACK,
    STREAM_ID,
    TUPLE,
    Answer,
    IprotoClient,
)
from tests.queue_lua_compat.tubes.conftest import TUBES_APPLICATION
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered


@pytest.fixture(params=["fifo", "fifottl", "limfifottl"], autouse=True)
def tube(request: pytest.FixtureRequest, client: Client) -> None:
    """Create a tube of each type."""
    client.call("queue.create_tube", "jobs", request.param)


def calls(client: Client) -> dict[str, int]:
    """Return the counters of calls."""
    counted: dict[str, int] = client.call("queue.statistics", "jobs")["calls"]
    return {name: times for name, times in counted.items() if times}


class TestALogThatCannotBeWritten:
    def test_a_put_is_undone(self, server: TubesServer, client: Client) -> None:
        server.journal.is_slow = True
        client.call("queue.tube.jobs:put", "x")
        server.lose_log()
        assert server.rows("jobs") == []
        assert calls(client) == {}
        assert client.call("queue.tube.jobs:put", "y") == [0, "r", "y"]

    def test_a_take_is_undone_and_the_next_in_the_line_gets_the_task(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.tube.jobs:put", "x")
        server.journal.is_slow = True
        client.call("queue.tube.jobs:take")
        other = server.connect()
        waiting = other.call("queue.tube.jobs:take", 60)
        other_again = server.connect()
        server.lose_log()
        clock.advance(0)
        # The wait began after the lost changes, and is undone with them.
        assert answered(waiting) is None
        assert client.refused("queue.tube.jobs:ack", 0) == "Task was not taken"
        assert other_again.call("queue.tube.jobs:take") == [0, "t", "x"]

    def test_one_who_waited_before_gets_the_task_of_a_take_that_is_undone(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        other = server.connect()
        client.call("queue.tube.jobs:put", "a")
        client.call("queue.tube.jobs:take")
        waiting = other.call("queue.tube.jobs:take", 60)
        server.journal.is_slow = True
        client.call("queue.tube.jobs:delete", 0)
        server.lose_log()
        clock.advance(0)
        assert not waiting.is_done
        assert client.call("queue.tube.jobs:release", 0) == [0, "r", "a"]
        assert answered(waiting) == [0, "t", "a"]

    def test_an_ack_is_undone_and_the_task_is_still_its_owners(
        self, server: TubesServer, client: Client
    ) -> None:
        client.call("queue.tube.jobs:put", "x")
        client.call("queue.tube.jobs:take")
        server.journal.is_slow = True
        client.call("queue.tube.jobs:ack", 0)
        server.lose_log()
        assert calls(client) == {"put": 1, "take": 1}
        assert client.call("queue.tube.jobs:ack", 0) == [0, "-", "x"]

    def test_the_task_of_an_undone_ack_is_released_when_its_owner_has_gone_meanwhile(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        other = server.connect()
        client.call("queue.tube.jobs:put", "x")
        other.call("queue.tube.jobs:take")
        server.journal.is_slow = True
        other.call("queue.tube.jobs:ack", 0)
        other.close()
        server.lose_log()
        clock.advance(1)
        assert server.states("jobs") == {"x": "r"}
        assert server.rows("_queue_taken_2") == server.rows("_queue_session_ids") == []

    def test_a_tube_that_was_created_is_gone(self, server: TubesServer, client: Client) -> None:
        server.journal.is_slow = True
        client.call("queue.create_tube", "new", "fifottl")
        client.call("queue.tube.new:put", "x")
        server.lose_log()
        assert client.call("queue.tube", "new") is False
        assert server.procedures.find("queue.tube.new:put") is None
        assert "queue.tube.new:put" not in server.procedures.by_name
        assert client.call("queue.create_tube", "new", "fifo")["tube_id"] == 1

    def test_a_tube_that_was_dropped_is_back(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.tube.jobs:put", "x")
        server.journal.is_slow = True
        client.call("queue.tube.jobs:drop")
        client.call("queue.create_tube", "jobs", "fifo")
        server.lose_log()
        clock.advance(0)
        assert calls(client) == {"put": 1}
        assert client.call("queue.tube.jobs:take") == [0, "t", "x"]
        waiting = client.call("queue.tube.jobs:take")
        client.call("queue.tube.jobs:put", "y")
        assert answered(waiting) == [1, "t", "y"]

    def test_a_truncation_is_undone(self, server: TubesServer, client: Client) -> None:
        client.call("queue.tube.jobs:put", "x")
        server.journal.is_slow = True
        client.call("queue.tube.jobs:truncate")
        server.lose_log()
        assert client.call("queue.tube.jobs:take") == [0, "t", "x"]

    def test_settings_are_what_they_were(self, server: TubesServer, client: Client) -> None:
        client.call("queue.tube.jobs:put", "x")
        server.journal.is_slow = True
        client.call("queue.cfg", {"ttr": 10, "in_replicaset": True})
        server.lose_log()
        client.call("queue.tube.jobs:take")
        client.close()
        assert server.states("jobs") == {"x": "r"}
        assert server.box.space["_queue_taken_2"].temporary

    def test_what_was_due_is_due_again(self, server: TubesServer, client: Client, clock: ManualClock) -> None:
        client.call("queue.create_tube", "timed", "fifottl")
        client.call("queue.tube.timed:put", "x", {"delay": 5})
        server.journal.is_slow = True
        clock.advance(5)
        assert server.states("timed") == {"x": "r"}
        server.lose_log()
        assert server.states("timed") == {"x": "~"}
        clock.advance(1)
        assert server.states("timed") == {"x": "r"}

    def test_a_session_that_ended_ends_again(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.cfg", {"ttr": 10})
        client.call("queue.tube.jobs:put", "x")
        client.call("queue.tube.jobs:take")
        client.close()
        server.journal.is_slow = True
        clock.advance(10)
        assert server.states("jobs") == {"x": "r"}
        server.lose_log()
        assert server.states("jobs") == {"x": "t"}
        clock.advance(1)
        assert server.states("jobs") == {"x": "r"}


class Saboteur:
    """A trigger that fails while it is enabled."""

    def __init__(self, server: TubesServer) -> None:
        self.is_active = False
        server.box.space["jobs"].on_replace(self._sabotage)

    def _sabotage(self, old: Tuple | None, new: Tuple | None) -> None:
        if self.is_active:
            raise BoxError.procedure("sabotage")


@pytest.fixture
def saboteur(server: TubesServer) -> Saboteur:
    return Saboteur(server)


class TestCodeThatFails:
    @pytest.mark.parametrize("method", ["ack", "release", "bury", "delete"])
    def test_a_call_that_fails_changes_nothing(
        self, server: TubesServer, client: Client, saboteur: Saboteur, method: str
    ) -> None:
        client.call("queue.tube.jobs:put", "x")
        client.call("queue.tube.jobs:take")
        saboteur.is_active = True
        assert client.refused(f"queue.tube.jobs:{method}", 0) == "sabotage"
        saboteur.is_active = False
        assert calls(client) == {"put": 1, "take": 1}
        assert client.call("queue.tube.jobs:ack", 0) == [0, "-", "x"]

    def test_the_tasks_of_a_closed_connection_are_released_as_soon_as_that_works(
        self, server: TubesServer, client: Client, clock: ManualClock, saboteur: Saboteur
    ) -> None:
        client.call("queue.tube.jobs:put", "x")
        client.call("queue.tube.jobs:take")
        saboteur.is_active = True
        client.close()
        clock.advance(1)
        assert server.states("jobs") == {"x": "t"}
        saboteur.is_active = False
        clock.advance(2)
        assert server.states("jobs") == {"x": "r"}

    def test_one_who_cannot_take_leaves_the_task_to_the_next(self, server: TubesServer) -> None:
        first, second, other = server.connect(), server.connect(), server.connect()
        waiting = [first.call("queue.tube.jobs:take"), second.call("queue.tube.jobs:take")]
        first.session.become(server.box.access.by_name("guest"))
        other.call("queue.tube.jobs:put", "x")
        with pytest.raises(BoxError, match="access to space 'jobs' is denied for user 'guest'"):
            answered(waiting[0])
        assert answered(waiting[1]) == [0, "t", "x"]

    def test_who_has_gone_takes_nothing(self, server: TubesServer, client: Client) -> None:
        """An async procedure that calls the queue's functions may outlive its client."""
        client.call("queue.tube.jobs:put", "x")
        client.close()
        assert client.call("queue.tube.jobs:take") is None
        assert server.states("jobs") == {"x": "r"}

    def test_a_connection_that_closes_after_a_truncation_leaves_nothing(
        self, server: TubesServer, client: Client
    ) -> None:
        client.call("queue.tube.jobs:put", "x")
        client.call("queue.tube.jobs:take")
        client.call("queue.tube.jobs:truncate")
        client.close()
        assert server.rows("_queue_taken_2") == server.rows("_queue_session_ids") == []
        assert server.connect().call("queue.tube.jobs:drop") is True

    def test_a_part_that_is_undone_leaves_the_task_to_others(
        self, server: TubesServer, client: Client
    ) -> None:
        """A procedure of another application takes a task, raises, and catches the exception."""
        client.call("queue.tube.jobs:put", "x")
        box, jobs = server.box, server.tube("jobs")

        def take_and_fail() -> None:
            jobs.take()
            raise ZeroDivisionError

        def procedure() -> None:
            with pytest.raises(ZeroDivisionError):
                box.atomic(take_and_fail)

        box.run(client.session, procedure)
        assert server.connect().call("queue.tube.jobs:take") == [0, "t", "x"]


class TestStreams:
    """Transactions of several requests in a stream."""

    @pytest.fixture
    def talkers(self, start_server: StartServer) -> Iterator[tuple[IprotoClient, IprotoClient]]:
        """Connect two clients of a server."""
        server = start_server([TUBES_APPLICATION])
        with IprotoClient.at(server.address) as ann, IprotoClient.at(server.address) as bob:
            ann.call("queue.create_tube", "jobs", "fifottl")
            yield ann, bob

    def test_a_task_of_a_stream_is_taken_when_it_is_committed(
        self, talkers: tuple[IprotoClient, IprotoClient]
    ) -> None:
        ann, bob = talkers
        in_stream(ann, BEGIN)
        put = in_stream(ann, CALL, {FUNCTION_NAME: "queue.tube.jobs:put", TUPLE: ["x", {"delay": 0.05}]})
        assert put.data == [[0, "~", "x"]]
        bob.send(CALL, {FUNCTION_NAME: "queue.tube.jobs:take", TUPLE: [30]})
        assert ann.call("queue.statistics", "jobs").data[0]["tasks"]["total"] == 0
        in_stream(ann, COMMIT)
        assert bob.receive().data == [[0, "t", "x"]]

    def test_a_task_that_a_stream_has_taken_is_ready_when_that_is_undone(
        self, talkers: tuple[IprotoClient, IprotoClient]
    ) -> None:
        ann, bob = talkers
        ann.call("queue.tube.jobs:put", "x")
        in_stream(ann, BEGIN)
        assert in_stream(ann, CALL, {FUNCTION_NAME: "queue.tube.jobs:take", TUPLE: [0]}).data == [
            [0, "t", "x"]
        ]
        in_stream(ann, ROLLBACK)
        assert bob.call("queue.tube.jobs:take", 0).data == [[0, "t", "x"]]
        assert bob.call("queue.statistics", "jobs").data[0]["calls"]["take"] == 1

    def test_in_a_stream_nobody_waits(self, talkers: tuple[IprotoClient, IprotoClient]) -> None:
        ann, _ = talkers
        in_stream(ann, BEGIN)
        refused = in_stream(ann, CALL, {FUNCTION_NAME: "queue.tube.jobs:take", TUPLE: [5]})
        assert refused.error == "An interactive transaction does not support calls that wait"
        in_stream(ann, COMMIT)
        assert ann.call("queue.tube.jobs:drop").data == [True]


def in_stream(client: IprotoClient, request_type: int, body: dict[int, object] | None = None) -> Answer:
    """Send a request in a client's first stream."""
    return client.request(request_type, body or {}, {STREAM_ID: 1})
