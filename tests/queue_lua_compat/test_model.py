"""Random sequences of calls of several clients to the tutorial's queue, compared with a model.

Clients act at multiples of half a second, and the durations are chosen so that nothing becomes due at the
same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from iproto_server import BoxError, ManualClock, Waiter
from tests.plugins.profiles import examples
from tests.queue_lua_compat.conftest import QueueServer
from tests.queue_lua_compat.model import Model, ModelTask, Refused, Waiting

clients = st.integers(0, 2)
delays = st.sampled_from([None, None, None, 1.137, "9.137"])
waits = st.sampled_from([0, 0.3117, 4.3117])
choices = st.integers(0, 1000)


class TutorialQueueMachine(RuleBasedStateMachine):
    """The queue and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.server = QueueServer(self.clock)
        self.clients = [self.server.connect() for _ in range(3)]
        self.model = Model(self.clock.time_ns())
        self.waiting: list[tuple[Waiter, Waiting]] = []
        self.number = 0

    @initialize()
    def begin(self) -> None:
        """Start with some tasks."""
        self.put_many(0, 8, None)
        for by, count in enumerate((3, 2)):
            self.take_many(by, count, 0)

    # -- what clients do --

    @rule(by=clients, delay=delays)
    def put(self, by: int, delay: Any) -> None:
        data = self._data()
        task = self.clients[by].call("put", data, {"delay": delay})
        expected = self.model.put(data, None if delay is None else float(delay))
        assert (task["id"], task["data"], task["status"]) == (expected.id, data, expected.status)
        self.model.serve()

    @rule(by=clients, count=st.integers(0, 4), delay=delays)
    def put_many(self, by: int, count: int, delay: Any) -> None:
        data = [self._data() for _ in range(count)]
        tasks = self.clients[by].call("put_many", data, {"delay": delay})
        expected = [self.model.put(each, None if delay is None else float(delay)) for each in data]
        assert [task["id"] for task in tasks] == [task.id for task in expected]
        self.model.serve()

    @rule(by=clients, seconds=waits)
    def take(self, by: int, seconds: float) -> None:
        answer = self.clients[by].call("take", seconds)
        self._taken(by, None, seconds, [answer] if isinstance(answer, Mapping) else answer)

    @rule(by=clients, n=st.integers(1, 4), seconds=waits)
    def take_many(self, by: int, n: int, seconds: float) -> None:
        self._taken(by, n, seconds, self.clients[by].call("take_many", n, seconds))

    def _taken(self, by: int, count: int | None, seconds: float, answer: Any) -> None:
        expected = self.model.take(self.clients[by], count or 1)
        if expected:
            assert [task["id"] for task in answer] == [task.id for task in expected]
        elif seconds:
            assert isinstance(answer, Waiter)
            self.waiting.append((answer, self.model.wait(self.clients[by], count, seconds)))
        else:
            assert answer is None

    @rule(by=clients, choice=choices)
    def ack(self, by: int, choice: int) -> None:
        task_id = self._any(choice, by)
        self._same(lambda: self._acknowledge(by, [task_id]), by, "ack", task_id)

    @rule(by=clients, some=st.lists(choices, max_size=3))
    def ack_many(self, by: int, some: list[int]) -> None:
        ids = [self._any(choice, by) for choice in some]
        self._same(lambda: self._acknowledge(by, ids), by, "ack_many", ids)

    def _acknowledge(self, by: int, ids: list[int]) -> None:
        tasks: list[ModelTask] = []
        for task_id in ids:
            task = self.model.own(self.clients[by], task_id)
            if task in tasks:
                raise Refused("was not found")
            tasks.append(task)
        for task in tasks:
            del self.model.tasks[task.id]

    @rule(by=clients, choice=choices, delay=delays)
    def release(self, by: int, choice: int, delay: Any) -> None:
        task_id = self._any(choice, by)

        def release() -> None:
            task = self.model.own(self.clients[by], task_id)
            self.model.back(task, None if delay is None else float(delay))

        self._same(release, by, "release", task_id, {"delay": delay})

    # -- what happens to them --

    @rule(seconds=st.sampled_from([0.5, 1, 3.5]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.model.advance(seconds)

    @rule(by=clients)
    def disconnect(self, by: int) -> None:
        self.clients[by].close()
        self.model.close(self.clients[by])
        self.clients[by] = self.server.connect()

    @rule(really=st.sampled_from([False] * 5 + [True]))
    def restart(self, really: bool) -> None:
        if not really:
            return
        for client in self.clients:
            client.session.cancel_waits()
        for waiting in list(self.model.line):
            self.model.finish(waiting)
        self.server.queue.replaced(self.server.box)
        self.server.restart()
        for client in self.clients:
            self.model.close(client)
        self.clients = [self.server.connect() for _ in range(3)]
        self.time_passes(0.5)

    # -- what has to be the same --

    @invariant()
    def answers_are_those_that_were_promised(self) -> None:
        for waiter, waiting in self.waiting:
            assert waiter.is_done == waiting.is_done
            if waiting.is_done:
                answer: Any = waiter.result
                found = [answer] if isinstance(answer, Mapping) else answer or []
                assert [task["id"] for task in found] == [task.id for task in waiting.result]
        self.waiting = [pair for pair in self.waiting if not pair[1].is_done]

    @invariant()
    def no_task_is_lost_or_in_two_hands(self) -> None:
        rows = list(self.server.box.space["queue"].pairs())
        assert {row[0]: (row[1], row[3]) for row in rows} == {
            task.id: (task.status, task.data) for task in self.model.tasks.values()
        }
        sessions = {client: client.session.id for client in self.clients}
        owners = {task.id: sessions[task.owner] for task in self.model.tasks.values() if task.status == "T"}  # type: ignore[index]  # an owner is a client
        assert self.server.queue._owners.sessions == owners
        assert self.server.stats["total"] == len(rows)

    # -- helpers --

    def _same(self, expected: Callable[[], None], by: int, name: str, *arguments: object) -> None:
        """Apply the same operation to the model and the queue."""
        refused = None
        try:
            expected()
        except Refused as error:
            refused = str(error)
        found = None
        try:
            self.clients[by].call(name, *arguments)
        except BoxError as error:
            found = error.message
        assert (found is None) == (refused is None)
        if refused is not None:
            assert found is not None
            assert refused in found
        self.model.serve()

    def _any(self, choice: int, by: int) -> int:
        """Choose the id of a task, mostly of one that this client has taken."""
        tasks = list(self.model.tasks.values())
        mine = [task for task in tasks if task.owner is self.clients[by]]
        some = (mine, mine, mine, tasks, mine, mine, mine, [])[choice % 8]
        return some[choice // 8 % len(some)].id if some else 1

    def _data(self) -> str:
        self.number += 1
        return f"data {self.number}"


TestTutorialQueue = TutorialQueueMachine.TestCase
TestTutorialQueue.settings = examples(60, stateful_step_count=40)
