"""Tasks that end with their consumers' connections: pauses, counts, and the names of poison tasks."""

from __future__ import annotations

import logging

import pytest

from iproto_server import BoxError, ManualClock, TaskState
from iproto_server.managed_queue import suspicious_tasks
from queue_lua_compat.policies import ended_connections
from queue_lua_compat.policies.ended_connections import SUSPICIOUS, EndedConnections
from tests.queue_lua_compat.policies.worlds import DELAYING, KINDS, World

READY, TAKEN, DELAYED = TaskState.READY, TaskState.TAKEN, TaskState.DELAYED
PAUSES = {"delay": 3, "factor": 2, "jitter": 0}


def suspicious(world: World) -> dict[int | str, int]:
    """Return the tasks of the queue that are named."""
    return dict(suspicious_tasks(world.queue()))


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, clock: ManualClock) -> World:
    return World(request.param, clock)


@pytest.fixture(params=DELAYING)
def delaying(request: pytest.FixtureRequest, clock: ManualClock) -> World:
    return World(request.param, clock, {"disconnect_retry": PAUSES})


class TestPauses:
    def test_they_grow_with_each_lost_connection(self, delaying: World, clock: ManualClock) -> None:
        delaying.put(delaying.connect(), "x")
        for pause in (3, 6, 12):
            delaying.fail("disconnects")
            assert delaying.tasks() == {"x": DELAYED}
            clock.advance(pause - 0.01)
            assert delaying.tasks() == {"x": DELAYED}
            clock.advance(0.01)
            assert delaying.tasks() == {"x": READY}

    @pytest.mark.parametrize("how", ["releases", "timeouts"])
    def test_other_failures_have_none(self, delaying: World, how: str) -> None:
        delaying.put(delaying.connect(), "x")
        delaying.fail(how)
        assert delaying.tasks() == {"x": READY}
        assert "disconnects" not in delaying.task().details

    def test_they_come_before_those_of_retry(self, delaying: World, clock: ManualClock) -> None:
        delaying.configure(retry={"delay": 100, "jitter": 0})
        delaying.put(delaying.connect(), "x")
        delaying.fail("disconnects")
        clock.advance(3)
        assert delaying.tasks() == {"x": READY}

    def test_they_are_off_by_default(self, world: World) -> None:
        world.put(world.connect(), "x")
        world.fail("disconnects")
        assert world.tasks() == {"x": READY}

    def test_a_put_has_its_own(self, clock: ManualClock, delaying: World) -> None:
        delaying.put(delaying.connect(), "x", disconnect_retry={"delay": 50, "jitter": 0})
        delaying.fail("disconnects")
        clock.advance(49)
        assert delaying.tasks() == {"x": DELAYED}
        clock.advance(1)
        assert delaying.tasks() == {"x": READY}

    def test_they_survive_a_restart(self, delaying: World, clock: ManualClock) -> None:
        delaying.put(delaying.connect(), "x")
        delaying.fail("disconnects")
        clock.advance(3)
        delaying.server.restart()
        delaying.fail("disconnects")
        clock.advance(5)
        assert delaying.tasks() == {"x": DELAYED}

    @pytest.mark.parametrize("kind", ["fifo", "utube"])
    def test_types_without_delays_refuse_them(self, clock: ManualClock, kind: str) -> None:
        world = World(kind, clock)
        with pytest.raises(BoxError, match="have no delays, so there is no disconnect_retry"):
            world.configure(disconnect_retry={})
        with pytest.raises(BoxError, match="have no delays"):
            world.put(world.connect(), "x", disconnect_retry={})

    @pytest.mark.parametrize(
        ("wrong", "error"),
        [
            (5, "disconnect_retry must be a map, or false for none, not 5"),
            ({"dealy": 5}, 'disconnect_retry has no option "dealy", did you mean "delay"[?] it has delay'),
            ({"delay": -1}, "disconnect_retry.delay must be a number from 0"),
        ],
    )
    def test_wrong_ones_are_refused(self, delaying: World, wrong: object, error: str) -> None:
        with pytest.raises(BoxError, match=error):
            delaying.configure(disconnect_retry=wrong)


class TestNames:
    def test_a_task_that_ends_five_connections_is_named(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        task_id = world.put(world.connect(), "poison")
        for _ in range(SUSPICIOUS - 1):
            world.fail("disconnects")
        assert suspicious(world) == {}
        assert "has ended" not in caplog.text
        world.fail("disconnects")
        assert suspicious(world) == {task_id: SUSPICIOUS}
        assert world.task().details["ended_connections"] == SUSPICIOUS
        assert f"the task {task_id} of the queue {world.name} has ended 5 connections" in caplog.text

    def test_nothing_is_stored_for_it(self, clock: ManualClock) -> None:
        world = World("legacy", clock)
        world.put(world.connect(), "poison")
        world.fail("disconnects")
        assert "_queue_attempts" not in world.box.space

    @pytest.mark.parametrize("end", ["ack", "delete"])
    def test_a_task_that_is_gone_is_forgotten(self, world: World, end: str) -> None:
        client = world.connect()
        task_id = world.put(client, "x")
        for _ in range(SUSPICIOUS):
            world.fail("disconnects")
        if end == "ack":
            world.ack(client, world.take(client))
        else:
            world.operator(world.queue().delete, task_id)
        assert suspicious(world) == {}
        assert not world.queue().policy.has_rows  # type: ignore[attr-defined]  # tasks that go cost nothing again

    def test_an_undone_release_does_not_count(self, world: World) -> None:
        task_id = world.put(world.connect(), "x")
        for _ in range(SUSPICIOUS - 1):
            world.fail("disconnects")
        client = world.connect()
        assert world.take(client) == task_id
        with world.undone():
            client.close()
        world.clock.advance(60)
        assert suspicious(world) == {task_id: SUSPICIOUS}

    def test_other_failures_do_not_count(self, world: World) -> None:
        world.put(world.connect(), "x")
        for _ in range(2 * SUSPICIOUS):
            world.fail("releases")
        assert suspicious(world) == {}

    def test_a_stop_of_the_server_is_no_end_of_a_connection(self, world: World) -> None:
        client = world.connect()
        world.put(client, "x")
        world.take(client)
        world.box.is_stopping = True
        client.close()
        assert "ended_connections" not in world.task().details


def end_connection(ended: EndedConnections, task_id: object) -> None:
    """Count one more connection that a task has ended."""
    ended.set(task_id, ended[task_id] + 1)


class TestMemory:
    def test_the_number_of_known_tasks_is_limited(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ended_connections, "_KNOWN_MAX", 10)
        ended = EndedConnections(World("tutorial", clock).box, "jobs")
        end_connection(ended, "poison")
        for _ in range(SUSPICIOUS - 1):
            end_connection(ended, "poison")
            for task_id in range(100):  # of a consumer that had taken many
                end_connection(ended, task_id)
        assert ended.suspicious() == {"poison": SUSPICIOUS}
        assert sum(task_id in ended for task_id in range(100)) == 10
        for task_id in range(100):
            for _ in range(SUSPICIOUS):
                end_connection(ended, task_id)
        assert len(ended.suspicious()) == 10

    def test_counts_survive_new_code_and_a_new_name(self, clock: ManualClock) -> None:
        box = World("tutorial", clock).box
        before = EndedConnections(box, "jobs")
        end_connection(before, "poison")
        before.rename("mails")
        assert EndedConnections(box, "mails")["poison"] == 1
        assert not EndedConnections(box, "jobs")
        before.set("poison", 0)
        assert not EndedConnections(box, "mails")
