"""Random sequences of calls to a queue with policies of each dialect, compared with a model.

Clients put, take, acknowledge, release and disconnect; time passes, the server restarts, log writes fail, and
operators configure, pause and drain the queue, and put dead letters back.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from iproto_server import BoxError, ManualClock
from tests.plugins.profiles import examples
from tests.queue_lua_compat.policies.policy_model import ModelTask, PolicyModel
from tests.queue_lua_compat.policies.worlds import FAILURES, KINDS, TTR, World

clients = st.integers(0, 2)
choices = st.integers(0, 100)
limits = st.sampled_from([None, 1, 2, 3])
keys = st.sampled_from([None, None, "a", "b", "c"])


class PolicyMachine(RuleBasedStateMachine):
    """A queue and its model."""

    kind: ClassVar[str]

    @initialize(limit=limits, is_dlq=st.booleans(), delay=st.sampled_from([None, 1.25]))
    def begin(self, limit: int | None, is_dlq: bool, delay: float | None) -> None:
        self.world = World(self.kind, ManualClock())
        is_numbered = self.kind not in ("legacy", "tutorial")
        self.model = PolicyModel(is_numbered=is_numbered, has_delays=self.world.has_delays)
        self.clients = [self.world.connect() for _ in range(3)]
        self.number = 0
        self.world.configure(
            strict_options=False
        )  # an empty tube of the older queue is shown if it has options
        self.configure(limit, is_dlq, delay)

    # -- clients --

    @rule(by=clients, limit=limits, key=keys, unique_for=st.sampled_from([0, 7.5]))
    def put(self, by: int, limit: int | None, key: str | None, unique_for: float) -> None:
        self.number += 1
        options: dict[str, object] = {} if limit is None else {"release_limit": limit}
        if key is not None:
            options |= {"unique_key": key, "unique_for": unique_for}
        if self.model.is_draining:
            with pytest.raises(BoxError, match="is draining"):
                self.world.put_task(self.clients[by], self.number, **options)
            return
        found = None if key is None else self.model.find(key)
        answer = self.world.put_task(self.clients[by], self.number, **options)
        task_id = self.world.id_of(answer)
        if found is not None:
            assert (task_id, not self.world.is_gone(answer)) == found
            return
        order = task_id if self.model.is_numbered else self.number
        task = ModelTask(task_id, order, self.number, limit)
        task.key = None if key is None else (key, unique_for)
        self.model.add(task)

    @rule(by=clients)
    def take(self, by: int) -> None:
        expected = self.model.first()
        found = self.world.take(self.clients[by])
        assert found == (None if expected is None else expected.id)
        if expected is not None:
            self.model.take(expected, self.clients[by])

    @rule(by=clients, choice=choices)
    def ack(self, by: int, choice: int) -> None:
        task = self._mine(by, choice)
        if task is not None:
            self.world.ack(self.clients[by], task.id)
            self.model.remove(task)

    @rule(by=clients, choice=choices)
    def release(self, by: int, choice: int) -> None:
        task = self._mine(by, choice)
        if task is not None:
            answer = self.world.release(self.clients[by], task.id)
            task_id = task.id
            assert self.world.is_gone(answer) == self.model.fail(task, "releases")
            assert self.world.id_of(answer) == task_id

    @rule(by=clients, choice=choices)
    def release_in_vain(self, by: int, choice: int) -> None:
        task = self._mine(by, choice)
        if task is not None:
            with self.world.undone():
                self.world.release(self.clients[by], task.id)

    @rule(how=st.sampled_from(FAILURES))
    def fail(self, how: str) -> None:
        task = self.model.first()
        if task is None or (how == "timeouts" and not self.world.has_delays):
            return
        self.world.fail(how)
        if how == "timeouts":
            self.model.take(task, None)
            self.model.advance(TTR)
        else:
            self.model.fail(task, how)

    @rule(by=clients)
    def disconnect(self, by: int) -> None:
        self.clients[by].close()
        self.model.close(self.clients[by])
        self.clients[by] = self.world.connect()

    # -- time --

    @rule(seconds=st.sampled_from([0.5, 2, 11]))
    def time_passes(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        self.model.advance(seconds)

    @rule(really=st.sampled_from([False] * 4 + [True]))
    def restart(self, really: bool) -> None:
        if really:
            self.world.server.restart()
            self.model.restart()
            self.clients = [self.world.connect() for _ in range(3)]

    # -- operators --

    @rule(limit=limits, is_dlq=st.booleans(), delay=st.sampled_from([None, 1.25]))
    def configure(self, limit: int | None, is_dlq: bool, delay: float | None) -> None:
        delay = delay if self.world.has_delays else None
        self.world.configure(
            release_limit=limit,
            release_limit_policy="DLQ" if is_dlq else None,
            retry=None if delay is None else {"delay": delay, "jitter": 0},
        )
        self.model.limit, self.model.is_dlq, self.model.delay = limit, is_dlq, delay

    @rule(state=st.sampled_from(["pause", "drain", "resume", "resume", "resume"]))
    def change_state(self, state: str) -> None:
        self.world.operator(getattr(self.world.queue(), state))
        self.model.is_paused, self.model.is_draining = state == "pause", state == "drain"

    @precondition(lambda self: self.model.dead)
    @rule(choice=choices)
    def requeue(self, choice: int) -> None:
        task = _chosen(list(self.model.dead.values()), choice)
        dead_letters = self.world.queue(f"{self.world.name}_dlq")
        requeued = self.world.operator(dead_letters.requeue, task.id)
        self.model.requeue(task)
        assert requeued.id == task.id

    @precondition(lambda self: self.model.tasks)
    @rule(choice=choices)
    def delete(self, choice: int) -> None:
        task = _chosen(list(self.model.tasks.values()), choice)
        self.world.operator(self.world.queue().delete, task.id)
        self.model.remove(task)

    # -- what has to be the same --

    @invariant()
    def tasks_and_dead_letters_are_the_same(self) -> None:
        if not hasattr(self, "world"):
            return
        found = self.world.queue().tasks(None, limit=1000)
        assert {task.id: (self.world.data(task), task.state.value) for task in found} == {
            task.id: (task.data, task.state) for task in self.model.tasks.values()
        }
        dead = self.world.dead_letters
        assert {task.id: self.world.data(task) for task in dead} == {
            task.id: task.data for task in self.model.dead.values()
        }
        for tasks, expected in ((found, self.model.tasks), (dead, self.model.dead)):
            for task in tasks:
                counts = {name: task.details.get(name, 0) for name in FAILURES}
                assert counts == expected[task.id].counts

    @invariant()
    def no_row_is_left_behind(self) -> None:
        if not hasattr(self, "world") or "_queue_attempts" not in self.world.box.space:
            return
        counted = {(row[0], row[1]) for row in self.world.box.space["_queue_attempts"].pairs()}
        name = self.world.name
        assert counted <= {(name, task_id) for task_id in self.model.tasks} | {
            (f"{name}_dlq", task_id) for task_id in self.model.dead
        }

    # -- helpers --

    def _mine(self, by: int, choice: int) -> ModelTask | None:
        mine = [task for task in self.model.tasks.values() if task.owner is self.clients[by]]
        return _chosen(mine, choice) if mine else None


def _chosen(tasks: list[ModelTask], choice: int) -> ModelTask:
    return tasks[choice % len(tasks)]


@pytest.mark.parametrize("kind", KINDS)
def test_policies(kind: str) -> None:
    machine: Any = type(f"{kind}Machine", (PolicyMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=examples(30, stateful_step_count=40))
