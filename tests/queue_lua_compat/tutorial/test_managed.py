"""The tutorial's queue for operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import BoxError, ManagedQueue, ManualClock, TaskInfo, TaskState
from queue_lua_compat.policies.options import TASK_OPTIONS
from tests.queue_lua_compat.conftest import Client, QueueServer, answered

NOW = 1_600_000_000.0
FIRST = 1_600_000_000_000_000_000

READY, TAKEN, DELAYED = TaskState.READY, TaskState.TAKEN, TaskState.DELAYED


@pytest.fixture
def managed(server: QueueServer) -> Callable[[], ManagedQueue]:
    """Return a function that returns the queue."""

    def find() -> ManagedQueue:
        [source] = server.application.queue_sources
        [queue] = source(server.box)
        return queue

    return find


@pytest.fixture
def queue(managed: Callable[[], ManagedQueue]) -> ManagedQueue:
    return managed()


def refused(function: Callable[..., object], *arguments: Any) -> str:
    """Return the text of an action's error."""
    with pytest.raises(BoxError) as raised:
        function(*arguments)
    return raised.value.message


class TestFigures:
    def test_it_has_the_name_of_its_space(self, queue: ManagedQueue) -> None:
        assert (queue.name, queue.dialect, queue.kind) == ("queue", "tutorial", "tutorial")
        assert queue.actions == {"put", "release", "delete", "move", "pause", "drain", "resume", "configure"}
        assert queue.options == {"delay", "ttr"} | TASK_OPTIONS

    def test_tasks_are_counted_by_state(self, queue: ManagedQueue, client: Client) -> None:
        assert queue.counts() == {READY: 0, TAKEN: 0, DELAYED: 0}
        for options in ({}, {}, {"delay": 5}):
            client.call("put", "x", options)
        client.call("take")
        assert queue.counts() == {READY: 1, TAKEN: 1, DELAYED: 1}

    def test_calls_are_counted_if_they_succeed(self, queue: ManagedQueue, client: Client) -> None:
        client.call("put_many", ["a", "b", "c"])
        tasks = client.call("take_many", 2)
        client.call("ack", tasks[0]["id"])
        client.call("release", tasks[1]["id"])
        assert client.call("take")["id"] == tasks[1]["id"]
        assert refused(client.call, "ack", 7)
        assert queue.calls() == {"put": 3, "take": 3, "ack": 1, "release": 1}

    def test_the_oldest_ready_task_counts_from_its_put(
        self, queue: ManagedQueue, client: Client, clock: ManualClock
    ) -> None:
        assert queue.oldest_ready() is None
        client.call("put", "a")
        clock.advance(5)
        client.call("put", "b")
        assert queue.oldest_ready() == 5.0
        client.call("take")
        assert queue.oldest_ready() == 0.0

    def test_one_that_became_ready_later_counts_from_then(
        self, queue: ManagedQueue, client: Client, clock: ManualClock
    ) -> None:
        client.call("put", "delayed", {"delay": 10})
        clock.advance(12)
        assert queue.oldest_ready() == pytest.approx(2.0)
        client.call("put", "fresh")
        task = client.call("take")
        assert task["data"] == "delayed"
        clock.advance(4)
        client.call("release", task["id"])
        clock.advance(1)
        assert queue.oldest_ready() == pytest.approx(5.0)

    def test_calls_that_wait_are_counted(self, queue: ManagedQueue, server: QueueServer) -> None:
        waiting = server.connect().call("take", 60)
        assert queue.consumers_waiting() == 1
        waiting.finish()
        assert queue.consumers_waiting() == 0

    def test_waits_and_services_are_measured(
        self, queue: ManagedQueue, client: Client, clock: ManualClock
    ) -> None:
        client.call("put", "x")
        clock.advance(2)
        task = client.call("take")
        clock.advance(3)
        client.call("release", task["id"])
        clock.advance(4)
        client.call("take")
        clock.advance(7)
        client.call("ack", task["id"])
        waits, services = queue.waits(), queue.services()
        assert waits is not None
        assert services is not None
        assert (waits.count, waits.sum) == (2, 6.0)
        assert (services.count, services.sum) == (1, 7.0)

    def test_an_id_that_is_no_time_has_no_age(
        self, queue: ManagedQueue, server: QueueServer, client: Client
    ) -> None:
        server.direct(lambda space: space.insert([5, "R", 0, "theirs"]))
        assert queue.oldest_ready() is None
        task = queue.task(5)
        assert task is not None
        assert task.created is None
        client.call("take")
        waits = queue.waits()
        assert waits is not None
        assert waits.count == 0

    def test_figures_survive_new_code(
        self, managed: Callable[[], ManagedQueue], server: QueueServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("put", "x")
        clock.advance(1)
        client.call("take")
        server.box.run(server.box.session.background, server.queue.setup, server.box)
        queue = managed()
        assert queue.calls()["take"] == 1
        waits = queue.waits()
        assert waits is not None
        assert waits.count == 1
        assert queue.tasks(TAKEN, limit=1)[0].taken_at == NOW + 1


class TestTasks:
    def test_a_task_shows_its_owner_and_since_when(
        self, queue: ManagedQueue, client: Client, clock: ManualClock
    ) -> None:
        client.call("put", {"to": "ann"})
        clock.advance(1)
        client.call("take")
        assert queue.tasks(None, limit=10) == [
            TaskInfo(
                FIRST,
                TAKEN,
                {"to": "ann"},
                created=NOW,
                session=client.session.id,
                taken_at=NOW + 1,
            )
        ]

    def test_a_delayed_one_shows_when_it_is_due(self, queue: ManagedQueue, client: Client) -> None:
        client.call("put", "x", {"delay": 5})
        [task] = queue.tasks(DELAYED, limit=10)
        assert (task.due, task.session) == (NOW + 5, None)

    def test_there_is_no_task_that_is_not_there(self, queue: ManagedQueue) -> None:
        assert queue.task(7) is None

    @pytest.mark.parametrize("task_id", ["x", "", "-7", "7" * 21, True, None, [1]])
    def test_an_id_is_a_number(self, queue: ManagedQueue, task_id: Any) -> None:
        assert refused(queue.task, task_id).startswith('ids of the queue "queue" are numbers')

    def test_but_it_may_be_a_text(self, queue: ManagedQueue, client: Client) -> None:
        client.call("put_many", ["a", "b"])
        task = queue.task(f"{FIRST}")
        assert task is not None
        assert task.data == "a"
        assert [found.data for found in queue.tasks(None, limit=9, after=f"{FIRST}")] == ["b"]
        client.call("take")
        assert queue.release(f"{FIRST}").id == FIRST
        assert queue.delete(f"{FIRST}").id == FIRST

    def test_pages_follow_each_other(self, queue: ManagedQueue, client: Client) -> None:
        for number in range(5):
            client.call("put", number)
        client.call("take")
        for state, expected in ((None, [0, 1, 2, 3, 4]), (READY, [1, 2, 3, 4]), (TAKEN, [0])):
            found: list[TaskInfo] = []
            while page := queue.tasks(state, limit=2, after=found[-1].id if found else None):
                assert len(page) <= 2
                found += page
            assert [task.data for task in found] == expected

    def test_a_page_begins_after_a_task_that_has_gone(self, queue: ManagedQueue, client: Client) -> None:
        for number in range(3):
            client.call("put", number)
        client.call("ack", client.call("take")["id"])
        assert [task.data for task in queue.tasks(READY, limit=9, after=FIRST)] == [1, 2]

    @pytest.mark.parametrize("state", [TaskState.BURIED, TaskState.DONE])
    def test_states_it_does_not_have_are_empty(
        self, queue: ManagedQueue, client: Client, state: TaskState
    ) -> None:
        client.call("put", "x")
        assert queue.tasks(state, limit=10) == []

    def test_old_tasks_only(self, queue: ManagedQueue, client: Client, clock: ManualClock) -> None:
        client.call("put", "old")
        clock.advance(10)
        client.call("put", "new")
        assert [task.data for task in queue.tasks(READY, limit=9, older=5)] == ["old"]
        client.call("take")
        assert queue.tasks(TAKEN, limit=9, older=5) == []  # taken a moment ago
        clock.advance(5)
        assert [task.data for task in queue.tasks(TAKEN, limit=9, older=5)] == ["old"]

    def test_too_many_are_not_looked_at(
        self, queue: ManagedQueue, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("queue_lua_compat.listed_tasks._LOOKED_AT_MAX", 3)
        for number in range(5):
            client.call("put", number)
        assert len(queue.tasks(READY, limit=9)) == 5
        assert "would have to be looked at" in refused(lambda: queue.tasks(READY, limit=9, older=5))

    def test_a_limit_below_one_finds_nothing(self, queue: ManagedQueue, client: Client) -> None:
        client.call("put", "x")
        assert queue.tasks(None, limit=0) == []

    def test_times_of_tasks_that_are_taken_no_longer_are_forgotten(
        self, client: Client, server: QueueServer
    ) -> None:
        held = client.call("put", "held")["id"]
        client.call("take")
        for number in range(1100):
            client.call("put", number)
            client.call("ack", client.call("take")["id"])
        kept: dict[str, Any] = server.box.keep("queue_lua_compat.tutorial", dict)
        assert [list(tasks) for tasks in kept["owned"].values()] == [[held]]


class TestRepairs:
    def test_a_taken_task_is_released_from_its_session(
        self, queue: ManagedQueue, server: QueueServer, client: Client
    ) -> None:
        client.call("put", "x")
        task = client.call("take")
        assert queue.release(task["id"]).state == READY
        assert "not taken by anybody" in refused(client.call, "ack", task["id"])
        assert server.connect().call("take")["id"] == task["id"]
        client.close()  # its end does not take the task from its new owner
        assert server.stats["taken"] == 1

    def test_a_release_serves_a_waiting_consumer(
        self, queue: ManagedQueue, server: QueueServer, client: Client
    ) -> None:
        client.call("put", "x")
        task = client.call("take")
        waiting = server.connect().call("take", 60)
        server.box.run(client.session, queue.release, task["id"])
        assert answered(waiting)["id"] == task["id"]

    def test_a_delayed_task_is_made_ready(
        self, queue: ManagedQueue, server: QueueServer, client: Client, clock: ManualClock
    ) -> None:
        task = client.call("put", "x", {"delay": 60})
        assert queue.release(task["id"]).due is None
        clock.advance(120)
        assert server.stats == {"total": 1, "ready": 1, "waiting": 0, "taken": 0}

    def test_a_ready_one_is_ready(self, queue: ManagedQueue, client: Client) -> None:
        task = client.call("put", "x")
        assert refused(queue.release, task["id"]).endswith('of the queue "queue" is ready')

    def test_a_task_of_any_session_is_deleted(
        self, queue: ManagedQueue, server: QueueServer, client: Client
    ) -> None:
        client.call("put", "x")
        task = client.call("take")
        assert queue.delete(task["id"]).state == TAKEN
        assert server.stats["total"] == 0
        assert "was not found" in refused(client.call, "ack", task["id"])

    @pytest.mark.parametrize("action", ["release", "delete"])
    def test_a_task_that_is_not_there(self, queue: ManagedQueue, action: str) -> None:
        assert refused(getattr(queue, action), 7) == 'there is no task 7 in the queue "queue"'

    def test_a_put_serves_a_waiting_consumer(
        self, queue: ManagedQueue, server: QueueServer, client: Client
    ) -> None:
        waiting = server.connect().call("take", 60)
        task = server.box.run(client.session, queue.put, "x", {})
        assert answered(waiting)["id"] == task.id

    def test_a_put_may_have_a_delay(self, queue: ManagedQueue) -> None:
        assert queue.put("x", {"delay": 5}).due == NOW + 5

    def test_other_options_are_refused(self, queue: ManagedQueue) -> None:
        assert refused(queue.put, "x", {"pri": 5}).startswith(
            "the queue \"queue\" has no option 'pri'; it has"
        )
        assert "delay must be a number" in refused(queue.put, "x", {"delay": "soon"})

    @pytest.mark.parametrize("action", ["bury", "kick"])
    def test_it_has_no(self, queue: ManagedQueue, action: str) -> None:
        assert refused(getattr(queue, action), 1) == (
            f'the queue "queue" has no {action}, only'
            " configure, delete, drain, move, pause, put, release, resume"
        )

    def test_a_task_is_not_moved_to_where_it_is(self, queue: ManagedQueue, client: Client) -> None:
        task = client.call("put", "x")
        assert "cannot be the target" in refused(queue.move, task["id"], queue)

    def test_repairs_are_undone_with_their_transaction(
        self, queue: ManagedQueue, server: QueueServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("put_many", ["taken", "too", "ready"])
        taken, other = (task["id"] for task in client.call("take_many", 2))
        clock.advance(5)

        def repair() -> None:
            queue.release(taken)
            queue.delete(other)
            queue.put("new", {})
            raise BoxError.procedure("undone")

        assert refused(server.box.run, client.session, repair) == "undone"
        assert server.stats == {"total": 3, "ready": 1, "waiting": 0, "taken": 2}
        assert [task.taken_at for task in queue.tasks(TAKEN, limit=9)] == [NOW, NOW]
        assert client.call("ack", taken)["id"] == taken
        assert client.call("ack", other)["id"] == other


def test_the_queue_is_there_after_a_restart(
    managed: Callable[[], ManagedQueue], server: QueueServer, client: Client, clock: ManualClock
) -> None:
    client.call("put_many", ["a", "b"])
    client.call("take")
    clock.advance(3)
    server.restart()
    queue = managed()
    assert queue.counts() == {READY: 2, TAKEN: 0, DELAYED: 0}
    assert queue.oldest_ready() == 3.0
    assert queue.delete(FIRST).data == "a"
