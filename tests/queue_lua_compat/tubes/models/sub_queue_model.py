"""A short model of a tube of sub-queues, with which test_sub_queues.py compares the real one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

FOR_EVER: Final = 365 * 86400 * 100 * 10**6
"""A hundred years in microseconds."""


@dataclass
class Task:
    """A task; times are in microseconds. `due` is the end of its state, `end` that of its life."""

    utube: str
    pri: int
    ttr: int
    end: int
    state: str
    due: int
    owner: str | None = None


@dataclass
class Wait:
    """A waiting call, for one task or many."""

    who: str
    until: int
    most: int | None
    result: object = "waits"


@dataclass
class SubQueueModel:
    """A tube and its waiting calls.

    Parameters:
        now: the time.
    """

    now: int
    tasks: dict[int, Task] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)

    def heads(self) -> list[int]:
        """Return the tasks that can be taken, in order: the first of each sub-queue that is not busy."""
        firsts: dict[str, tuple[int, int]] = {}
        for number, task in self.tasks.items():
            if task.state == "r":
                firsts[task.utube] = min(firsts.get(task.utube, (task.pri, number)), (task.pri, number))
        busy = {task.utube for task in self.tasks.values() if task.state == "t"}
        return [
            number
            for utube, (_, number) in sorted(firsts.items(), key=lambda item: item[1])
            if utube not in busy
        ]

    def put(self, utube: str, pri: int, ttl: int, ttr: int, delay: int) -> int:
        number = max(self.tasks) + 1 if self.tasks else 0
        state, due = ("~", self.now + delay) if delay else ("r", self.now + ttl)
        self.tasks[number] = Task(utube, pri, ttr, self.now + ttl + delay, state, due)
        return number

    def take(self, who: str) -> int | None:
        for number in self.heads()[:1]:
            task = self.tasks[number]
            task.state, task.due, task.owner = "t", self.now + task.ttr, who
            return number
        return None

    def take_many(self, who: str, most: int) -> list[int]:
        return [number for _ in range(most) if (number := self.take(who)) is not None]

    def has(self, who: str, number: int) -> bool:
        return number in self.tasks and self.tasks[number].owner == who

    def release(self, number: int, delay: int = 0) -> None:
        task = self.tasks[number]
        task.end += delay
        self.change(task, *(("~", self.now + delay) if delay else ("r", task.end)))

    def release_of(self, *people: str) -> None:
        for number, task in list(self.tasks.items()):
            if task.owner in people:
                self.release(number)

    def bury(self, number: int) -> None:
        self.change(self.tasks[number], "!", self.tasks[number].end)

    def kick(self, count: int) -> int:
        buried = sorted((task.pri, number) for number, task in self.tasks.items() if task.state == "!")[
            :count
        ]
        for _, number in buried:
            self.change(self.tasks[number], "r", self.tasks[number].end)
        return len(buried)

    def touch(self, number: int, longer: int) -> None:
        task = self.tasks[number]
        task.due, task.end, task.ttr = task.due + longer, task.end + longer, task.ttr + longer

    def change(self, task: Task, state: str, due: int) -> None:
        task.state, task.due, task.owner = state, due, None

    # -- time, and waiting calls --

    def advance(self, to: int) -> None:
        """Advance the time; events happen when they are due."""
        while True:
            moments = [task.due for task in self.tasks.values()] + [wait.until for wait in self.waits]
            moment = min(moments, default=to + 1)
            if moment > to:
                break
            self.now = max(self.now, moment)
            self.happen()
        self.now = to

    def happen(self) -> None:
        """Process due events; then serve waiting calls, first come, first served."""
        for task in self.tasks.values():
            if task.state in "~t" and task.due <= self.now:
                self.change(task, "r", task.end)
        for number, task in list(self.tasks.items()):
            if task.state in "r!" and task.end <= self.now:
                del self.tasks[number]
        while self.waits and self.heads():
            wait = self.waits.pop(0)
            wait.result = self.take(wait.who) if wait.most is None else self.take_many(wait.who, wait.most)
        for wait in [wait for wait in self.waits if wait.until <= self.now]:
            self.waits.remove(wait)
            wait.result = None

    def rows(self, *, has_times: bool) -> list[list[Any]]:
        """Return the visible fields of the tasks."""
        times = [
            (task.due, task.end, task.ttr, task.pri) if has_times else ()
            for _, task in sorted(self.tasks.items())
        ]
        return [
            [number, task.state, task.utube, *more]
            for (number, task), more in zip(sorted(self.tasks.items()), times, strict=True)
        ]
