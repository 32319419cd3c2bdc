"""What a script did with tasks and when, kept by the script itself: what lifecycle has to find out again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.spark.queues.scripted import Actions

_STEP_US = 15_625
"""A 64th of a second, so that delays in seconds are whole microseconds without rounding."""


@dataclass
class Written:
    """What became of a task.

    Attributes:
        id: Its id.
        put_us: When it was put; all moments are microseconds since 1970.
        ready_us: When it became ready first.
        taken_us: When it was taken.
        ended_us: When each of these attempts ended.
        waits_us: How long it had been ready each time it was taken.
        done_us: When it had gone.
        outcome: How it ended.
        status: What it is.
        since_us: Since when.
        due_us: When its delay or its time to run ends.
        ttr_us: Its time to run.
        counts: How often it was released, timed out, buried.
    """

    id: str
    put_us: int
    ttr_us: int
    status: str
    since_us: int
    due_us: int | None = None
    ready_us: int | None = None
    taken_us: list[int] = field(default_factory=list)
    ended_us: list[int] = field(default_factory=list)
    waits_us: list[int] = field(default_factory=list)
    done_us: int | None = None
    outcome: str = "open"
    counts: dict[str, int] = field(default_factory=lambda: {"released": 0, "timed_out": 0, "buried": 0})

    def become(self, status: str, now_us: int, due_us: int | None = None) -> None:
        """The task's status changes."""
        if self.status == "taken":
            self.ended_us.append(now_us)
        if status == "taken":
            self.taken_us.append(now_us)
            self.waits_us.append(now_us - self.since_us)
        if status == "ready" and self.ready_us is None:
            self.ready_us = now_us
        self.status, self.since_us, self.due_us = status, now_us, due_us

    def end(self, outcome: str, now_us: int) -> None:
        """The task goes."""
        self.become("gone", now_us)
        self.outcome, self.done_us = outcome, now_us


class Book:
    """Does things with tasks, and writes down what must have become of them.

    Parameters:
        actions: How things are done.
        seed: What is done.

    Attributes:
        directory: Where the server's log is.
        tasks: All tasks there ever were, in the order in which they were put.
    """

    def __init__(self, actions: Actions, seed: int) -> None:
        self.tasks: list[Written] = []
        self._actions = actions
        self._server = actions.server
        self.directory = actions.server.directory
        self._random = random.Random(seed)
        self._present: dict[str, Written] = {}

    def be_late(self, microseconds: int) -> Written:
        """A task is put with a delay, and becomes ready later than it should, as the wall clock steps ahead;
        then it is taken and acknowledged.

        Parameters:
            microseconds: How much later.

        Returns: the task.
        """
        assert not self._present
        now = self._server.now_us
        delay = 128 * _STEP_US
        task = Written(self._actions.put(delay / 1e6, 100.0), now, 100_000_000, "delayed", now)
        self._server.advance(delay - 1)
        clock = self._server.clock
        clock.set_wall_clock(clock.time_ns() + (1 + microseconds) * 1000)
        self._server.advance(0)
        task.become("ready", self._server.now_us)
        self._server.advance(7)
        assert self._actions.take() == task.id
        task.become("taken", self._server.now_us)
        self._server.advance(11)
        self._actions.ack(task.id)
        task.end("acked", self._server.now_us)
        self.tasks.append(task)
        return task

    def run(self, steps: int) -> None:
        """Do some things, with some time before each.

        Parameters:
            steps: How many.
        """
        deeds = [self._put] * 4 + [self._take] * 5 + [self._ack] * 2 + [self._release] * 2
        deeds += [self._disconnect, self._delete]
        if self._actions.has_bury:
            deeds += [self._bury, self._kick]
        for _ in range(steps):
            self._pass(self._random.randrange(1, 3_000_000))
            self._random.choice(deeds)()

    def _pass(self, microseconds: int) -> None:
        """Time passes: delays and times to run end at their moments."""
        end_us = self._server.now_us + microseconds
        for task in sorted(self._present.values(), key=lambda task: task.due_us or 0):
            if task.due_us is not None and task.due_us <= end_us:
                if task.status == "taken":
                    task.counts["timed_out"] += 1
                task.become("ready", task.due_us)
        self._server.advance(microseconds)

    def _put(self) -> None:
        now = self._server.now_us
        delay = self._delay()
        ttr = self._random.randrange(64, 400) * _STEP_US
        task_id = self._actions.put(delay / 1e6, ttr / 1e6)
        task = Written(task_id, now, ttr, "new", now)
        task.become("delayed" if delay else "ready", now, now + delay if delay else None)
        self.tasks.append(task)
        self._present[task_id] = task

    def _take(self) -> None:
        ready = [task for task in self._present.values() if task.status == "ready"]
        task_id = self._actions.take()
        assert (task_id is not None) == bool(ready)
        if task_id is not None:
            task = self._present[task_id]
            assert task in ready
            now = self._server.now_us
            task.become("taken", now, now + task.ttr_us if self._actions.has_ttr else None)

    def _ack(self) -> None:
        if task := self._one("taken"):
            self._actions.ack(task.id)
            self._gone(task, "acked")

    def _release(self) -> None:
        if task := self._one("taken"):
            now, delay = self._server.now_us, self._delay()
            self._actions.release(task.id, delay / 1e6)
            task.counts["released"] += 1
            task.become("delayed" if delay else "ready", now, now + delay if delay else None)

    def _disconnect(self) -> None:
        self._server.disconnect()
        for task in self._present.values():
            if task.status == "taken":
                task.counts["released"] += 1
                task.become("ready", self._server.now_us)

    def _delete(self) -> None:
        if task := self._one("ready"):
            self._actions.delete(task.id)
            self._gone(task, "deleted")

    def _bury(self) -> None:
        if task := self._one("taken"):
            self._actions.bury(task.id)
            task.counts["buried"] += 1
            task.become("buried", self._server.now_us)
            task.outcome = "buried"

    def _kick(self) -> None:
        buried = [task for task in self._present.values() if task.status == "buried"]
        if len(buried) == 1:  # which of several comes first is not the script's business
            self._actions.kick()
            buried[0].become("ready", self._server.now_us)
            buried[0].outcome = "open"

    def _one(self, status: str) -> Written | None:
        found = [task for task in self._present.values() if task.status == status]
        return self._random.choice(found) if found else None

    def _gone(self, task: Written, outcome: str) -> None:
        task.end(outcome, self._server.now_us)
        del self._present[task.id]

    def _delay(self) -> int:
        """Microseconds; mostly none, and always none where there are no delays."""
        if not self._actions.has_delay or self._random.random() < 0.6:
            return 0
        return self._random.randrange(1, 640) * _STEP_US
