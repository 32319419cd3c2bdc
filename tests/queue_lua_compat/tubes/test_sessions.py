"""Sessions with several connections, and without any for a while, on our server and on the real module."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.tubes.talk import Talk
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered
from tests.queue_lua_compat.tubes.world import World


@pytest.fixture
def talk(world: World) -> Iterator[Talk]:
    yield Talk(world, world.create("fifo"))
    world.call("operator", "queue.cfg", {"ttr": 0})


def identify(world: World, who: str, uuid: bytes | None = None) -> bytes:
    """Return the UUID of a client's session."""
    (answer,) = world.call(who, "queue.identify", *([] if uuid is None else [uuid]))
    packed: bytes = answer.encode("utf-8", "surrogateescape")
    return packed


class TestIdentify:
    def test_a_connection_has_a_session_with_a_uuid(self, world: World) -> None:
        mine = identify(world, "ann")
        assert len(mine) == 16
        assert identify(world, "ann") == mine == identify(world, "ann", mine)
        assert identify(world, "bob") != mine

    def test_whoever_knows_the_uuid_joins_the_session(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        assert talk("bob", "ack", 0) == (32, "Task was not taken")
        identify(talk.world, "bob", identify(talk.world, "ann"))
        assert talk("bob", "ack", 0) == [[0, "-", "x"]]

    @pytest.mark.parametrize("uuid", ["", "x", b"fifteen bytes..", "seventeen bytes..", 5, [1], True])
    def test_a_uuid_has_16_bytes(self, world: World, uuid: Any) -> None:
        assert world.call("ann", "queue.identify", uuid) == (32, "Invalid UUID format.")

    def test_a_uuid_must_be_known(self, world: World) -> None:
        error = (32, "The UUID 03020100-0504-0706-0809-0a0b0c0d0e0f is unknown.")
        assert world.call("ann", "queue.identify", bytes(range(16))) == error

    def test_who_joins_another_session_gives_up_what_it_had(self, talk: Talk) -> None:
        talk("bob", "put", "x")
        talk("bob", "take")
        identify(talk.world, "bob", identify(talk.world, "ann"))
        assert talk("bob", "ack", 0) == (32, "Task was not taken")
        assert talk("cid", "take", 0) == [[0, "t", "x"]]


class TestDisconnect:
    def test_the_tasks_of_one_who_left_are_ready_again(self, talk: Talk) -> None:
        for data in "ab":
            talk("ann", "put", data)
            talk("ann", "take")
        talk.start("bob", "take", 10)
        talk.world.leave("ann")
        assert talk.world.finish("bob") == [[0, "t", "a"]]
        assert talk("bob", "take", 10) == [[1, "t", "b"]]
        assert talk.statistics()[1]["release"] == 2

    def test_a_session_lasts_as_long_as_one_of_its_connections(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        identify(talk.world, "bob", identify(talk.world, "ann"))
        talk.world.leave("ann")
        assert talk("cid", "take", 0.05) == []
        talk.start("cid", "take", 10)
        talk.world.leave("bob")
        assert talk.world.finish("cid") == [[0, "t", "x"]]

    def test_with_a_ttr_a_session_may_be_taken_up_again(self, talk: Talk) -> None:
        assert talk.world.call("operator", "queue.cfg", {"ttr": 1000}) == []
        talk("ann", "put", "x")
        talk("ann", "take")
        session = identify(talk.world, "ann")
        talk.world.leave("ann")
        assert talk("cid", "take", 0.05) == []
        assert identify(talk.world, "bob", session) == session
        assert talk("bob", "ack", 0) == [[0, "-", "x"]]


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "error"),
        [
            ({"x": 1}, "Unknown option x"),
            ({"ttr": "1"}, "Invalid value of ttr: 1"),
            ({"ttr": -1}, "Invalid value of ttr: -1"),
            ({"ttr": True}, "Invalid value of ttr: true"),
            ({"in_replicaset": 1}, "Invalid value of in_replicaset: 1"),
            ({"in_replicaset": "x"}, "Invalid value of in_replicaset: x"),
        ],
    )
    def test_what_there_is_not_is_refused(self, world: World, settings: object, error: str) -> None:
        assert world.call("ann", "queue.cfg", settings) == (32, error)

    @pytest.mark.parametrize("settings", [(), ({},), ({"ttr": 0.5},), ({"in_replicaset": False},)])
    def test_nothing_is_answered(self, talk: Talk, settings: tuple[object, ...]) -> None:
        assert talk.world.call("ann", "queue.cfg", *settings) == []


