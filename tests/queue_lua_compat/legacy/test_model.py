"""Random sequences of calls of several clients to the legacy queue, compared with a model.

No task is lost or has two owners, and each tube keeps its order, whatever clients do, and however
connections, the server and the clock behave.

Clients act at multiples of half a second, and the durations are chosen so that nothing becomes due at the
same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from iproto_server import BoxError, ManualClock, Waiter
from tests.plugins.profiles import examples
from tests.queue_lua_compat.conftest import Client
from tests.queue_lua_compat.legacy.conftest import LegacyServer
from tests.queue_lua_compat.legacy.model import Model, Refused, Waiting

clients = st.integers(0, 2)
tubes = st.sampled_from(["a", "b"])
delays = st.sampled_from([0, 0, 1.137, "9.137"])
lives = st.sampled_from([0, 3.2291, 6.2291])
times_to_run = st.sampled_from([0, 1.0713, "2.0713"])
priorities = st.sampled_from([0, 0, -1, "1"])
waits = st.sampled_from([0, 0.3117, 4.3117])
choices = st.integers(0, 1000)
STATUSES = {"r": "ready", "d": "delayed", "t": "taken", "b": "buried", "*": "done"}


class LegacyQueueMachine(RuleBasedStateMachine):
    """The queue and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.server = LegacyServer(self.clock)
        self.clients = [self.server.connect() for _ in range(3)]
        self.model = Model(self.clock.time_ns() // 1000)
        self.waiting: list[tuple[Waiter, Waiting]] = []
        self.gone = "0" * 32
        self.number = 0

    @initialize()
    def begin(self) -> None:
        """Start with some tasks of each kind."""
        for by, tube in enumerate("ab"):
            self._put_many(by, tube, 0, 0, 0, 4)
            self._put_many(by, tube, 0, 3.2291, 0, 2)
            self.take_many(by, tube, 5, 0)
        self.take_many(2, "a", 2, 0)
        self.change(2, 0, "bury")

    # -- what clients do --

    @rule(
        by=clients,
        name=st.sampled_from(["put", "put", "urgent"]),
        tube=tubes,
        delay=delays,
        ttl=lives,
        ttr=times_to_run,
        pri=priorities,
    )
    def put(self, by: int, name: str, tube: str, delay: Any, ttl: Any, ttr: Any, pri: Any) -> None:
        data = self._data()
        task = self.clients[by].call(name, 0, tube, delay, ttl, ttr, pri, data)
        assert task[1:] == [tube, "delayed" if delay else "ready", data]
        put = self.model.put_urgent if name == "urgent" else self.model.put
        put(task[0], tube, float(delay), float(ttl), float(ttr), int(pri), data)
        self.model.serve()

    @rule(by=clients, tube=tubes, delay=delays, ttl=lives, ttr=times_to_run, count=st.integers(0, 4))
    def put_many(self, by: int, tube: str, delay: Any, ttl: Any, ttr: Any, count: int) -> None:
        self._put_many(by, tube, delay, ttl, ttr, count)

    def _put_many(self, by: int, tube: str, delay: Any, ttl: Any, ttr: Any, count: int) -> None:
        data = [self._data() for _ in range(count)]
        tasks = self.clients[by].call("put_many", 0, tube, delay, ttl, ttr, 0, data)
        for task, each in zip(tasks, data, strict=True):
            self.model.put(task[0], tube, float(delay), float(ttl), float(ttr), 0, each)
        self.model.serve()

    @rule(by=clients, tube=tubes, delay=st.sampled_from([0, 1.137]), choice=choices)
    def put_unique(self, by: int, tube: str, delay: float, choice: int) -> None:
        task_id = self._any(choice, by)
        known = self.model.tasks[task_id].data if task_id in self.model.tasks else []
        data = known[0] if known else self._data()
        same = [
            each
            for each in self.model.of(tube, "delayed" if delay else "ready")
            if each.data and each.data[0] == data
        ]
        task = self.clients[by].call("put_unique", 0, tube, delay, 0, 0, 0, data)
        if same:
            assert task in [each.answer() for each in same]
        else:
            self.model.put(task[0], tube, delay, 0, 0, 0, data)
            self.model.serve()

    @rule(by=clients, tube=tubes, seconds=waits)
    def take(self, by: int, tube: str, seconds: float) -> None:
        answer = self.clients[by].call("take", 0, tube, str(seconds))
        self._taken(by, tube, 1, seconds, [answer] if isinstance(answer, list) else answer)

    @rule(by=clients, tube=tubes, n=st.integers(1, 4), seconds=waits)
    def take_many(self, by: int, tube: str, n: int, seconds: float) -> None:
        self._taken(by, tube, n, seconds, self.clients[by].call("take_many", 0, tube, n, seconds))

    def _taken(self, by: int, tube: str, count: int, seconds: float, answer: Any) -> None:
        expected = self.model.take(self.clients[by], tube, count)
        if expected:
            assert answer == [task.answer() for task in expected]
        elif seconds:
            assert isinstance(answer, Waiter)
            self.waiting.append((answer, self.model.wait(self.clients[by], tube, count, seconds)))
        else:
            assert answer is None

    @rule(by=clients, choice=choices)
    def ack(self, by: int, choice: int) -> None:
        task_id = self._any(choice, by)

        def ack() -> object:
            answer = self.model.own(self.clients[by], task_id, "ack").answer()
            del self.model.tasks[task_id]
            return answer

        self._same(ack, by, "ack", task_id)

    @rule(by=clients, some=st.lists(choices, max_size=3))
    def ack_many(self, by: int, some: list[int]) -> None:
        ids = [self._any(choice, by) for choice in some]

        def ack_many() -> object:
            seen: dict[str, object] = {}
            for task_id in ids:
                if task_id in seen:
                    raise Refused("Task not found")
                seen[task_id] = self.model.own(self.clients[by], task_id, "ack").answer()
            for task_id in ids:
                del self.model.tasks[task_id]
            return list(seen.values())

        self._same(ack_many, by, "ack_many", ids)

    @rule(by=clients, choice=choices, delay=delays, ttl=lives)
    def release(self, by: int, choice: int, delay: Any, ttl: Any) -> None:
        task_id = self._any(choice, by)

        def release() -> object:
            task = self.model.own(self.clients[by], task_id, "release")
            return self.model.release(task, float(delay), float(ttl)).answer()

        self._same(release, by, "release", task_id, delay, ttl)

    @rule(by=clients, choice=choices, name=st.sampled_from(["requeue", "bury", "done", "touch"]))
    def change(self, by: int, choice: int, name: str) -> None:
        task_id = self._any(choice, by)

        def change() -> object:
            task = self.model.own(self.clients[by], task_id, name)
            if name == "touch":
                task.event = self.model.now + task.ttr
            elif name == "requeue":
                self.model.requeue(task)
                assert self.model.ready(task.tube)[-1] is task
            else:
                self.model.leave(task, {"bury": "buried", "done": "done"}[name])
                task.data = task.data if name == "bury" else []
            return task.answer()

        self._same(change, by, name, task_id)

    @rule(by=clients, choice=choices)
    def dig(self, by: int, choice: int) -> None:
        task_id = self._any(choice, by, "buried")

        def dig() -> object:
            task = self.model.known(task_id)
            if task.status != "buried":
                raise Refused("Task is not buried")
            return self.model.leave(task).answer()

        self._same(dig, by, "dig", task_id)

    @rule(by=clients, tube=tubes, count=st.integers(0, 3))
    def kick(self, by: int, tube: str, count: int) -> None:
        buried = sorted(self.model.of(tube, "buried"), key=lambda task: task.place)[:count]
        assert self.clients[by].call("kick", 0, tube, count) == len(buried)
        for task in buried:
            self.model.leave(task)
        self.model.serve()

    @rule(by=clients, choice=choices)
    def delete(self, by: int, choice: int) -> None:
        task_id = self._any(choice, by)

        def delete() -> object:
            answer = self.model.known(task_id).answer()
            del self.model.tasks[task_id]
            return answer

        self._same(delete, by, "delete", task_id)

    @rule(by=clients, tube=tubes, really=st.sampled_from([False] * 5 + [True]))
    def truncate(self, by: int, tube: str, really: bool) -> None:
        if really:
            of_tube = [task.id for task in self.model.tasks.values() if task.tube == tube]
            assert self.clients[by].call("truncate", 0, tube) == len(of_tube)
            for task_id in of_tube:
                del self.model.tasks[task_id]

    @rule(by=clients, choice=choices, tube=tubes, name=st.sampled_from(["take", "ack", "requeue", "delete"]))
    def fail(self, by: int, choice: int, tube: str, name: str) -> None:
        """Make a call in a transaction that is rolled back."""
        box = self.server.box
        procedure = self.server.application.procedures[f"queue.{name}"].function
        arguments = (tube, 0) if name == "take" else (self._any(choice, by),)

        def work() -> None:
            procedure(box, 0, *arguments)
            raise ZeroDivisionError

        with pytest.raises((ZeroDivisionError, BoxError)):
            box.run(self.clients[by].session, box.atomic, work)

    # -- events --

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
        for waiter, waiting in self.waiting:
            waiter.finish()
            if not waiting.is_done:
                self.model.finish(waiting)
        self.server.restart()
        for client in self.clients:
            self.model.close(client)
        self.clients = [self.server.connect() for _ in range(3)]
        self.time_passes(0.5)

    # -- invariants --

    @invariant()
    def answers_are_those_that_were_promised(self) -> None:
        for waiter, waiting in self.waiting:
            assert waiter.is_done == waiting.is_done
            if waiting.is_done:
                found = waiter.result if isinstance(waiter.result, list) else []
                ids = [task[0] for task in found] if found and isinstance(found[0], list) else found[:1]
                assert ids == [task.id for task in waiting.result or ()]
        self.waiting = [pair for pair in self.waiting if not pair[1].is_done]

    @invariant()
    def no_task_is_lost_or_in_two_hands(self) -> None:
        spaces = list(self.server.queue.registry.spaces.values())
        rows = [row for queue_space in spaces for row in queue_space.space.pairs()]
        assert {row[0]: STATUSES[row[2]] for row in rows} == {
            task.id: task.status for task in self.model.tasks.values()
        }
        owners = {task.id: task.owner for task in self.model.tasks.values() if task.owner is not None}
        sessions = {
            task_id: client.session.id for task_id, client in owners.items() if isinstance(client, Client)
        }
        assert {row[0]: row[6] for row in rows if row[6]} == sessions
        for queue_space in spaces:
            assert queue_space.owners.sessions == sessions

    @invariant()
    def tasks_are_in_the_order_that_was_promised(self) -> None:
        for queue_space in self.server.queue.registry.spaces.values():
            for tube in "ab":
                ids = [row[0] for row in queue_space.in_order.pairs([tube, "r"])]
                assert ids == [task.id for task in self.model.ready(tube)]

    # -- helpers --

    def _same(self, expected: Callable[[], object], by: int, name: str, *arguments: object) -> None:
        """Apply the same operation to the model and the queue."""
        try:
            wanted: object = expected()
        except Refused as refused:
            wanted = str(refused)
        try:
            found: object = self.clients[by].call(name, 0, *arguments)
        except BoxError as error:
            found = error.message
        assert found == wanted
        self.model.serve()

    def _any(self, choice: int, by: int, status: str = "taken") -> str:
        """Choose the id of a task, mostly of one with that status, and if it is taken, of that client."""
        tasks = sorted(self.model.tasks.values(), key=lambda task: task.created)
        fitting = [task for task in tasks if task.status == status]
        mine = [task for task in fitting if task.owner is self.clients[by]] or fitting
        some = (mine, mine, mine, fitting, tasks, mine, mine, [])[choice % 8]
        return some[choice // 8 % len(some)].id if some else self.gone

    def _data(self) -> str:
        self.number += 1
        return f"data {self.number}"


TestLegacyQueue = pytest.mark.slow(LegacyQueueMachine.TestCase)
TestLegacyQueue.settings = examples(100, stateful_step_count=40)
