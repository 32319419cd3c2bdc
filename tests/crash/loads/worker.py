"""The load of the queue: tasks are put, taken, acknowledged and released, at once and with delays.

Some are put again with their unique key, and some are dead letters after a few releases.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from tests.crash.books.tasks import Task, Tasks
from tests.crash.books.world import shown
from tests.crash.checks.finding import Kind
from tests.crash.loads.client import Client, Meter
from tests.crash.servers.pipeline import Pipeline, Reply
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE

TASKS_MAX = 400
"""The approximate maximum number of tasks in the queue."""

HANDS = 10
"""The maximum number of tasks that a worker holds before it releases some."""

DEAD_MAX = 20
"""The number of dead letters from which they are deleted."""

LIMITS = (None, None, 1, 2, 3)
"""How many releases make a task a dead letter."""

LONG_DELAY = 3600.0
"""Seconds of the longest delay. Such a task must remain waiting all the time."""


class Worker(Client):
    """Works with the queue.

    Parameters:
        chance: The source of random values.
        tasks: The expected tasks.
        number: The number of the worker.

    Attributes:
        has_dead_letters: Whether the queue has unique keys, limits of releases and dead letters.
    """

    def __init__(
        self, pipeline: Pipeline, meter: Meter, window: int, chance: Random, tasks: Tasks, number: int
    ) -> None:
        super().__init__(pipeline, meter, window)
        self.chance = chance
        self._tasks = tasks
        self._number = number
        self.has_dead_letters = True
        self._mine: list[Task] = []

    def step(self) -> None:
        """Send one request."""
        what = self.chance.random()
        if self._mine and (what < 0.3 or len(self._mine) >= HANDS):
            self._ack()
        elif self._mine and what < 0.45:
            self._release()
        elif what < 0.5 and (again := self._tasks.to_put_again(self.chance)) is not None:
            self._put_again(*again)
        elif what < 0.55 and len(dead := self._tasks.dead_letters()) > DEAD_MAX:
            self._delete(self.chance.choice(dead))
        elif what < 0.75 and len(self._tasks) < TASKS_MAX:
            self._put()
        else:
            self._take()

    def _put(self) -> None:
        options = self._delay(long=len(self._tasks) < TASKS_MAX / 2)
        limit = self.chance.choice(LIMITS) if self.has_dead_letters else None
        is_unique = self.has_dead_letters and self.chance.random() < 0.3
        task = self._tasks.putting(is_delayed=options is not None, limit=limit, is_unique=is_unique)
        data: dict[str, Any] = {"number": task.number, "text": "x" * self.chance.randrange(200)}
        given: dict[str, Any] = dict(options or {})
        if limit is not None:
            data["limit"] = limit
            given |= {"release_limit": limit, "release_limit_policy": "DLQ"}
        if task.key is not None:
            given |= _remembered(task.key)
        self._call("put", [data, given] if given else [data], lambda answer: self._tasks.put(task, answer))

    def _put_again(self, key: str, task_id: int) -> None:
        self._call(
            "put", ["again", _remembered(key)], lambda answer: self._tasks.put_again(key, task_id, answer)
        )

    def _delete(self, task: Task) -> None:
        """Delete a dead letter."""
        self._tasks.deleting(task)
        self._send("crash.delete_dead", [task.id], lambda _: self._tasks.deleted(task))

    def _take(self) -> None:
        def taken(answer: dict[str, Any] | None) -> None:
            if answer is not None:
                task = self._tasks.taken(answer, self._number, time.time())
                if task is not None:
                    self._mine.append(task)

        self._call("take", [self.chance.choice((0, 0, 0.01))], taken)

    def _ack(self) -> None:
        task = self._any_of_mine()
        self._tasks.acknowledging(task)
        self._call("ack", [task.id], lambda answer: self._tasks.acknowledged(task, answer))

    def _release(self) -> None:
        task = self._any_of_mine()
        options = self._delay(long=False)
        number = self._tasks.releasing(task, is_delayed=options is not None)
        self._call(
            "release",
            [task.id, options] if options else [task.id],
            lambda answer: self._tasks.released(task, number, answer),
        )

    def _any_of_mine(self) -> Task:
        return self._mine.pop(self.chance.randrange(len(self._mine)))

    def _delay(self, *, long: bool) -> dict[str, float] | None:
        what = self.chance.random()
        if what < 0.6:
            return None
        if what < 0.65 and long:
            return {"delay": LONG_DELAY}
        return {"delay": self.chance.random() / 5}

    def _call(self, name: str, arguments: list[Any], answered: Any) -> None:
        self._send(f"queue.{name}", arguments, answered)

    def _send(self, name: str, arguments: list[Any], answered: Any) -> None:
        def come(reply: Reply) -> None:
            if reply.error_code:
                self.meter.complain(Kind.ANSWER, f"{name}{arguments}: {shown(reply.data)}")
                return
            answered(reply.data[0] if reply.data else None)
            self.meter.findings += self._tasks.take_findings()
            self.meter.acknowledge(name)

        self.send(name, CALL, {FUNCTION_NAME: name, TUPLE: arguments}, come)


def _remembered(key: str) -> dict[str, Any]:
    return {"unique_key": key, "unique_for": 3600}