@pytest.fixture
def waiting_server(server: TubesServer, client: Client) -> TubesServer:
    """Create a tube with a task; sessions wait 10 seconds for their connections to return."""
    client.call("queue.cfg", {"ttr": 10})
    client.call("queue.create_tube", "jobs", "fifo")
    client.call("queue.tube.jobs:put", "x")
    return server


class TestTimeToRelease:
    def test_a_session_ends_with_its_tasks(self, waiting_server: TubesServer, clock: ManualClock) -> None:
        ann, bob = waiting_server.connect(), waiting_server.connect()
        ann.call("queue.tube.jobs:take")
        session = ann.call("queue.identify")
        ann.close()
        waiting = bob.call("queue.tube.jobs:take", 100)
        clock.advance(9.9)
        assert not waiting.is_done
        clock.advance(0.2)
        assert answered(waiting) == [0, "t", "x"]
        assert "is unknown" in bob.refused("queue.identify", session)
        assert len(waiting_server.rows("_queue_shared_sessions")) == 1

    def test_a_session_that_is_taken_up_again_does_not_end(
        self, waiting_server: TubesServer, clock: ManualClock
    ) -> None:
        ann = waiting_server.connect()
        ann.call("queue.tube.jobs:take")
        session = ann.call("queue.identify")
        ann.close()
        clock.advance(9)
        again = waiting_server.connect()
        again.call("queue.identify", session)
        clock.advance(100)
        assert again.call("queue.tube.jobs:ack", 0) == [0, "-", "x"]

    def test_each_leaving_begins_the_time_anew(self, waiting_server: TubesServer, clock: ManualClock) -> None:
        ann = waiting_server.connect()
        session = ann.call("queue.identify")
        ann.call("queue.tube.jobs:take")
        ann.close()
        for _ in range(3):
            clock.advance(6)
            again = waiting_server.connect()
            assert again.call("queue.identify", session) == session
            again.close()
        clock.advance(9)
        assert waiting_server.states("jobs") == {"x": "t"}
        clock.advance(2)
        assert waiting_server.states("jobs") == {"x": "r"}

    def test_there_is_one_timer_for_all_sessions(
        self, waiting_server: TubesServer, clock: ManualClock
    ) -> None:
        before = clock.pending
        for _ in range(20):
            client = waiting_server.connect()
            client.call("queue.identify")
            client.close()
        assert clock.pending == before + 1
        clock.advance(11)
        assert clock.pending == before
        assert waiting_server.rows("_queue_session_ids") == []

    def test_the_end_of_a_session_with_many_tasks_is_one_line(
        self, server: TubesServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        consumer, other = server.connect(), server.connect()
        consumer.call("queue.create_tube", "jobs", "fifo")
        for number in range(50):
            consumer.call("queue.tube.jobs:put", number)
            consumer.call("queue.tube.jobs:take", 0)
        consumer.close()
        assert other.call("queue.statistics", "jobs")["tasks"]["ready"] == 50
        messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert messages == ['a session is closed: releasing tasks of tube "jobs": 50']

    def test_a_closed_connection_without_a_session_leaves_nothing(self, server: TubesServer) -> None:
        server.connect().close()
        assert server.rows("_queue_session_ids") == server.rows("_queue_shared_sessions") == []
