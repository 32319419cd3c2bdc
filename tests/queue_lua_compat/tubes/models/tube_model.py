"""A short model of a tube, with which test_model.py compares the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

FOR_EVER: Final = 365 * 86400 * 100 * 10**6
"""A hundred years in microseconds."""

RETRY_AFTER: Final = 10**6
"""Microseconds until the end of a connection is handled again if it could not be stored."""


@dataclass
class Task:
    """A task; times are in microseconds. `due` is the end of its state, `end` that of its life."""

    data: object
    pri: int
    ttr: int
    end: int
    state: str
    due: int
    session: str | None = None


@dataclass
class Wait:
    """A waiting call: a put if there is data, otherwise a take."""

    who: str
    until: int
    put: Callable[[], object] | None = None
    result: object = "waits"


@dataclass
class TubeModel:
    """A tube and the sessions of its clients.

    Parameters:
        now: the time.
        capacity: the maximum number of tasks; 0 for any number.
        session_ttr: the time that a session outlives its last connection.
    """

    now: int
    capacity: int = 0
    session_ttr: int = 0
    tasks: dict[int, Task] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    session_of: dict[str, str] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    retries: list[tuple[int, str]] = field(default_factory=list)
    left: dict[int, str] = field(default_factory=dict)
    """The owners of tasks that truncate has removed, until these numbers are used again."""

    # -- calls: they return the client's answer without the data --

    def put(self, who: str, data: object, pri: int, ttl: int, ttr: int, delay: int, timeout: int) -> object:
        def put() -> object:
            number = max(self.tasks) + 1 if self.tasks else 0
            self.left.pop(number, None)
            state, due = ("~", self.now + delay) if delay else ("r", self.now + ttl)
            self.tasks[number] = Task(data, pri, ttr, self.now + ttl + delay, state, due)
            return number, state

        if self.has_room() and not any(wait.put for wait in self.waits):
            return put()
        return self.wait(Wait(who, self.now + timeout, put)) if timeout else None

    def take(self, who: str, timeout: int) -> object:
        ready = [(task.pri, number) for number, task in self.tasks.items() if task.state == "r"]
        if ready:
            number = min(ready)[1]
            task = self.tasks[number]
            task.session = self.session_of[who]
            self.change(task, "t", min(self.now + task.ttr, task.end))
            return number, "t"
        return self.wait(Wait(who, self.now + timeout)) if timeout else None

    def ack(self, who: str, number: int) -> object:
        if refusal := self.refusal(who, number):
            return refusal
        del self.tasks[number]
        return number, "-"

    def release(self, who: str, number: int, delay: int) -> object:
        if refusal := self.refusal(who, number):
            return refusal
        return number, self.give_back(self.tasks[number], delay)

    def touch(self, who: str, number: int, longer: int) -> object:
        if refusal := self.refusal(who, number):
            return None if refusal.endswith("not found") else refusal
        task = self.tasks[number]
        task.due, task.end, task.ttr = task.due + longer, task.end + longer, task.ttr + longer
        return number, "t"

    def bury(self, number: int) -> object:
        if number not in self.tasks:
            return f"Task {number} not found"
        task = self.tasks[number]
        return number, self.change(task, "!", task.end)

    def delete(self, number: int) -> object:
        return (number, "-") if self.tasks.pop(number, None) else f"Task {number} not found"

    def kick(self, count: int) -> int:
        buried = sorted((task.pri, number) for number, task in self.tasks.items() if task.state == "!")
        for _, number in buried[:count]:
            self.change(self.tasks[number], "r", self.tasks[number].end)
        return min(count, len(buried))

    def release_all(self, *, unless_known: bool = False) -> None:
        for task in self.tasks.values():
            if task.state == "t" and not (unless_known and task.session in self.sessions()):
                self.give_back(task)

    def truncate(self) -> None:
        self.left = self.taken()
        self.tasks.clear()

    # -- sessions --

    def sessions(self) -> set[str]:
        return {*self.session_of.values(), *self.ends}

    def join(self, who: str, session: str) -> None:
        if self.session_of.get(who) != session:
            self.leave(who, waits=False)
            self.session_of[who] = session
        self.ends.pop(session, None)

    def leave(self, who: str, *, waits: bool = True) -> None:
        if waits:
            self.waits = [wait for wait in self.waits if wait.who != who]
        session = self.session_of.pop(who, None)
        if session is not None and session not in self.session_of.values():
            self.ends[session] = self.now + self.session_ttr
            if not self.session_ttr:
                self.end_session(session)

    def end_session(self, session: str) -> None:
        del self.ends[session]
        self.left = {number: owner for number, owner in self.left.items() if owner != session}
        for task in self.tasks.values():
            if task.session == session:
                self.give_back(task)

    def restart(self, now: int, *, keeps_sessions: bool) -> None:
        self.now, self.waits, self.retries = now, [], []
        stay = self.sessions() if keeps_sessions else set()
        self.ends = {session: self.ends.get(session, now + self.session_ttr) for session in stay}
        self.session_of = {}
        self.left = {number: owner for number, owner in self.left.items() if owner in self.ends}
        self.release_all(unless_known=True)

    # -- time --

    def advance(self, to: int) -> None:
        """Advance the time; events happen when they are due."""
        while True:
            dues = [task.due for task in self.tasks.values()] + [wait.until for wait in self.waits]
            moment = min([*dues, *self.ends.values(), *(at for at, _ in self.retries)], default=to)
            if moment > to:
                break
            self.now = max(self.now, moment)
            self.happen()
            if moment == to:
                break
        self.now = to

    def happen(self) -> None:
        """Process due events."""
        for at, who in [retry for retry in self.retries if retry[0] <= self.now]:
            self.retries.remove((at, who))
            self.leave(who)
        for session in [session for session, end in self.ends.items() if end <= self.now]:
            self.end_session(session)
        for number, task in list(self.tasks.items()):
            if task.end <= self.now:
                del self.tasks[number]
            elif task.due <= self.now:
                self.change(task, "r", task.end)
        self.serve()
        for wait in [wait for wait in self.waits if wait.until <= self.now]:
            self.waits.remove(wait)
            wait.result = None

    def serve(self) -> None:
        """Serve waiting calls, first come, first served."""
        for wait in list(self.waits):
            if wait.put is None:
                result = self.take(wait.who, 0)
            else:
                result = wait.put() if self.has_room() else None
            if result is not None:
                wait.result = result
                self.waits.remove(wait)
                return self.serve()
        return None

    # -- internal --

    def has_room(self) -> bool:
        return not self.capacity or len(self.tasks) < self.capacity

    def refusal(self, who: str, number: int) -> str | None:
        """Return the reason why a session may not act as the owner of a task."""
        if self.taken().get(number) != self.session_of[who]:
            return "Task was not taken"
        return None if number in self.tasks else f"Task {number} not found"

    def taken(self) -> dict[int, str]:
        """Return the owners of tasks."""
        have = {number: task.session for number, task in self.tasks.items()}
        return {number: owner for number, owner in [*self.left.items(), *have.items()] if owner}

    def change(self, task: Task, state: str, due: int) -> str:
        task.state, task.due = state, due
        if state != "t":
            task.session = None
        return state

    def give_back(self, task: Task, delay: int = 0) -> str:
        task.end += delay
        return self.change(task, "~", self.now + delay) if delay else self.change(task, "r", task.end)

    def wait(self, wait: Wait) -> Wait:
        self.waits.append(wait)
        return wait

    def rows(self) -> list[Any]:
        """Return the visible fields of the tasks."""
        return [
            [number, task.state, task.due, task.end, task.ttr, task.pri, task.data]
            for number, task in sorted(self.tasks.items())
        ]
